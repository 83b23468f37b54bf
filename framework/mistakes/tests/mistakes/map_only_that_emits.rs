//! Takes `Emit` in a job without reduce, which writes to `Output`.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map_only(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1));
}
