//! Captures an `Rc`, which threads cannot share.
//! The expected error is in the `.stderr` file.
use std::rc::Rc;

use napreduce::{Emit, Job};

fn main() {
    let prefix = Rc::new(String::from("a"));
    let _ = Job::text().map(move |line: &str, out: &mut Emit<String, u64>| {
        if line.starts_with(prefix.as_str()) {
            out.emit(line, 1);
        }
    });
}
