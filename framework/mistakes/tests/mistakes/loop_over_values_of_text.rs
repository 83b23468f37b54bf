//! Loops over texts by `for`, which would clone each of them.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text()
        .map(|line: &str, out: &mut Emit<u64, String>| out.emit(line.len() as u64, line))
        .reduce(|_, lines, out| {
            for line in lines {
                out.emit(line, ());
            }
        });
}
