//! A map that takes bytes although the input is text.
//! The expected error is in the `.stderr` file.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map(|line: &[u8], out: &mut Emit<u64, ()>| out.emit(line.len() as u64, ()));
}
