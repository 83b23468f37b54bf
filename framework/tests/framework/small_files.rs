//! Several small files in one map task: user code sees each file as if it had a task of its own.

use napreduce::input::{TextLines, WholeFile};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, Save, TaskError, TaskInfo};

/// Emits the name of each file at its beginning, its lines, and their number at its end.
#[derive(Clone, Default)]
struct Narrator {
    file: String,
    lines: u64,
}

impl Mapper for Narrator {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        let name = task
            .input()
            .and_then(|path| path.file_name())
            .unwrap_or_default();
        self.file = name.to_string_lossy().into_owned();
        Ok(())
    }

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        self.lines += 1;
        out.emit(&format!("{}: {line}", self.file), self.lines);
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit(&format!("{} ends", self.file), self.lines);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.lines.to_le_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.lines = u64::from_le_bytes(
            state
                .try_into()
                .map_err(|_| TaskError::task("eight bytes"))?,
        );
        Ok(())
    }
}

fn narrate() -> Job {
    Job::text()
        .mapper(Narrator::default())
        .reduce(|line, numbers, out| {
            while let Some(number) = numbers.next() {
                out.emit(line, number);
            }
        })
}

fn copy() -> Job {
    Job::text().map_only(|line: &str, out| out.emit(line, ()))
}

fn lengths() -> Job {
    Job::whole_files().map_only(|file: WholeFile<'_>, out| out.emit(file.bytes.len() as u64, ()))
}

/// Returns this many files, some of them empty or without a final newline.
fn test<J: Fn() -> Job>(job: J, files: usize) -> JobTest<J> {
    (0..files).fold(JobTest::new(job), |test, number| {
        let lines = if number % 7 == 3 { 0 } else { 1 + number % 2 };
        let text: String = (0..lines)
            .map(|line| format!("line {line} of {number}\n"))
            .collect();
        test.input(if number % 3 == 0 {
            text.trim_end()
        } else {
            &text
        })
    })
}

#[test]
fn combined_files_are_mapped_separately() {
    let together = test(narrate, 40).run();
    assert_eq!(
        together.text(),
        test(narrate, 40).combine_files(false).run().text()
    );
    assert_eq!(
        together
            .text()
            .lines()
            .filter(|line| line.contains(" ends\t"))
            .count(),
        34,
        "none is empty"
    );
}

#[test]
fn map_only_parts_follow_file_order() {
    for job in [copy, lengths] {
        let together = test(job, 40).run();
        let alone = test(job, 40).combine_files(false).run();
        assert_eq!(together.text(), alone.text());
        assert!(together.parts.len() < alone.parts.len());
    }
}

#[test]
fn combined_task_resumes_in_its_file() {
    test(narrate, 10).assert_preemption_safe();
    test(copy, 10).assert_preemption_safe();
}
