//! Signals that end a command.

use std::io;

use napreduce_local::process::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::parent::ends_with_parent;

/// Returns the signals that end a command. SIGHUP and SIGINT are left out if they are ignored from the start, as
/// under `nohup` and for background jobs of scripts; SIGINT from a parent that this process ends with is not.
pub fn ending_signals() -> io::Result<Vec<i32>> {
    let mut signals = vec![SIGTERM];
    if ends_with_parent() || !is_ignored(SIGINT)? {
        signals.push(SIGINT);
    }
    if !is_ignored(SIGHUP)? {
        signals.push(SIGHUP);
    }
    Ok(signals)
}
