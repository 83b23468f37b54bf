//! Snapshots of the whole engine as plain data, and the restore from them. It checks the version and the
//! consistency of the data. The live coordinator uses snapshots to shorten its journal.

use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, ClusterImage};
use crate::engine::timers::Timers;
use crate::engine::{Engine, Rules};
use crate::ids::WorkerId;
use crate::scheduler::Scheduler;
use crate::settings::EngineSettings;

/// Increased with every change to the meaning of older snapshots.
const VERSION: u32 = 5;

/// An engine between two events, as plain data for any self-describing format such as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineSnapshot {
    version: u32,
    cluster: ClusterImage,
    #[serde(flatten)]
    timers: Timers,
    scheduler: Option<String>,
    /// The snapshot is for another policy, which starts without saved state.
    #[serde(default)]
    another_policy: bool,
    random: Pcg32,
}

impl EngineSnapshot {
    fn new(engine: &Engine) -> EngineSnapshot {
        EngineSnapshot {
            version: VERSION,
            cluster: ClusterImage::new(&engine.rules.cluster),
            timers: engine.rules.timers.clone(),
            scheduler: engine.scheduler.save(),
            another_policy: false,
            random: engine.rules.random.clone(),
        }
    }
}

/// An error of restoring a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Written by a program with another format version.
    #[error(
        "the snapshot has version {found}, but this program reads version {VERSION}; use the program that \
         wrote it"
    )]
    Version { found: u32 },
    /// The data is inconsistent.
    #[error(
        "the snapshot is damaged: {what}; recover from an earlier one or from the whole journal"
    )]
    Damaged { what: String },
    /// The scheduling policy cannot read the saved state of another one.
    #[error(
        "the scheduling policy cannot restore the snapshot: {why}; start with the policy that wrote it"
    )]
    Policy {
        /// The policy's error.
        why: String,
    },
}

impl EngineSnapshot {
    /// Converts the snapshot for a policy of another kind or with other values, which starts without saved
    /// state.
    #[must_use]
    pub fn for_another_policy(self) -> EngineSnapshot {
        EngineSnapshot {
            scheduler: None,
            another_policy: true,
            ..self
        }
    }
}

impl Engine {
    /// Returns a snapshot of the engine. Callers are always between two events.
    pub fn snapshot(&self) -> EngineSnapshot {
        EngineSnapshot::new(self)
    }

    /// Restores an engine that continues exactly as the original would have, given a new policy of the same
    /// kind and the same settings.
    ///
    /// # Errors
    /// Fails if the snapshot has another version, is inconsistent, or was made under another policy.
    pub fn restore(
        snapshot: EngineSnapshot,
        mut scheduler: Box<dyn Scheduler>,
        settings: EngineSettings,
    ) -> Result<Engine, SnapshotError> {
        if snapshot.version != VERSION {
            return Err(SnapshotError::Version {
                found: snapshot.version,
            });
        }
        let damaged = |what| SnapshotError::Damaged { what };
        let mut cluster = Cluster::from_image(snapshot.cluster).map_err(damaged)?;
        cluster.shares_slots = settings.shared_slots;
        if !snapshot.another_policy {
            scheduler
                .restore(snapshot.scheduler.as_deref())
                .map_err(|why| SnapshotError::Policy { why })?;
        }
        let EngineSnapshot { timers, random, .. } = snapshot;
        let mut rules = Rules {
            cluster,
            settings,
            effects: Vec::new(),
            timers,
            random,
        };
        // The snapshot may have been made under other limits.
        let workers: Vec<WorkerId> = rules.cluster.workers.keys().collect();
        for worker in workers {
            let most_suspended = rules.settings.preemption.suspended_max;
            rules.cluster.worker_mut(worker).find_full(most_suspended);
        }
        let mut engine = Engine::with_rules(rules, scheduler);
        engine.check().map_err(damaged)?;
        // Queries to the policy before the next event need its jobs.
        engine.notify_policy();
        Ok(engine)
    }
}
