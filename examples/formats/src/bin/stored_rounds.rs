//! Counts how many words have the same frequency: `stored-rounds INPUT... --output URI`; paths may be in
//! stores.
//!
//! The second of two jobs reads the output of the first.

use std::process::ExitCode;

use napreduce::program::Error;
use napreduce::records::Records;
use napreduce::{Driver, Emit, Job, Program, words};

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

fn spread(_: &()) -> Job {
    Job::records::<String, u64>()
        .map(|(_, count), out: &mut Emit<u64, u64>| out.emit(count, 1))
        .combine(|words, more| *words += more)
        .reduce(|count, words, out| out.emit(count, words.sum()))
}

fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    let counts = driver.intermediate("counts");
    driver.job("count").output(&counts).run()?;
    driver.job("spread").inputs([&counts]).run().map(drop)
}

fn main() -> ExitCode {
    Program::new()
        .about("Counts how many words have the same frequency")
        .job("count", count)
        .job("spread", spread)
        .drive(drive)
}
