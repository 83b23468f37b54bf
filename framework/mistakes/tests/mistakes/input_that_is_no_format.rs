//! Passes an input path instead of a format.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn main() {
    let _ = Job::input("data.txt").map_only(|line, out| out.emit(line, ()));
}
