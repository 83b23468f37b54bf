//! Jobs whose user code panics, fails, kills itself, damages files or never ends.
//!
//! Owns the misbehaviour. Does not own what is expected to follow.

use napreduce::{Emit, FixedBytes, Job, Output, Reducer, TaskError, TaskInfo, Text, Values};

use crate::Choice;

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
pub fn killed_map(choice: &Choice) -> Job {
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
pub fn killed_reduce(choice: &Choice) -> Job {
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

pub fn panic_in_map(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            assert!(line != "bad", "bad row");
            out.emit(line, 1);
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

pub fn panic_in_combine(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
        .combine(|count, _| panic!("cannot combine {count}"))
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

pub fn panic_in_reduce(_: &Choice) -> Job {
    Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1)).reduce(
        |word, counts, out| {
            assert!(word != "bad", "bad group");
            out.emit(word, counts.sum());
        },
    )
}

pub fn error_in_map(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, ()>| -> Result<(), std::num::ParseIntError> {
            out.emit(line.parse()?, ());
            Ok(())
        })
        .reduce(|number, _, out| out.emit(number, ()))
}

/// Chooses a partition that does not exist.
pub fn bad_partition(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
        .partition_by(|_, partitions| partitions)
        .reduce(|line, _, out| out.emit(line, ()))
}

/// Writes records of another length than the output format wants.
pub fn bad_length(_: &Choice) -> Job {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, ()>| out.emit(line, ()))
        .output(FixedBytes { length: 10 })
        .reduce(|line, _, out| out.write(line))
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

pub fn damaged(choice: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace().for_each(|word| out.emit(word, 1));
        })
        .reducer(Vandal { at: choice.number })
}

/// Never ends by itself: for interrupts. Says on standard error that it runs, and as which process.
pub fn endless(_: &Choice) -> Job {
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
