//! Emits text where the type of the parameter has a number.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, "1"));
}
