//! Counts words slowly, for tests that kill a task in the middle: `stored-pauses INPUT... --output DIR
//! --pause 2`.
//!
//! It pauses at each line and each word.

use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use napreduce::{Emit, Job, Program, words};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Pause {
    /// Pause at each line of a map and each word of a reduce, in milliseconds
    #[arg(long, value_name = "MILLIS", default_value_t = 0)]
    pause: u64,
}

fn pauses(&Pause { pause }: &Pause) -> Job {
    let pause = Duration::from_millis(pause);
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            sleep(pause);
            words(line).for_each(|word| out.emit(word, 1));
        })
        .reduce(move |word, counts, out| {
            sleep(pause);
            out.emit(word, counts.sum());
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts words, and pauses at each of them")
        .examples("stored-pauses README.md --output counts --pause 2")
        .main(pauses)
}
