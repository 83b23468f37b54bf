//! Groups by a type that is not a prefix of the key.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| out.emit((line, 1), ()))
        .group_by::<u64>();
}
