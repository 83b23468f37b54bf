//! Byte identity of stateful jobs, preempted before every record, group and value.

use napreduce::input::TextLines;
use napreduce::output::Text;
use napreduce::testing::JobTest;
use napreduce::{
    Emit, Job, Mapper, Output, Reducer, Save, TaskError, TaskInfo, Values, counter, words,
};

const POEM: &str = "the owl and the pussycat went to sea\nin a beautiful pea green boat\n\n\
                    they took some honey and plenty of money\nwrapped up in a five pound note\n\
                    the owl looked up to the stars above";

/// Writes a running number with the sum of each group. The partial sum of a group is part of the state.
#[derive(Clone, Default)]
struct Ledger {
    groups: u64,
    sum: u64,
    names: Vec<String>,
    resumes: bool,
}

impl Reducer for Ledger {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn setup(&mut self, _: &TaskInfo<'_>, out: &mut Output<Text>) -> Result<(), TaskError> {
        counter!("set up").add(1);
        out.emit("begin", ());
        Ok(())
    }

    fn reduce(
        &mut self,
        name: &str,
        values: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        while let Some(value) = values.next() {
            self.sum += value;
            // A reduce may also write in the middle of a group.
            out.emit("value", value);
        }
        if values.is_cut() {
            return Ok(());
        }
        self.groups += 1;
        self.names.push(name.to_owned());
        out.emit((self.groups, name), std::mem::take(&mut self.sum));
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.groups.to_le_bytes());
        state.extend_from_slice(&self.sum.to_le_bytes());
        state.extend_from_slice(self.names.join(" ").as_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let (groups, rest) = state
            .split_first_chunk::<8>()
            .ok_or_else(|| TaskError::task("no state"))?;
        let (sum, names) = rest
            .split_first_chunk::<8>()
            .ok_or_else(|| TaskError::task("no state"))?;
        (self.groups, self.sum) = (u64::from_le_bytes(*groups), u64::from_le_bytes(*sum));
        self.names = words(&String::from_utf8_lossy(names))
            .map(str::to_owned)
            .collect();
        Ok(())
    }

    fn resumes_in_group(&self) -> bool {
        self.resumes
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit(self.names.join(","), ());
        Ok(())
    }
}

fn ledger(resumes: bool) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            words(line).for_each(|word| out.emit(&word[..1], word.len() as u64));
        })
        .reducer(Ledger {
            resumes,
            ..Ledger::default()
        })
}

#[test]
fn stateful_reducer_is_preemption_safe() {
    JobTest::new(|| ledger(false))
        .input(POEM)
        .split_size(70)
        .reduces(2)
        .assert_preemption_safe();
}

#[test]
fn stateful_reducer_resumes_inside_group() {
    JobTest::new(|| ledger(true))
        .input(POEM)
        .split_size(70)
        .reduces(2)
        .assert_preemption_safe();
    let one_word = "abc ".repeat(60);
    JobTest::new(|| ledger(true))
        .input(one_word)
        .assert_preemption_safe();
}

/// Emits each line with the length of the previous line, and the number of lines at the end.
#[derive(Clone, Default)]
struct Before {
    length: u64,
    lines: u64,
}

impl Mapper for Before {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        counter!("maps set up").add(u64::from(task.input().is_some()));
        Ok(())
    }

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit(line, self.length);
        self.length = line.len() as u64;
        self.lines += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit("lines", self.lines);
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        state.extend_from_slice(&self.length.to_le_bytes());
        state.extend_from_slice(&self.lines.to_le_bytes());
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let number = |at: usize| {
            state
                .get(at..at + 8)
                .and_then(|bytes| bytes.try_into().ok())
        };
        match (number(0), number(8)) {
            (Some(length), Some(lines)) => {
                (self.length, self.lines) = (u64::from_le_bytes(length), u64::from_le_bytes(lines));
                Ok(())
            }
            _ => Err(TaskError::task("no state")),
        }
    }
}

#[test]
fn stateful_mapper_is_preemption_safe() {
    let job = || {
        Job::text()
            .mapper(Before::default())
            .reduce(|line, lengths, out| {
                while let Some(length) = lengths.next() {
                    out.emit(line, length);
                }
            })
    };
    JobTest::new(job)
        .input(POEM)
        .split_size(90)
        .assert_preemption_safe();
}

#[test]
fn anything_anywhere() {
    let seed = std::env::var("NAPREDUCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    println!("NAPREDUCE_SEED={seed}");
    let test = |resumes| {
        JobTest::new(move || ledger(resumes))
            .input(POEM)
            .split_size(70)
            .fan_in(2)
    };
    test(true).assert_safe_at_random(seed, 40);
    test(false).reduces(2).assert_safe_at_random(seed, 40);
}

/// `Ledger` as a closure with state.
#[test]
fn closure_state_is_restored_inside_group() {
    let numbered = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, u64>| {
                words(line).for_each(|word| out.emit(word, word.len() as u64));
            })
            .reduce_resumable(
                (0, 0),
                |(groups, sum): &mut (u64, u64), word, lengths, out| {
                    *sum += lengths.sum();
                    if !lengths.is_cut() {
                        *groups += 1;
                        out.emit(*groups, (word, std::mem::take(sum)));
                    }
                },
            )
    };
    let test = JobTest::new(numbered).input(POEM).split_size(60).reduces(2);
    assert!(
        test.run().text().starts_with("1\t"),
        "{}",
        test.run().text()
    );
    test.assert_preemption_safe();
    let small = JobTest::new(numbered).input("a b a\nb a\n");
    assert_eq!(small.run().text(), "1\ta\t3\n2\tb\t2\n");
}
