//! What can be chosen about a coordinator.
//!
//! Owns the values and their defaults. Does not own flags and files that set them (the operator's binary).

use std::time::Duration;

use napreduce_core::{EngineSettings, PreemptionSettings, SpeculationSettings};
use napreduce_schedulers::SchedulerConfiguration;

use crate::cluster_directory::ClusterDirectory;
use crate::journal::{EngineRules, FsyncPolicy};

/// How a coordinator works.
#[derive(Debug, Clone)]
pub struct CoordinatorConfiguration {
    /// Its cluster directory; made if it is missing.
    pub directory: ClusterDirectory,
    /// `HOST:PORT` to listen at; port 0 means any.
    pub bind: String,
    /// How often workers say that they are there.
    pub heartbeat: Duration,
    /// A worker that is silent for so long is lost.
    pub liveness: Duration,
    /// When the journal is forced to the disk.
    pub fsync: FsyncPolicy,
    /// The journal is replaced by a snapshot when it has grown by so many bytes.
    pub journal_bytes_max: u64,
    /// How many ended jobs are kept in history.
    pub history_max: usize,
    /// How many bytes their files may have; the oldest go first.
    pub history_bytes_max: u64,
    /// When a straggler gets a second attempt that races it; `None` for never.
    pub speculation: Option<SpeculationSettings>,
    /// A task fails for good when so many workers died while it ran there alone; never, when zero.
    pub crashes_max: u32,
    /// Bytes of programs and side files that are kept for later jobs.
    pub blob_bytes_max: u64,
    /// Who gets a free slot, and whose slot is taken for whom.
    pub scheduler: SchedulerConfiguration,
    /// What a chain of jobs passes on is removed when its program was not heard of for so long and none of
    /// its jobs runs.
    pub chain_grace: Duration,
    /// What becomes of a primitive that the scheduler prefers.
    pub preemption: PreemptionSettings,
    /// Queues that jobs may name though the scheduler makes no difference between them, beside `default`.
    pub queues: Vec<String>,
}

impl CoordinatorConfiguration {
    /// Heartbeats unless said otherwise.
    pub const HEARTBEAT_DEFAULT: Duration = Duration::from_millis(200);
    /// Patience with workers unless said otherwise: 25 heartbeats.
    pub const LIVENESS_DEFAULT: Duration = Duration::from_secs(5);
    /// The journal goes to the disk so often unless said otherwise.
    pub const FSYNC_DEFAULT: FsyncPolicy = FsyncPolicy::Interval(Duration::from_millis(100));
    /// Bytes of journal between snapshots unless said otherwise.
    pub const JOURNAL_BYTES_MAX_DEFAULT: u64 = 64 << 20;
    /// Ended jobs that are kept unless said otherwise.
    pub const HISTORY_MAX_DEFAULT: usize = 10_000;
    /// Bytes of their files unless said otherwise.
    pub const HISTORY_BYTES_MAX_DEFAULT: u64 = 8 << 30;
    /// Patience with programs of several jobs: as long as a client waits for a coordinator that is away.
    pub const CHAIN_GRACE_DEFAULT: Duration = Duration::from_secs(60);
    /// Workers that a task may take with it unless said otherwise.
    pub const CRASHES_MAX_DEFAULT: u32 = 3;
    /// Bytes of blobs that are kept unless said otherwise.
    pub const BLOB_BYTES_MAX_DEFAULT: u64 = 4 << 30;

    /// Every default, on the loopback interface.
    pub fn new(directory: ClusterDirectory) -> CoordinatorConfiguration {
        CoordinatorConfiguration {
            directory,
            bind: "127.0.0.1:0".to_owned(),
            heartbeat: CoordinatorConfiguration::HEARTBEAT_DEFAULT,
            liveness: CoordinatorConfiguration::LIVENESS_DEFAULT,
            fsync: CoordinatorConfiguration::FSYNC_DEFAULT,
            journal_bytes_max: CoordinatorConfiguration::JOURNAL_BYTES_MAX_DEFAULT,
            history_max: CoordinatorConfiguration::HISTORY_MAX_DEFAULT,
            history_bytes_max: CoordinatorConfiguration::HISTORY_BYTES_MAX_DEFAULT,
            speculation: Some(SpeculationSettings::default()),
            crashes_max: CoordinatorConfiguration::CRASHES_MAX_DEFAULT,
            blob_bytes_max: CoordinatorConfiguration::BLOB_BYTES_MAX_DEFAULT,
            scheduler: SchedulerConfiguration::default(),
            chain_grace: CoordinatorConfiguration::CHAIN_GRACE_DEFAULT,
            preemption: PreemptionSettings::default(),
            queues: Vec::new(),
        }
    }

    /// What the engine decides by.
    pub(crate) fn rules(&self) -> EngineRules {
        let (speculation, crashes_max, preemption) = (self.speculation, self.crashes_max, self.preemption);
        let settings = EngineSettings { speculation, crashes_max, preemption, ..EngineSettings::default() };
        EngineRules { settings, scheduler: self.scheduler.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_decides_by_what_was_configured() {
        let directory = ClusterDirectory::resolve(Some("/srv/nap".into())).expect("a place");
        let mut configuration = CoordinatorConfiguration::new(directory);
        let of_engine = EngineSettings::default();
        assert_eq!(configuration.rules().settings.crashes_max, of_engine.crashes_max);
        configuration.crashes_max = 7;
        assert_eq!(configuration.rules().settings.crashes_max, 7);
    }
}
