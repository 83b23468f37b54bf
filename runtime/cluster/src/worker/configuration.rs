//! What can be chosen about the daemon of a worker of a cluster, with the defaults.

use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::DEFAULT_RACK;
use napreduce_local::worker::{IsolationRules, SuspendRules, TASK_SILENCE_MAX, cores};

use crate::client::ClusterPlace;

/// How a worker's daemon is to be.
#[derive(Debug, Clone)]
pub struct WorkerConfiguration {
    /// The cluster it belongs to.
    pub cluster: ClusterPlace,
    /// Its name, unique in the cluster; `None` for the one its directory has, or one made up from the
    /// host's.
    pub name: Option<String>,
    /// Its own directory; `None` for `workers/<name>` in the cluster directory, or in the user's default
    /// one.
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
    /// How long a coordinator that cannot be reached is asked again for a program before the attempt
    /// fails.
    pub fetch_patience: Duration,
    /// How attempts are suspended.
    pub suspend: SuspendRules,
    /// What keeps attempts apart.
    pub isolation: IsolationRules,
    /// How it leaves when somebody else ends it.
    pub leave: LeaveRules,
}

impl WorkerConfiguration {
    /// A worker of this cluster with every default: as many slots of each kind as there are cores,
    /// on loopback.
    pub fn new(cluster: ClusterPlace) -> WorkerConfiguration {
        WorkerConfiguration {
            cluster,
            name: None,
            directory: None,
            map_slots: cores(),
            reduce_slots: cores(),
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

/// How a worker leaves that is not asked by its own cluster: a pod that is evicted, an allocation
/// that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveRules {
    /// What SIGTERM means.
    pub on_terminate: OnTerminate,
    /// How long it has from then until it is gone: what runs there saves its work in the first half.
    /// Kubernetes and many batch systems give 30 seconds.
    pub grace: Duration,
    /// After so long it is killed, as it knows from the start: it leaves by itself before that.
    pub time_limit: Option<Duration>,
}

impl Default for LeaveRules {
    fn default() -> LeaveRules {
        LeaveRules { on_terminate: OnTerminate::Drain, grace: Duration::from_secs(25), time_limit: None }
    }
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

impl LeaveRules {
    /// How long it works until it begins to leave by itself, if it has a time limit.
    pub fn leaves_after(&self) -> Option<Duration> {
        self.time_limit.map(|limit| limit.saturating_sub(self.grace + LIMIT_MARGIN))
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
