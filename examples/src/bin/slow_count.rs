//! Counts the words of text and takes its time over each: `slow-count INPUT... --output DIR [--pause
//! MILLIS]`. Something to look at, suspend and checkpoint while it runs.

use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use napreduce::{Emit, Job, Program, words};
use serde::{Deserialize, Serialize};

#[derive(Debug, Args, Serialize, Deserialize)]
struct Pauses {
    /// Milliseconds that the reduce waits for each word
    #[arg(long, value_name = "MILLIS", default_value = "200")]
    pause: u64,
}

fn slow_count(pauses: &Pauses) -> Job {
    let pause = Duration::from_millis(pauses.pause);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| words(line).for_each(|word| out.emit(word, 1)))
        .combine(|count, more| *count += more)
        .reduce(move |word, counts, out| {
            sleep(pause);
            out.emit(word, counts.sum());
        })
}

fn main() -> ExitCode {
    Program::new()
        .about("Counts the words of text, slowly, so that there is time to suspend and checkpoint its tasks")
        .examples("slow-count README.md --output slow --cluster DIR --detach")
        .main(slow_count)
}
