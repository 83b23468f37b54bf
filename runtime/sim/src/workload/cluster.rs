//! The cluster that a workload file is meant for: machines with slots of two kinds, or with
//! containers of one.
//!
//! Owns the form, its checks, and the settings that follow from it. Does not own what containers are.

use napreduce_engine::Slots;
use serde::{Deserialize, Serialize};

use crate::settings::SimulationSettings;

/// A cluster of equal machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClusterShape {
    pub machines: u32,
    #[serde(default)]
    pub map_slots: u32,
    #[serde(default)]
    pub reduce_slots: u32,
    /// In the place of slots of two kinds: so many of one kind on each machine, for maps, reduces and the
    /// masters of jobs.
    #[serde(default)]
    pub containers: Option<u32>,
    /// Of each queue so many masters at most; a quarter of all containers, without.
    #[serde(default)]
    pub masters_max: Option<u32>,
    /// So many of them have map slots alone, and the others reduce slots alone.
    #[serde(default)]
    pub map_machines: Option<u32>,
    /// They are dealt out to so many racks in turn.
    #[serde(default = "one")]
    pub racks: u32,
}

fn one() -> u32 {
    1
}

impl ClusterShape {
    /// So many machines of one rack with slots of two kinds each.
    pub const fn of_slots(machines: u32, map_slots: u32, reduce_slots: u32) -> ClusterShape {
        let (containers, masters_max, map_machines) = (None, None, None);
        ClusterShape { machines, map_slots, reduce_slots, containers, masters_max, map_machines, racks: 1 }
    }

    /// The same with slots of two kinds in the place of containers: a third of them for maps.
    #[must_use]
    pub fn of_two_kinds(self) -> ClusterShape {
        let Some(containers) = self.containers else { return self };
        let map_slots = (containers / 3).max(1);
        let reduce_slots = containers.saturating_sub(map_slots).max(1);
        ClusterShape { racks: self.racks, ..ClusterShape::of_slots(self.machines, map_slots, reduce_slots) }
    }

    /// Settings for a cluster of this shape with so many machines, and everything else for free.
    pub fn settings(&self, machines: u32) -> SimulationSettings {
        let mut settings = SimulationSettings::new(machines, self.slots());
        settings.map_machines = self.map_machines;
        settings.racks = self.racks;
        if self.containers.is_some() {
            settings.share_slots(self.masters_max);
        }
        settings
    }

    /// What is wrong with it, if anything is: the key, and what is allowed.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let slots = self.map_slots > 0 || self.reduce_slots > 0;
        if self.machines == 0 {
            return Err(("machines", "0 machines; give at least 1".to_owned()));
        }
        if let Some(apart) = self.map_machines.filter(|apart| !(1..self.machines).contains(apart)) {
            let error = format!("{apart} of {} machines; leave at least one of each kind", self.machines);
            return Err(("map-machines", error));
        }
        if !(1..=self.machines).contains(&self.racks) {
            return Err(("racks", format!("{} for {} machines; give 1 to {1}", self.racks, self.machines)));
        }
        self.settings(self.machines).check().map_err(|error| ("machines", error.to_string()))?;
        match (self.containers, self.masters_max) {
            (Some(_), _) if slots || self.map_machines.is_some() => {
                let error = "containers are for tasks of both kinds; leave out map-slots, reduce-slots and map-machines";
                Err(("containers", error.to_owned()))
            }
            (Some(containers), _) if u64::from(containers) * u64::from(self.machines) < 2 => {
                Err(("containers", "a master and a task need 2 containers in all; give more".to_owned()))
            }
            (Some(_), Some(0)) => {
                Err(("masters-max", "0; a job needs its master, so give at least 1".to_owned()))
            }
            (None, Some(_)) => {
                Err(("masters-max", "jobs have masters in containers alone; give containers".to_owned()))
            }
            (None, _) if !slots => {
                Err(("map-slots", "no slots; give map-slots and reduce-slots, or containers".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The slots of a machine.
    pub fn slots(&self) -> Slots {
        match self.containers {
            Some(containers) => Slots { map: containers, reduce: containers },
            None => Slots { map: self.map_slots, reduce: self.reduce_slots },
        }
    }
}
