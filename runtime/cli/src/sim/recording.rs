//! `nap sim --record`: writes the history of each run to a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use napreduce_history::{RecordedCluster, WorkerGroup, write_simulated};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{Recording, SimulationSettings};

use super::variants::in_file_name;
use crate::whole_file::create_empty;

/// The directory with the histories of all runs.
pub struct RecordFolder(PathBuf);

/// Creates the directory, or accepts an empty one.
pub fn begin(folder: &Path) -> Result<RecordFolder> {
    create_empty(folder)?;
    Ok(RecordFolder(folder.to_owned()))
}

impl RecordFolder {
    /// Creates the recording of a run of a variant.
    pub fn recording(
        &self,
        label: &str,
        policy: &SchedulerConfiguration,
        settings: &SimulationSettings,
    ) -> Result<Recording> {
        let folder = self
            .0
            .join(format!("{}.{}", in_file_name(label), settings.seed));
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let keep = Box::new(move |job| write_simulated(&folder, &job).map_err(io::Error::other));
        Ok(Recording {
            cluster: cluster(policy, settings),
            keep,
        })
    }
}

fn cluster(policy: &SchedulerConfiguration, settings: &SimulationSettings) -> RecordedCluster {
    let mut groups: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for machine in 0..settings.machines {
        let slots = settings.slots_of(machine);
        *groups.entry((slots.map, slots.reduce)).or_default() += 1;
    }
    let group = |((map_slots, reduce_slots), workers)| WorkerGroup {
        workers,
        map_slots,
        reduce_slots,
    };
    let cluster = RecordedCluster {
        scheduler: policy.scheduler.to_string(),
        tables: policy.tables.changed(),
        preemption: serde_json::to_value(settings.engine.preemption).unwrap_or_default(),
        workers: groups.into_iter().map(group).collect(),
    };
    cluster.bounded()
}
