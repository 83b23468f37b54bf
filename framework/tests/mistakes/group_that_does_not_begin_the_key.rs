//! Groups by a type that the key does not begin with.
//! Does not own what is said of that, which stands beside it.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text()
        .map(|line: &str, out: &mut Emit<(String, u64), ()>| out.emit((line, 1), ()))
        .group_by::<u64>();
}
