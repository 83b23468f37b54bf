//! Ends a process with the program that started it: daemons with `nap up`, `nap up` with `nap demo`, simulations
//! with the dashboard. They receive SIGINT, as from Ctrl-C, and end at once.

use anyhow::{Context, Result, bail};
use napreduce_local::process::end_at_interrupt;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// Contains the PID of the process that this one ends with.
pub const PARENT_VARIABLE: &str = "NAPREDUCE_UP_PROCESS";

/// Returns whether this process ends with its parent.
pub fn ends_with_parent() -> bool {
    std::env::var_os(PARENT_VARIABLE).is_some()
}

/// Requests a signal from the kernel at the end of the parent, if `PARENT_VARIABLE` is set. Must be called before
/// any thread starts.
pub fn end_with_parent() -> Result<()> {
    let Some(parent) = std::env::var_os(PARENT_VARIABLE) else {
        return Ok(());
    };
    let parent = parent
        .to_str()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::from_raw);
    // The user may have started the parent with SIGINT ignored, for example by `&` in a script.
    end_at_interrupt().context("cannot handle SIGINT")?;
    set_parent_process_death_signal(Some(Signal::INT))
        .context("cannot watch the parent process")?;
    // It may have ended before the kernel was asked.
    if parent.is_none() || getppid() != parent {
        bail!("the parent process has ended");
    }
    Ok(())
}
