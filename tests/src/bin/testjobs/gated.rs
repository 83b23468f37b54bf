//! A job whose tasks end when they are told to, and can be preempted until then.
//!
//! Owns the waiting for gates, which are files. Does not own who opens them, nor in which order.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce::{Emit, Job};

use crate::Choice;

/// How long a record or a group takes while the gate is closed.
const PAUSE: Duration = Duration::from_millis(10);

/// Each line of its input names the gate of its map, the gate of its reduce, and ends in a word that is `last` in the last
/// one. Each line is a record of the map and makes a group of the reduce; the last of either waits until its gate is open.
pub fn gated(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let (own, rest) = line.split_once('\t').unwrap_or((line, line));
            pass(own, line);
            out.emit(rest, 1);
        })
        .reduce(|key, counts, out| {
            let (gate, _) = key.split_once('\t').unwrap_or((key, key));
            pass(gate, key);
            out.emit(key, counts.sum());
        })
}

/// Waits a little while there is no file of that name; in the last record or group, until there is one. A task has one
/// gate, and need not look at it again when it is open.
fn pass(gate: &str, record: &str) {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let is_last = record.ends_with("last");
    while !OPEN.load(Ordering::Relaxed) {
        if Path::new(gate).exists() {
            OPEN.store(true, Ordering::Relaxed);
        } else {
            std::thread::sleep(PAUSE);
            if !is_last {
                return;
            }
        }
    }
}
