//! Passes an output path instead of a format.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn main() {
    let _ = Job::text().map_only_to("out.txt", |line: &str, out| out.emit(line, ()));
}
