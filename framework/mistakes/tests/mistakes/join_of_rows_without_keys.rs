//! Returns a row without its key.
//! The expected error is in the `.stderr` file.
use napreduce::Job;
use napreduce::input::TextLines;

fn main() {
    let _ = Job::join("users", TextLines, |line| line.len());
}
