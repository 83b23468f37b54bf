//! A process that ends with the program that started it.
//!
//! Owns the agreement between `nap up` and its daemons, and between a page and its simulations. Does not own
//! the ending, which is that of any Ctrl-C: at once, since nobody is left who would wait for a worker that
//! saves what it runs.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Holds the number of the process that this one ends with.
pub const PARENT_VARIABLE: &str = "NAPREDUCE_UP_PROCESS";

/// Has the kernel ask this process to end when the one that started it ends, if it is to; called before any
/// thread.
pub fn end_with_parent() -> Result<()> {
    let Some(parent) = std::env::var_os(PARENT_VARIABLE) else { return Ok(()) };
    let parent = parent.to_str().and_then(|text| text.parse().ok()).and_then(Pid::from_raw);
    // Not ignored here, whatever the shell says: the program that started this one has a handler for it.
    set_parent_process_death_signal(Some(Signal::INT)).context("cannot watch the parent process")?;
    // It may have ended before the kernel was asked.
    if parent.is_none() || getppid() != parent {
        bail!("the program that started this one has ended");
    }
    Ok(())
}
