//! Finds the most frequent words of text files: `top-words INPUT... --output DIR [--most N]`.
//!
//! The second of two jobs sorts by descending count, then by word. Typed records connect the jobs.

use std::cmp::Reverse;
use std::process::ExitCode;

use clap::Args;
use napreduce::program::Error;
use napreduce::records::Records;
use napreduce::{Driver, Emit, Job, Program, words};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Most {
    /// Number of words to write
    #[arg(long, value_name = "N", default_value_t = 10)]
    most: u64,
}

fn count(_: &()) -> Job<(String, u64)> {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            for word in words(line) {
                out.emit(word, 1);
            }
        })
        .combine(|count, more| *count += more)
        .output(Records::<String, u64>::default())
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// The empty key prefix `()` makes one group of all words. Words after the first `most` are not read.
fn top(&Most { most }: &Most) -> Job {
    Job::records::<String, u64>()
        .map(|(word, count), out: &mut Emit<((), Reverse<u64>, String), ()>| {
            out.emit(((), Reverse(count), word), ());
        })
        .group_by::<()>()
        .reduce(move |(), words, out| {
            for _ in 0..most {
                let Some((((), Reverse(count), word), ())) = words.next_entry() else { break };
                out.emit(word, count);
            }
        })
}

fn drive(driver: &mut Driver, most: &Most) -> Result<(), Error> {
    let counts = driver.intermediate("counts");
    driver.job("count").output(&counts).run()?;
    driver.job("top").parameters(most).inputs([&counts]).reduces(1).run()?;
    Ok(())
}

fn main() -> ExitCode {
    Program::new()
        .about("Finds the most frequent words of text files")
        .examples("top-words README.md --output top --most 3")
        .job("count", count)
        .job("top", top)
        .drive(drive)
}
