//! Finds the most frequent words of text files: `top-words INPUT... --output DIR [--most N]`.
//!
//! The second of two jobs sorts by descending count, then by word.

use clap::Args;
use napreduce::program::Error;
use napreduce::{Driver, Job, Program, words};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Most {
    /// Number of words to write
    #[arg(long, value_name = "N", default_value_t = 10)]
    most: usize,
}

fn count() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn top(&Most { most }: &Most) -> Job<(String, u64)> {
    Job::records().top_by_value(most)
}

fn drive(driver: &mut Driver, most: &Most) -> Result<(), Error> {
    let counts = driver.job(count).dataset()?;
    driver
        .job(top)
        .parameters(most)
        .inputs([&counts])
        .reduces(1)
        .run()
        .map(drop)
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Finds the most frequent words of text files")
        .examples("top-words README.md --output top --most 3")
        .drive(drive)
}
