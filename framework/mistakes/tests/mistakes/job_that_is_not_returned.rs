//! Ends the definition with a semicolon.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn copy(_: &()) -> Job {
    Job::text().map_only(|line: &str, out| out.emit(line, ()));
}

fn main() {
    let _ = napreduce::main(copy);
}
