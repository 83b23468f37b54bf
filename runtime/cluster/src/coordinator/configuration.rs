//! What can be chosen about a coordinator.
//!
//! Owns the values and their defaults. Does not own flags and files that set them (the operator's binary).

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{EngineSettings, PolicyChoice, PreemptionSettings, ReadPolicy, SpeculationSettings};

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
    /// A worker that is silent for so long is lost: 25 heartbeats.
    pub liveness: Duration,
    /// When the journal is forced to the disk.
    pub fsync: FsyncPolicy,
    /// The journal is replaced by a snapshot when it has grown by so many bytes.
    pub journal_bytes_max: u64,
    /// How many ended jobs are kept in history.
    pub history_max: usize,
    /// How many bytes their files may have; the oldest go first.
    pub history_bytes_max: u64,
    /// Whether the end of what attempts have printed that failed is kept, of 20 of each job.
    pub failed_logs: bool,
    /// When a straggler gets a second attempt that races it; `None` for never.
    pub speculation: Option<SpeculationSettings>,
    /// A task fails for good when so many workers died while it ran there alone; never, when zero.
    pub crashes_max: u32,
    /// Bytes of programs and side files that are kept for later jobs.
    pub blob_bytes_max: u64,
    /// Who gets a free slot, and whose slot is taken for whom.
    pub scheduler: Arc<dyn PolicyChoice>,
    /// How the choice that the journal was begun with is read.
    pub read_policy: ReadPolicy,
    /// What a chain of jobs passes on is removed when its program was not heard of for so long and none
    /// of its jobs runs: as long as a client waits for a coordinator that is away.
    pub chain_grace: Duration,
    /// What becomes of a primitive that the scheduler prefers.
    pub preemption: PreemptionSettings,
    /// Queues that jobs may name though the scheduler makes no difference between them, beside `default`.
    pub queues: Vec<String>,
}

impl CoordinatorConfiguration {
    /// Every default, on the loopback interface.
    pub fn new(
        directory: ClusterDirectory,
        scheduler: Arc<dyn PolicyChoice>,
        read_policy: ReadPolicy,
    ) -> CoordinatorConfiguration {
        CoordinatorConfiguration {
            directory,
            bind: "127.0.0.1:0".to_owned(),
            heartbeat: Duration::from_millis(200),
            liveness: Duration::from_secs(5),
            fsync: FsyncPolicy::Interval(Duration::from_millis(100)),
            journal_bytes_max: 64 << 20,
            history_max: 10_000,
            history_bytes_max: 8 << 30,
            failed_logs: true,
            speculation: Some(SpeculationSettings::default()),
            crashes_max: 3,
            blob_bytes_max: 4 << 30,
            scheduler,
            read_policy,
            chain_grace: Duration::from_secs(60),
            preemption: PreemptionSettings::default(),
            queues: Vec::new(),
        }
    }
}

impl CoordinatorConfiguration {
    /// What the engine decides by.
    pub(crate) fn rules(&self) -> EngineRules {
        let (speculation, crashes_max, preemption) = (self.speculation, self.crashes_max, self.preemption);
        let settings = EngineSettings { speculation, crashes_max, preemption, ..EngineSettings::default() };
        EngineRules { settings, scheduler: self.scheduler.to_json() }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_schedulers::SchedulerConfiguration;

    use super::*;

    #[test]
    fn the_engine_decides_by_what_was_configured() {
        let directory = ClusterDirectory::resolve(Some("/srv/nap".into())).expect("a place");
        let scheduler = Arc::new(SchedulerConfiguration::default());
        let mut configuration =
            CoordinatorConfiguration::new(directory, scheduler, SchedulerConfiguration::read);
        let of_engine = EngineSettings::default();
        assert_eq!(configuration.rules().settings.crashes_max, of_engine.crashes_max);
        configuration.crashes_max = 7;
        assert_eq!(configuration.rules().settings.crashes_max, 7);
    }
}
