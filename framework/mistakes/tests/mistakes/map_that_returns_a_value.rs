//! A map that returns a value instead of emitting it.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map(|line: &str, _: &mut Emit<u64, ()>| line.len());
}
