//! `nap sim --record`: the history of the jobs of each run, in a folder of its own.
//!
//! Owns the names of the folders, and what jobs say of the cluster that is simulated. Does not own what a
//! history holds (`napreduce-history`), nor what of a run becomes one (`napreduce-sim`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use napreduce_history::{RecordedCluster, WorkerGroup, write_simulated};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{Recording, SimulationSettings};

use super::variants::in_file_name;
use crate::whole_file::make_empty;

/// Where the runs are recorded.
pub struct RecordFolder(PathBuf);

/// Makes the folder, or takes one that is empty.
pub fn begin(folder: &Path) -> Result<RecordFolder> {
    make_empty(folder)?;
    Ok(RecordFolder(folder.to_owned()))
}

impl RecordFolder {
    /// Of the run of a variant.
    pub fn recording(
        &self,
        label: &str,
        policy: &SchedulerConfiguration,
        settings: &SimulationSettings,
    ) -> Result<Recording> {
        let folder = self.0.join(format!("{}.{}", in_file_name(label), settings.seed));
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let keep = Box::new(move |job| write_simulated(&folder, &job).map_err(io::Error::other));
        Ok(Recording { cluster: cluster(policy, settings), keep })
    }
}

fn cluster(policy: &SchedulerConfiguration, settings: &SimulationSettings) -> RecordedCluster {
    let mut groups: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for machine in 0..settings.machines {
        let slots = settings.slots_of(machine);
        *groups.entry((slots.map, slots.reduce)).or_default() += 1;
    }
    let group = |((map_slots, reduce_slots), workers)| WorkerGroup { workers, map_slots, reduce_slots };
    let cluster = RecordedCluster {
        scheduler: policy.scheduler.to_string(),
        tables: policy.tables.changed(),
        preemption: serde_json::to_value(settings.engine.preemption).unwrap_or_default(),
        workers: groups.into_iter().map(group).collect(),
    };
    cluster.bounded()
}
