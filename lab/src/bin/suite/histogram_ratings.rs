//! The number of each rating: `histogram-ratings INPUT... --output DIR`.

use napreduce::{Emit, Job, Program};
use napreduce_lab::records::Movie;

pub fn histogram() -> Job<(u8, u64)> {
    Job::text()
        .map(|line: &str, out: &mut Emit<u8, u64>| {
            for review in Movie::parse(line)?.reviews() {
                out.emit(review?.rating, 1);
            }
            Ok::<(), String>(())
        })
        .sum()
}

fn main() -> std::process::ExitCode {
    Program::new()
        .about("Counts how often each rating was given")
        .examples("histogram-ratings movies --output histogram")
        .main(histogram)
}
