//! What whoever starts a worker decides, and what holds unless they do.
//!
//! Owns the plain data and its defaults. Does not own what is made of it (`start`).

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_core::DEFAULT_RACK;

use crate::client::ClusterPlace;

/// A task process that says nothing for so long is ended, unless it is said otherwise.
pub(super) const TASK_SILENCE_MAX: Duration = Duration::from_secs(30);

/// How a worker's daemon is to be.
#[derive(Debug, Clone)]
pub struct WorkerConfiguration {
    /// The cluster it belongs to.
    pub cluster: ClusterPlace,
    /// Its name, unique in the cluster; `None` for the one its directory has, or one made up from the host's.
    pub name: Option<String>,
    /// Its own directory; `None` for `workers/<name>` in the cluster directory, or in the user's default one.
    pub directory: Option<PathBuf>,
    /// How many map attempts it runs at once.
    pub map_slots: u32,
    /// How many reduce attempts it runs at once.
    pub reduce_slots: u32,
    /// Where it serves map output and logs, `HOST:PORT`; port 0 for any.
    pub bind: String,
    /// The host under which others reach that, or `HOST:PORT`; `None` for what it binds to.
    pub advertise: Option<String>,
    /// The name of its rack: workers that say the same are near each other.
    pub rack: String,
    /// Map output comes through connections even where it could be read in place.
    pub network_shuffle: bool,
    /// Map output comes encrypted.
    pub encrypt_shuffle: bool,
    /// Bytes of programs and side files that are kept for other jobs.
    pub blob_bytes_max: u64,
    /// Bytes that are kept of each stream of an attempt.
    pub log_bytes_max: u64,
    /// Bytes that are kept of the logs of all jobs that have ended.
    pub logs_bytes_max: u64,
    /// Of how many jobs that have ended logs are kept.
    pub logs_jobs_max: usize,
    /// What must be free on the disk of its directory, or it takes no tasks; by the size of the
    /// disk, without.
    pub disk_reserve: Option<u64>,
    /// How many bytes of map output stay in memory; half of what there is to spare, without.
    pub segment_memory: Option<u64>,
    /// A task process that says nothing for so long is ended.
    pub task_silence_max: Duration,
    /// How long a coordinator that cannot be reached is asked again for a program before the attempt fails.
    pub fetch_patience: Duration,
    /// How attempts are suspended.
    pub suspend: SuspendRules,
    /// What keeps attempts apart.
    pub isolation: IsolationRules,
    /// How it leaves when somebody else ends it.
    pub leave: LeaveRules,
}

/// How a worker leaves that is not asked by its own cluster: a pod that is evicted, an allocation
/// that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveRules {
    /// What SIGTERM means.
    pub on_terminate: OnTerminate,
    /// How long it has from then until it is gone: what runs there saves its work in the first half.
    pub grace: Duration,
    /// After so long it is killed, as it knows from the start: it leaves by itself before that.
    pub time_limit: Option<Duration>,
}

/// What SIGTERM means to a worker. Ctrl-C and a hang-up always have it give back at once what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTerminate {
    /// What runs there saves its work first.
    Drain,
    /// What runs there is given back at once and done again elsewhere.
    Leave,
}

/// What is left between the end of the grace and a time limit, for processes to end in.
const LIMIT_MARGIN: Duration = Duration::from_secs(2);

impl Default for LeaveRules {
    /// It drains, within the 30 seconds that Kubernetes and many batch systems give.
    fn default() -> LeaveRules {
        LeaveRules { on_terminate: OnTerminate::Drain, grace: Duration::from_secs(25), time_limit: None }
    }
}

impl LeaveRules {
    /// How long it works until it begins to leave by itself, if it has a time limit.
    pub fn leaves_after(&self) -> Option<Duration> {
        self.time_limit.map(|limit| limit.saturating_sub(self.grace + LIMIT_MARGIN))
    }
}

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

impl Default for IsolationRules {
    /// The best there is; four times the task memory.
    fn default() -> IsolationRules {
        IsolationRules { mode: IsolationMode::Auto, memory_factor: 4, pass_environment: Vec::new() }
    }
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

impl Default for SuspendRules {
    /// A second of grace; 80 % of swap; 10 % of pressure; moved out when memory is short.
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

impl WorkerConfiguration {
    /// A worker of this cluster with every default: as many slots of each kind as there are cores,
    /// on loopback.
    pub fn new(cluster: ClusterPlace) -> WorkerConfiguration {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let slots = u32::try_from(cores).unwrap_or(u32::MAX);
        WorkerConfiguration {
            cluster,
            name: None,
            directory: None,
            map_slots: slots,
            reduce_slots: slots,
            bind: String::from("127.0.0.1:0"),
            advertise: None,
            rack: String::from(DEFAULT_RACK),
            network_shuffle: false,
            encrypt_shuffle: false,
            blob_bytes_max: 4 << 30,
            log_bytes_max: 16 << 20,
            logs_bytes_max: 1 << 30,
            logs_jobs_max: 1_000,
            disk_reserve: None,
            segment_memory: None,
            task_silence_max: TASK_SILENCE_MAX,
            fetch_patience: Duration::from_secs(60),
            suspend: SuspendRules::default(),
            isolation: IsolationRules::default(),
            leave: LeaveRules::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_ends_before_the_limit() {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        let leaves = |time_limit, grace| {
            let grace = Duration::from_secs(grace);
            LeaveRules { time_limit, grace, ..LeaveRules::default() }.leaves_after()
        };
        assert_eq!(leaves(None, 25), None);
        assert_eq!(leaves(minutes(240), 25), Some(Duration::from_secs(4 * 3600 - 27)));
        assert_eq!(leaves(minutes(1), 600), Some(Duration::ZERO), "it leaves at once");
    }
}
