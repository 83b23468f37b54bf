//! Counts the words of text with a pause at each: `slow-count INPUT... --output DIR [--pause MILLIS]`. Its
//! tasks run long enough to be watched, suspended and checkpointed.

use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use napreduce::builder::Sum;
use napreduce::{Emit, Job, Program, words};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Pauses {
    /// Pause of the reduce at each word, in milliseconds
    #[arg(long, value_name = "MILLIS", default_value = "200")]
    pause: u64,
}

fn slow_count(pauses: &Pauses) -> Job {
    let pause = Duration::from_millis(pauses.pause);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            words(line).for_each(|word| out.emit(word, 1))
        })
        .combine(Sum::add)
        .reduce(move |word, counts, out| {
            sleep(pause);
            out.emit(word, counts.sum());
        })
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts the words of text slowly, for trying out suspend and checkpoint")
        .examples("slow-count README.md --output slow --cluster DIR --detach")
        .main(slow_count)
}
