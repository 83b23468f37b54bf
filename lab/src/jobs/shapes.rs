//! Owns small jobs of every shape over lines of text: with a combiner, sorted within groups, one large group,
//! map-only, many spills. How often they are interrupted, and that nobody can tell afterwards, belongs to the
//! identity experiment.

use std::time::Duration;

use napreduce::output::Text;
use napreduce::{Emit, Job, Output, Program, Reducer, Save, TaskError, Values, counter};
use napreduce_engine::listed;

use super::Work;

listed! {
    /// A small job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Shape {
        /// Counts words with a combiner.
        Words = "words",
        /// Sorts the lines of each first word by their length.
        Sorted = "sorted",
        /// Puts everything into one group.
        OneGroup = "one-group",
        /// Drops lines, by maps alone.
        MapOnly = "map-only",
        /// Emits so much that a map spills several times.
        Spills = "spills",
        /// Keeps a state from group to group, and inside of one.
        Stateful = "stateful",
    }
}

pub fn add_to(program: Program) -> Program {
    program
        .job(Shape::Words.in_words(), words)
        .job(Shape::Sorted.in_words(), sorted)
        .job(Shape::OneGroup.in_words(), one_group)
        .job(Shape::MapOnly.in_words(), map_only)
        .job(Shape::Spills.in_words(), spills)
        .job(Shape::Stateful.in_words(), stateful)
}

/// A pause for each record or group, so that there is time to interrupt it.
fn pause(work: &Work) -> impl Fn() + Clone + Send + Sync + 'static {
    let pause = Duration::from_micros(work.pause);
    move || std::thread::sleep(pause)
}

fn words(work: &Work) -> Job {
    let (wait, wait_again) = (pause(work), pause(work));
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            wait();
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .combine(|count, more| *count += more)
        .reduce(move |word, counts, out| {
            wait_again();
            out.emit(word, counts.sum());
        })
}

fn sorted(work: &Work) -> Job {
    let (wait, wait_again) = (pause(work), pause(work));
    Job::text()
        .map(move |line: &str, out: &mut Emit<(String, u64), String>| {
            wait();
            match line.split_once(' ') {
                Some((first, rest)) => out.emit((first, rest.len() as u64), rest),
                None => counter!("short lines").add(1),
            }
        })
        .group_by::<String>()
        .reduce(move |first, values, out| {
            wait_again();
            while let Some(((_, length), rest)) = values.next_entry() {
                out.emit(first, (length, rest));
            }
        })
}

fn one_group(work: &Work) -> Job {
    let (wait, wait_again) = (pause(work), pause(work));
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, String>| {
            wait();
            out.emit("all", line);
        })
        .reduce(move |_, lines, out| {
            while let Some(line) = lines.next() {
                wait_again();
                out.emit(line, line.len());
            }
        })
}

fn map_only(work: &Work) -> Job {
    let wait = pause(work);
    Job::text().map_only(move |line: &str, out| {
        wait();
        if line.len().is_multiple_of(3) {
            out.emit(line, line.len());
        } else {
            counter!("dropped").add(1);
        }
    })
}

/// Each line many times: more than the least memory of a task holds.
fn spills(work: &Work) -> Job {
    const COPIES: u64 = 60;
    let (wait, wait_again) = (pause(work), pause(work));
    Job::text()
        .map(move |line: &str, out: &mut Emit<(String, u64), String>| {
            wait();
            (0..COPIES).for_each(|copy| out.emit((line, copy), line));
        })
        .group_by::<String>()
        .reduce(move |line, copies, out| {
            wait_again();
            let copies = copies.fold((0, 0), |(count, bytes), copy| (count + 1, bytes + copy.len()));
            out.emit(line, copies);
        })
}

/// Numbers its groups and values, and adds up their lengths; it can be stopped between any two values.
#[derive(Clone, Default)]
struct Tally {
    pause: Duration,
    groups: u64,
    values: u64,
    /// Of the group that is under way.
    bytes: u64,
}

impl Reducer for Tally {
    type Group = u64;
    type Key = u64;
    type Value = String;
    type Output = Text;

    fn reduce(
        &mut self,
        length: u64,
        lines: &mut Values<'_, u64, String>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        while let Some(line) = lines.next() {
            std::thread::sleep(self.pause);
            self.values += 1;
            self.bytes += line.len() as u64;
            out.emit(self.values, line);
        }
        if !lines.is_cut() {
            self.groups += 1;
            out.emit((self.groups, length), std::mem::take(&mut self.bytes));
        }
        Ok(())
    }

    fn save(&self, state: &mut Vec<u8>) -> Result<Save, TaskError> {
        for number in [self.groups, self.values, self.bytes] {
            state.extend_from_slice(&number.to_le_bytes());
        }
        Ok(Save::Saved)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        let mut numbers = state.chunks_exact(8).map(|bytes| bytes.try_into().map(u64::from_le_bytes));
        for number in [&mut self.groups, &mut self.values, &mut self.bytes] {
            *number = numbers
                .next()
                .and_then(Result::ok)
                .ok_or_else(|| TaskError::task(format!("a state of {} bytes is none", state.len())))?;
        }
        Ok(())
    }

    fn resumes_in_group(&self) -> bool {
        true
    }
}

fn stateful(work: &Work) -> Job {
    let wait = pause(work);
    Job::text()
        .map(move |line: &str, out: &mut Emit<u64, String>| {
            wait();
            out.emit(line.len() as u64 % 7, line);
        })
        .reducer(Tally { pause: Duration::from_micros(work.pause), ..Tally::default() })
}
