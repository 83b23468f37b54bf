//! Adds up texts.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn main() {
    let _ = Job::text().flat_map(|line: &str| Some((1u64, line.to_owned()))).sum();
}
