//! Small files that one map task reads: each as if it had a task of its own.
//!
//! Owns what user code sees of it and byte identity under preemption. Does not own which files are combined
//! (`input::splits`).

use napreduce::input::{TextLines, WholeFile};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Mapper, Save, TaskError, TaskInfo};

/// Says of each file its name when it begins, its lines, and how many they were at its end.
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
        let name = task.input().and_then(|path| path.file_name()).unwrap_or_default();
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
        self.lines = u64::from_le_bytes(state.try_into().map_err(|_| TaskError::task("eight bytes"))?);
        Ok(())
    }
}

fn narrate() -> Job {
    Job::text().mapper(Narrator::default()).reduce(|line, numbers, out| {
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

/// So many files, some of which are empty or end without a newline.
fn test<J: Fn() -> Job>(job: J, files: usize) -> JobTest<J> {
    (0..files).fold(JobTest::new(job), |test, number| {
        let lines = if number % 7 == 3 { 0 } else { 1 + number % 2 };
        let text: String = (0..lines).map(|line| format!("line {line} of {number}\n")).collect();
        test.input(if number % 3 == 0 { text.trim_end() } else { &text })
    })
}

#[test]
fn user_code_sees_each_file_as_if_it_had_a_task_of_its_own() {
    let together = test(narrate, 40).run();
    assert_eq!(together.text(), test(narrate, 40).setting("combine-files=false").run().text());
    assert_eq!(together.text().lines().filter(|line| line.contains(" ends\t")).count(), 34, "none is empty");
}

#[test]
fn parts_of_a_job_without_reduces_follow_each_other_as_the_files_do() {
    for job in [copy, lengths] {
        let together = test(job, 40).run();
        let alone = test(job, 40).setting("combine-files=false").run();
        assert_eq!(together.text(), alone.text());
        assert!(together.parts.len() < alone.parts.len());
    }
}

#[test]
fn a_task_goes_on_in_the_file_it_stood_in() {
    test(narrate, 10).assert_preemption_safe();
    test(copy, 10).assert_preemption_safe();
}
