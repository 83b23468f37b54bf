//! A map that takes bytes where the input gives text.
//! Does not own what is said of that, which stands beside it.
use napreduce::{Emit, Job};

fn main() {
    let _ = Job::text().map(|line: &[u8], out: &mut Emit<u64, ()>| out.emit(line.len() as u64, ()));
}
