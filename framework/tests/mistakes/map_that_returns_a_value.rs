//! A map that returns what it should emit.
//! Does not own what is said of that, which stands beside it.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map(|line: &str, _: &mut Emit<u64, ()>| line.len());
}
