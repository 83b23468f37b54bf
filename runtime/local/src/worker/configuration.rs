//! The rules of a worker for running attempts, with their defaults.

use std::num::NonZeroUsize;
use std::time::Duration;

/// Default time after which a silent task process is killed.
pub const TASK_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Isolation of attempts: resource limits and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationRules {
    pub mode: IsolationMode,
    /// Memory limit of an attempt as a multiple of its task memory, in addition to 256 MiB for its program.
    pub memory_factor: u32,
    /// Names of additional variables passed from the daemon's environment to tasks.
    pub pass_environment: Vec<String>,
}

impl Default for IsolationRules {
    fn default() -> IsolationRules {
        IsolationRules {
            mode: IsolationMode::Auto,
            memory_factor: 4,
            pass_environment: Vec::new(),
        }
    }
}

/// Means of limiting an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationMode {
    /// Control groups where the kernel permits them, otherwise the watchdog.
    Auto,
    /// Control groups; the worker does not start without them.
    Cgroup,
    /// The worker samples the memory of a task's processes several times a second.
    Watchdog,
    /// No limits.
    None,
}

/// The rules for suspending attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendRules {
    /// Time for a task to reach a boundary before it is stopped anywhere.
    pub grace: Duration,
    /// Share of free swap that suspended attempts may fill in addition to spare memory.
    pub swap_share_percent: u32,
    /// Upper limit of their memory in bytes; `None` for no such limit.
    pub memory_max: Option<u64>,
    /// No suspensions while all tasks of the machine stall on memory for more than this share of the time.
    pub pressure_max_percent: u32,
    /// When the memory of a suspended attempt is paged out proactively.
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

/// When memory of suspended attempts is paged out proactively.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOut {
    /// If less memory is available than a task of the job may use.
    WhenShort,
    /// Always, if there is swap.
    Always,
    /// Never; the kernel pages out under pressure.
    Never,
}

pub fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}
