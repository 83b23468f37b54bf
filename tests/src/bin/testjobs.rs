//! Jobs that the whole-system tests need: hard inputs, misbehaving user code, every stage of the builder.
//!
//! Owns one definition for each behaviour, chosen with `--job`. Does not own the expectations.

use std::cmp::Reverse;
use std::process::ExitCode;

use clap::Args;
use napreduce::{
    Driver, Emit, Error, FixedBytes, Job, Mapper, Output, Program, Records, Reducer, TaskError, TaskInfo,
    Text, TextLines, Values, counter, words,
};
use serde::{Deserialize, Serialize};

/// What to run and how it should misbehave.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
struct Choice {
    /// Name of the definition
    #[arg(long)]
    job: String,
    /// A number some of them need
    #[arg(long, default_value = "1")]
    number: u64,
}

fn words_of_bytes(_: &Choice) -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, u64>| {
            for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

fn words_without_combiner(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// The attempt's number, from the environment that every task process has.
fn attempt_number() -> u64 {
    let id = std::env::var("NAPREDUCE_ATTEMPT_ID").unwrap_or_default();
    id.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Ends this very process as the out-of-memory killer would.
fn kill_myself() {
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::KILL).expect("a process may kill itself");
}

/// The first attempt of each map dies without warning at record `number`.
fn killed_map(choice: &Choice) -> Job {
    let at = choice.number;
    let seen = std::sync::atomic::AtomicU64::new(0);
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            if attempt_number() == 1 && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == at {
                kill_myself();
            }
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// The first attempt of each reduce dies without warning at group `number`.
fn killed_reduce(choice: &Choice) -> Job {
    let at = choice.number;
    let seen = std::sync::atomic::AtomicU64::new(0);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .combine(|count, more| *count += more)
        .reduce(move |word, counts, out| {
            if attempt_number() == 1 && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == at {
                kill_myself();
            }
            out.emit(word, counts.sum());
        })
}

fn panic_in_map(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            assert!(line != "bad", "bad row");
            out.emit(line, 1);
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

fn panic_in_combine(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
        .combine(|count, _| panic!("cannot combine {count}"))
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

fn panic_in_reduce(_: &Choice) -> Job {
    Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1)).reduce(
        |word, counts, out| {
            assert!(word != "bad", "bad group");
            out.emit(word, counts.sum());
        },
    )
}

fn error_in_map(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), std::num::ParseIntError> {
            out.emit(line.parse()?, ());
            Ok(())
        })
        .reduce(|number, _, out| out.emit(number, ()))
}

/// Lines `user TAB time`; for each user the times in order, joined by commas.
fn visits(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| match line.split_once('\t') {
            Some((user, time)) => match time.parse() {
                Ok(time) => out.emit((user, time), ()),
                Err(_) => counter!("bad times").add(1),
            },
            None => counter!("bad lines").add(1),
        })
        .group_by::<String>()
        .reduce(|user, visits, out| {
            let mut times = String::new();
            while let Some(((_, time), ())) = visits.next_entry() {
                times.push_str(&format!("{}{time}", if times.is_empty() { "" } else { "," }));
            }
            out.emit(user, times);
        })
}

/// Each line `number` times under one key: the size of one group is lines times `number`.
fn one_key(choice: &Choice) -> Job {
    let copies = choice.number;
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            let length = line.len() as u64;
            (0..copies).for_each(|_| out.emit("key", length));
        })
        .reduce(|key, lengths, out| {
            let (count, total) =
                lengths.fold((0u64, 0u64), |(count, total), length| (count + 1, total + length));
            out.emit(key, (count, total));
        })
}

/// Reads only the first value of each group, so that the framework skips the rest.
fn first_of_group(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, String>| {
            if let Some((key, value)) = line.split_once('\t') {
                out.emit(key, value);
            }
        })
        .reduce(|key, values, out| {
            if let Some(value) = values.next() {
                out.emit(key, value);
            }
        })
}

/// Lines as keys, lengths as values: for keys of any length.
fn lines_as_keys(_: &Choice) -> Job {
    Job::bytes().map(|line: &[u8], out: &mut Emit<Vec<u8>, u64>| out.emit(line, line.len() as u64)).reduce(
        |line, lengths, out| {
            let digest =
                line.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            out.emit((digest, line.len()), lengths.count());
        },
    )
}

/// A value of `number` bytes for each line.
fn big_values(choice: &Choice) -> Job {
    let length = choice.number as usize;
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, String>| {
            out.emit(line, &line.chars().cycle().take(length).collect::<String>());
        })
        .reduce(|key, values, out| {
            while let Some(value) = values.next() {
                out.emit(key, value);
            }
        })
}

/// Numbers, one a line, shared out by their remainder.
fn by_remainder(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, ()>| out.emit(line.parse().unwrap_or(0), ()))
        .partition_by(|number, partitions| (number % u64::from(partitions)) as u32)
        .reduce(|number, copies, out| out.emit(number, copies.count()))
}

/// Chooses a partition that does not exist.
fn bad_partition(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
        .partition_by(|_, partitions| partitions)
        .reduce(|line, _, out| out.emit(line, ()))
}

/// Writes records of another length than the output format wants.
fn bad_length(_: &Choice) -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, ()>| out.emit(line, ()))
        .output(FixedBytes { length: 10 })
        .reduce(|line, _, out| out.write(line))
}

/// Counts lines in the mapper's own state and emits at the end; numbers its groups in the reducer's.
#[derive(Clone, Default)]
struct Summary {
    lines: u64,
    prepared: bool,
}

impl Mapper for Summary {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        self.prepared = task.input().is_some();
        Ok(())
    }

    fn map(&mut self, _: &str, _: &mut Emit<String, u64>) -> Result<(), TaskError> {
        self.lines += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        out.emit("lines", self.lines);
        out.emit("prepared", u64::from(self.prepared));
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Numbered(u64);

impl Reducer for Numbered {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn setup(&mut self, _: &TaskInfo<'_>, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit("begin", ());
        Ok(())
    }

    fn reduce(
        &mut self,
        name: &str,
        values: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        self.0 += 1;
        out.emit((self.0, name), values.sum());
        Ok(())
    }

    fn finish(&mut self, out: &mut Output<Text>) -> Result<(), TaskError> {
        out.emit("end", self.0);
        Ok(())
    }
}

fn stateful(_: &Choice) -> Job {
    Job::text().mapper(Summary::default()).reducer(Numbered::default())
}

/// The first attempt of reduce 0 flips one bit of a sealed map output that it is about to read.
#[derive(Clone)]
struct Vandal {
    /// The byte to damage, from the start of the file, modulo its length.
    at: u64,
}

impl Reducer for Vandal {
    type Group = String;
    type Key = String;
    type Value = u64;
    type Output = Text;

    fn setup(&mut self, task: &TaskInfo<'_>, _: &mut Output<Text>) -> Result<(), TaskError> {
        if task.attempt().to_string() == "job_0001_r_0000.1" {
            let path = "out/_temporary/job_0001/shuffle/job_0001_m_0001.1.segment";
            let mut bytes =
                std::fs::read(path).map_err(|error| TaskError::task(format!("{path}: {error}")))?;
            let at = (self.at % bytes.len() as u64) as usize;
            bytes[at] ^= 1;
            let file = std::fs::OpenOptions::new().write(true).open(path);
            file.and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64))
                .map_err(|error| TaskError::task(format!("{path}: {error}")))?;
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        word: &str,
        counts: &mut Values<'_, String, u64>,
        out: &mut Output<Text>,
    ) -> Result<(), TaskError> {
        out.emit(word, counts.sum());
        Ok(())
    }
}

fn damaged(choice: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .reducer(Vandal { at: choice.number })
}

/// Never ends by itself: for interrupts. Says on standard error that it runs, and as which process.
fn endless(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| {
            let id = std::env::var("NAPREDUCE_ATTEMPT_ID").unwrap_or_default();
            eprintln!("running {id} {}", std::process::id());
            out.emit(line, ());
            while !line.is_empty() {
                std::thread::park();
            }
        })
        .reduce(|line, _, out| out.emit(line, ()))
}

/// First job of the chain: counts as typed records.
fn count_to_records(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
        .combine(|count, more| *count += more)
        .output(Records::<String, u64>::default())
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Second job of the chain: by falling count, then word.
fn by_count(_: &Choice) -> Job {
    Job::records::<String, u64>()
        .map(|(word, count), out: &mut Emit<(Reverse<u64>, String), ()>| out.emit((Reverse(count), word), ()))
        .total_order()
        .reduce(|(count, word), _, out| out.emit(word, count.0))
}

fn drive(driver: &mut Driver<'_>, choice: &Choice) -> Result<(), Error> {
    if choice.job != "chain" {
        return driver.job(&choice.job).parameters(choice).run().map(drop);
    }
    let counts = driver.intermediate("counts");
    driver.job("count-to-records").parameters(choice).output(&counts).run()?;
    driver.job("by-count").parameters(choice).inputs([&counts]).run()?;
    Ok(())
}

fn main() -> ExitCode {
    Program::new()
        .about("Jobs of the whole-system tests")
        .job("words-of-bytes", words_of_bytes)
        .job("words-without-combiner", words_without_combiner)
        .job("killed-map", killed_map)
        .job("killed-reduce", killed_reduce)
        .job("panic-in-map", panic_in_map)
        .job("panic-in-combine", panic_in_combine)
        .job("panic-in-reduce", panic_in_reduce)
        .job("error-in-map", error_in_map)
        .job("visits", visits)
        .job("one-key", one_key)
        .job("first-of-group", first_of_group)
        .job("lines-as-keys", lines_as_keys)
        .job("big-values", big_values)
        .job("by-remainder", by_remainder)
        .job("bad-partition", bad_partition)
        .job("bad-length", bad_length)
        .job("stateful", stateful)
        .job("damaged", damaged)
        .job("endless", endless)
        .job("count-to-records", count_to_records)
        .job("by-count", by_count)
        .drive(drive)
}
