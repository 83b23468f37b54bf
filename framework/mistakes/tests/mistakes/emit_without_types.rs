//! Forgets the type of the parameter that emits.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn main() {
    let _ = Job::text().map(|line: &str, out| out.emit(line, 1)).reduce(|line, ones, out| out.emit(line, ones.sum()));
}
