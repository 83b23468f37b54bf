//! Counts how many words have the same frequency: `stored-rounds INPUT... --output URI`; paths may be in
//! stores.
//!
//! The second of two jobs reads the output of the first.

use std::process::ExitCode;

use napreduce::program::Error;
use napreduce::{Driver, Emit, Job, Program, words};

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn spread() -> Job<(u64, u64)> {
    Job::records::<String, u64>().map(|(_, count), out: &mut Emit<u64, u64>| out.emit(count, 1)).sum()
}

fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    let counts = driver.job(count).dataset()?;
    driver.job(spread).inputs([&counts]).run().map(drop)
}

fn main() -> ExitCode {
    Program::new().about("Counts how many words have the same frequency").drive(drive)
}
