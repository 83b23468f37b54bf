//! Counts how many words have the same frequency: `stored-rounds INPUT... --output URI`; paths may be in
//! stores.
//!
//! The second of two jobs reads the output of the first.

use napreduce::program::Error;
use napreduce::{Driver, Job, Program, words};

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn spread() -> Job<(u64, u64)> {
    Job::records::<String, u64>()
        .flat_map(|(_, count): (&str, u64)| [count])
        .count()
}

fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    let counts = driver.job(count).dataset()?;
    driver.job(spread).inputs([&counts]).run().map(drop)
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts how many words have the same frequency")
        .drive(drive)
}
