//! The configuration of a worker's daemon, with defaults.

use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::DEFAULT_RACK;
use napreduce_local::worker::{IsolationRules, SuspendRules, TASK_SILENCE_MAX, cores};
use napreduce_local::world::World;

use crate::client::ClusterPlace;

/// Configuration of a worker's daemon.
#[derive(Debug, Clone)]
pub struct WorkerConfiguration {
    /// Its surroundings.
    pub world: World,
    /// The cluster to join.
    pub cluster: ClusterPlace,
    /// Its name, unique in the cluster; `None` for the name stored in its directory, or one derived from the
    /// host's.
    pub name: Option<String>,
    /// Its own directory; `None` for `workers/<name>` in the cluster directory, or in the user's default one.
    pub directory: Option<PathBuf>,
    /// Concurrent map attempts.
    pub map_slots: u32,
    /// Concurrent reduce attempts.
    pub reduce_slots: u32,
    /// `HOST:PORT` to serve map output and logs on; port 0 for any.
    pub bind: String,
    /// The host, or `HOST:PORT`, that others connect to; `None` for the bound address.
    pub advertise: Option<String>,
    /// The name of its rack.
    pub rack: String,
    /// Whether to fetch map output through connections even if it could be read in place.
    pub network_shuffle: bool,
    /// Whether to encrypt map output on the network.
    pub encrypt_shuffle: bool,
    /// Size limit of cached programs and side files in bytes.
    pub blob_bytes_max: u64,
    /// Size limit of each stream of an attempt in bytes.
    pub log_bytes_max: u64,
    /// Size limit of the logs of all ended jobs in bytes.
    pub logs_bytes_max: u64,
    /// Maximum number of ended jobs with logs.
    pub logs_jobs_max: usize,
    /// Free disk space below which it takes no tasks; `None` to derive it from the disk's size.
    pub disk_reserve: Option<u64>,
    /// Limit of map output in memory in bytes; `None` for half of the spare memory.
    pub segment_memory: Option<u64>,
    /// Silence after which a task process is killed.
    pub task_silence_max: Duration,
    /// Maximum time for fetching a program from an unreachable coordinator; then the attempt fails.
    pub fetch_patience: Duration,
    /// The rules for suspending attempts.
    pub suspend: SuspendRules,
    /// The rules for isolating attempts.
    pub isolation: IsolationRules,
    /// The rules for leaving when stopped from outside.
    pub leave: LeaveRules,
}

impl WorkerConfiguration {
    /// The defaults for a worker of this cluster: as many slots of each kind as cores, on loopback.
    pub fn new(cluster: ClusterPlace) -> WorkerConfiguration {
        WorkerConfiguration {
            world: World::real(),
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

/// The rules for leaving when stopped from outside the cluster, for example when a pod is evicted or an
/// allocation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveRules {
    /// The effect of SIGTERM.
    pub on_terminate: OnTerminate,
    /// Time from SIGTERM to exit; attempts save their work in the first half. Kubernetes and many batch
    /// systems give 30 seconds.
    pub grace: Duration,
    /// Wall-time limit; it leaves before that.
    pub time_limit: Option<Duration>,
}

impl Default for LeaveRules {
    fn default() -> LeaveRules {
        LeaveRules {
            on_terminate: OnTerminate::Drain,
            grace: Duration::from_secs(25),
            time_limit: None,
        }
    }
}

/// The effect of SIGTERM on a worker. SIGINT and SIGHUP always hand back attempts at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTerminate {
    /// Attempts save their work first.
    Drain,
    /// Attempts are handed back at once and restarted elsewhere.
    Leave,
}

/// Time between the end of the grace and the limit, for processes to exit.
const LIMIT_MARGIN: Duration = Duration::from_secs(2);

impl LeaveRules {
    /// Returns how long it works before it begins to leave, if it has a time limit.
    pub fn leaves_after(&self) -> Option<Duration> {
        self.time_limit
            .map(|limit| limit.saturating_sub(self.grace + LIMIT_MARGIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_ends_before_time_limit() {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        let leaves = |time_limit, grace| {
            let grace = Duration::from_secs(grace);
            LeaveRules {
                time_limit,
                grace,
                ..LeaveRules::default()
            }
            .leaves_after()
        };
        assert_eq!(leaves(None, 25), None);
        assert_eq!(
            leaves(minutes(240), 25),
            Some(Duration::from_secs(4 * 3600 - 27))
        );
        assert_eq!(
            leaves(minutes(1), 600),
            Some(Duration::ZERO),
            "it leaves at once"
        );
    }
}
