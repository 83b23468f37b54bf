//! The rules by which a worker runs attempts, with their defaults.

use std::num::NonZeroUsize;
use std::time::Duration;

/// A task process that says nothing for so long is ended, unless it is said otherwise.
pub const TASK_SILENCE_MAX: Duration = Duration::from_secs(30);

/// What keeps attempts from taking the machine, and what they know of their daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationRules {
    /// By which means.
    pub mode: IsolationMode,
    /// How many times its task memory an attempt may hold, beside 256 MiB for its program.
    pub memory_factor: u32,
    /// Names of variables of the daemon's environment that tasks find in theirs, beside those that
    /// programs need.
    pub pass_environment: Vec<String>,
}

impl Default for IsolationRules {
    fn default() -> IsolationRules {
        IsolationRules { mode: IsolationMode::Auto, memory_factor: 4, pass_environment: Vec::new() }
    }
}

/// Means by which an attempt is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationMode {
    /// Control groups where the kernel lets this worker make some, else the watchdog.
    Auto,
    /// Control groups, or the worker does not start.
    Cgroup,
    /// The worker looks at what a task's process holds, several times a second.
    Watchdog,
    /// None.
    None,
}

/// How a worker suspends attempts, and when it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendRules {
    /// How long a task may take to come to a boundary before it is stopped where it is.
    pub grace: Duration,
    /// What share of free swap, beside spare memory, suspended attempts may fill.
    pub swap_share_percent: u32,
    /// How many bytes they may hold in any case; `None` for no such limit.
    pub memory_max: Option<u64>,
    /// Nothing is suspended while all tasks of the machine wait for memory for more than this part
    /// of the time.
    pub pressure_max_percent: u32,
    /// When the memory of a suspended attempt is moved to swap without waiting for the kernel to do so.
    pub page_out: PageOut,
}

impl Default for SuspendRules {
    fn default() -> SuspendRules {
        SuspendRules {
            grace: Duration::from_secs(1),
            swap_share_percent: 80,
            memory_max: None,
            pressure_max_percent: 10,
            page_out: PageOut::WhenShort,
        }
    }
}

/// When memory of suspended attempts is moved out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOut {
    /// When less is available than a task of the job may use.
    WhenShort,
    /// Always, where there is swap.
    Always,
    /// Never; the kernel does it when it has to.
    Never,
}

pub fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}
