//! A job whose tasks end when they are told to.
//!
//! Owns the waiting for gates, which are files. Does not own who opens them, nor in which order.

use std::path::Path;
use std::time::Duration;

use napreduce::{Emit, Job};

use crate::Choice;

/// Each line of its input names the gate of its map and the gate of its reduce, with a tab in between.
pub fn gated(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let (own, reduce) = line.split_once('\t').unwrap_or((line, line));
            pass(own);
            out.emit(reduce, 1);
        })
        .reduce(|gate, counts, out| {
            pass(gate);
            out.emit(gate, counts.sum());
        })
}

/// Waits until there is a file.
fn pass(gate: &str) {
    while !Path::new(gate).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}
