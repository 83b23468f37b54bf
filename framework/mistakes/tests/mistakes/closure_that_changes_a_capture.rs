//! Counts in a captured variable instead of a counter or a state.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let mut lines = 0;
    let _ = Job::text().map(move |line: &str, out: &mut Emit<String, u64>| {
        lines += 1;
        out.emit(line, lines);
    });
}
