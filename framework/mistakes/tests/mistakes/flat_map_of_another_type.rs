//! Returns items that cannot be emitted.
//! The expected error is in the `.stderr` file.
use napreduce::Job;

fn main() {
    let _ = Job::text().flat_map(|line: &str| Some((line.to_owned(), line.len()))).count();
}
