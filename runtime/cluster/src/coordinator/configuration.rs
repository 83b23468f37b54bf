//! The configuration of a coordinator, with defaults.

use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::{
    EngineSettings, PolicyChoice, PreemptionSettings, ReadPolicy, SpeculationSettings,
};

use napreduce_local::world::World;

use crate::cluster_directory::ClusterDirectory;
use crate::journal::{EngineRules, FsyncPolicy};

/// Configuration of a coordinator.
#[derive(Debug, Clone)]
pub struct CoordinatorConfiguration {
    /// Its surroundings.
    pub world: World,
    /// Its cluster directory; created if missing.
    pub directory: ClusterDirectory,
    /// `HOST:PORT` to listen on; port 0 for any.
    pub bind: String,
    /// Interval of workers' heartbeats.
    pub heartbeat: Duration,
    /// Silence after which a worker is lost; by default 25 heartbeats.
    pub liveness: Duration,
    /// When the journal is synced to disk.
    pub fsync: FsyncPolicy,
    /// Journal size in bytes that triggers a snapshot.
    pub journal_bytes_max: u64,
    /// Maximum number of ended jobs in the history.
    pub history_max: usize,
    /// Size limit of the history in bytes; the oldest jobs are removed first.
    pub history_bytes_max: u64,
    /// Whether to keep the last output of failed attempts, for 20 attempts per job.
    pub failed_logs: bool,
    /// When a straggler gets a speculative attempt; `None` for never.
    pub speculation: Option<SpeculationSettings>,
    /// Fail a task after it alone has crashed this many workers; zero for never.
    pub crashes_max: u32,
    /// Size limit of stored programs and side files in bytes.
    pub blob_bytes_max: u64,
    /// The scheduling policy.
    pub scheduler: Arc<dyn PolicyChoice>,
    /// Parses the policy recorded in the journal.
    pub read_policy: ReadPolicy,
    /// Maximum time without a chain's program before its intermediate data is removed, if no job
    /// runs. The default equals the time that a client waits for an unreachable coordinator.
    pub chain_grace: Duration,
    /// Limits and fallbacks for the primitive that the policy prefers.
    pub preemption: PreemptionSettings,
    /// Queues that jobs may name in addition to `default` if the policy does not distinguish queues.
    pub queues: Vec<String>,
}

impl CoordinatorConfiguration {
    /// The defaults, on the loopback interface.
    pub fn new(
        directory: ClusterDirectory,
        scheduler: Arc<dyn PolicyChoice>,
        read_policy: ReadPolicy,
    ) -> CoordinatorConfiguration {
        CoordinatorConfiguration {
            world: World::real(),
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
    /// The rules of the engine.
    pub(crate) fn rules(&self) -> EngineRules {
        let speculation = self.speculation;
        let crashes_max = self.crashes_max;
        let preemption = self.preemption;
        let settings = EngineSettings {
            speculation,
            crashes_max,
            preemption,
            ..EngineSettings::default()
        };
        EngineRules {
            settings,
            scheduler: self.scheduler.to_json(),
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_schedulers::SchedulerConfiguration;

    use super::*;

    #[test]
    fn engine_uses_configured_settings() {
        let directory = ClusterDirectory::resolve(Some("/srv/nap".into())).expect("a place");
        let scheduler = Arc::new(SchedulerConfiguration::default());
        let mut configuration =
            CoordinatorConfiguration::new(directory, scheduler, SchedulerConfiguration::read);
        let of_engine = EngineSettings::default();
        assert_eq!(
            configuration.rules().settings.crashes_max,
            of_engine.crashes_max
        );
        configuration.crashes_max = 7;
        assert_eq!(configuration.rules().settings.crashes_max, 7);
    }
}
