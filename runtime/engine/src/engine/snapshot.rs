//! The whole engine as plain data, and an engine that goes on from it.
//!
//! Owns the version of the data and the refusal of what is damaged. Does not own where it is kept: the live
//! coordinator shortens its journal with it.

use std::collections::BTreeSet;

use rand_pcg::Pcg32;
use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, ClusterImage};
use crate::engine::Engine;
use crate::ids::WorkerId;
use crate::scheduler::Scheduler;
use crate::settings::EngineSettings;
use crate::time::Time;

/// Raised with every change that makes older snapshots mean something else.
const VERSION: u32 = 4;

/// An engine between two events, as plain data for any self-describing format, JSON among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineSnapshot {
    version: u32,
    cluster: ClusterImage,
    wakes: BTreeSet<Time>,
    armed: Option<Time>,
    speculate_at: Option<Time>,
    convert_at: Option<Time>,
    #[serde(default)]
    in_vain: u32,
    scheduler: Option<String>,
    /// Another policy goes on from here: it remembers nothing and sees everything.
    #[serde(default)]
    another_policy: bool,
    random: Pcg32,
}

impl EngineSnapshot {
    fn of(engine: &Engine) -> EngineSnapshot {
        EngineSnapshot {
            version: VERSION,
            cluster: ClusterImage::of(&engine.cluster),
            wakes: engine.wakes.clone(),
            armed: engine.armed,
            speculate_at: engine.speculate_at,
            convert_at: engine.convert_at,
            in_vain: engine.in_vain,
            scheduler: engine.scheduler.save(),
            another_policy: false,
            random: engine.random.clone(),
        }
    }
}

/// Why no engine can go on from a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Made by another program.
    #[error(
        "the snapshot has version {found}, this program reads version {VERSION}; use the program that wrote it"
    )]
    Version {
        /// The version it has.
        found: u32,
    },
    /// It contradicts itself.
    #[error("the snapshot is damaged: {what}; recover from an earlier one or from the whole journal")]
    Damaged {
        /// What is wrong with it.
        what: String,
    },
    /// The scheduling policy does not know what another one saved.
    #[error(
        "the scheduling policy cannot go on from the snapshot: {why}; start with the policy that it was made under"
    )]
    Policy {
        /// What the policy says.
        why: String,
    },
}

impl EngineSnapshot {
    /// The same for a policy of another kind, or with other values: it begins with what it sees.
    #[must_use]
    pub fn for_another_policy(self) -> EngineSnapshot {
        EngineSnapshot { scheduler: None, another_policy: true, ..self }
    }
}

impl Engine {
    /// All it knows. To be taken between two events, which is whenever a caller can.
    pub fn snapshot(&self) -> EngineSnapshot {
        EngineSnapshot::of(self)
    }

    /// An engine that goes on from a snapshot exactly as the one would have that it was taken of, given a new
    /// policy of the same kind and the same settings.
    ///
    /// # Errors
    /// When the snapshot is of another version, contradicts itself, or was made under another policy.
    pub fn restore(
        snapshot: EngineSnapshot,
        mut scheduler: Box<dyn Scheduler>,
        settings: EngineSettings,
    ) -> Result<Engine, SnapshotError> {
        if snapshot.version != VERSION {
            return Err(SnapshotError::Version { found: snapshot.version });
        }
        let damaged = |what| SnapshotError::Damaged { what };
        let mut cluster = Cluster::from_image(snapshot.cluster).map_err(damaged)?;
        cluster.shares_slots = settings.shared_slots;
        if !snapshot.another_policy {
            scheduler.restore(snapshot.scheduler.as_deref()).map_err(|why| SnapshotError::Policy { why })?;
        }
        let EngineSnapshot { wakes, armed, speculate_at, convert_at, in_vain, random, .. } = snapshot;
        let mut engine = Engine {
            cluster,
            wakes,
            armed,
            speculate_at,
            convert_at,
            in_vain,
            random,
            ..Engine::new(scheduler, settings)
        };
        // It may be from before there were limits, or from under other ones.
        let workers: Vec<WorkerId> = engine.cluster.workers.keys().collect();
        for worker in workers {
            engine.find_full(worker);
        }
        engine.check().map_err(damaged)?;
        // So that whoever asks the policy before the next event hears of the jobs that it has.
        engine.tell_changed();
        Ok(engine)
    }
}
