//! The cluster of a workload file: machines with map and reduce slots, or with containers.

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
    /// Containers per machine, instead of map and reduce slots. They run maps, reduces and masters.
    #[serde(default)]
    pub containers: Option<u32>,
    /// Maximum masters per queue; a quarter of all containers by default.
    #[serde(default)]
    pub masters_max: Option<u32>,
    /// Number of machines with map slots only; the others have reduce slots only.
    #[serde(default)]
    pub map_machines: Option<u32>,
    /// Number of racks; machines are assigned round-robin.
    #[serde(default = "one")]
    pub racks: u32,
}

fn one() -> u32 {
    1
}

impl ClusterShape {
    /// Creates a cluster with one rack and slots of two kinds.
    pub const fn with_slots(machines: u32, map_slots: u32, reduce_slots: u32) -> ClusterShape {
        let containers = None;
        let masters_max = None;
        let map_machines = None;
        ClusterShape {
            machines,
            map_slots,
            reduce_slots,
            containers,
            masters_max,
            map_machines,
            racks: 1,
        }
    }

    /// Replaces containers by slots of two kinds, a third of them for maps.
    #[must_use]
    pub fn without_containers(self) -> ClusterShape {
        let Some(containers) = self.containers else {
            return self;
        };
        let map_slots = (containers / 3).max(1);
        let reduce_slots = containers.saturating_sub(map_slots).max(1);
        ClusterShape {
            racks: self.racks,
            ..ClusterShape::with_slots(self.machines, map_slots, reduce_slots)
        }
    }

    /// Returns simulation settings for this cluster with `machines` machines, without overheads.
    pub fn settings(&self, machines: u32) -> SimulationSettings {
        let mut settings = SimulationSettings::new(machines, self.slots());
        settings.map_machines = self.map_machines;
        settings.racks = self.racks;
        if self.containers.is_some() {
            settings.share_slots(self.masters_max);
        }
        settings
    }

    /// Validates the shape. Returns the key and description of the first error.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let slots = self.map_slots > 0 || self.reduce_slots > 0;
        if self.machines == 0 {
            return Err(("machines", "must be positive".to_owned()));
        }
        if let Some(apart) = self
            .map_machines
            .filter(|apart| !(1..self.machines).contains(apart))
        {
            let error = format!(
                "{apart} of {} machines; keep at least one machine of each kind",
                self.machines
            );
            return Err(("map-machines", error));
        }
        if !(1..=self.machines).contains(&self.racks) {
            return Err((
                "racks",
                format!(
                    "invalid number of racks {} for {} machines; give 1 to {1}",
                    self.racks, self.machines
                ),
            ));
        }
        self.settings(self.machines)
            .check()
            .map_err(|error| ("machines", error.to_string()))?;
        match (self.containers, self.masters_max) {
            (Some(_), _) if slots || self.map_machines.is_some() => {
                let error = "containers run tasks of both kinds; remove map-slots, reduce-slots and map-machines";
                Err(("containers", error.to_owned()))
            }
            (Some(containers), _) if u64::from(containers) * u64::from(self.machines) < 2 => Err((
                "containers",
                "too few containers: a master and a task need 2 in total".to_owned(),
            )),
            (Some(_), Some(0)) => Err((
                "masters-max",
                "must be positive: every job needs a master".to_owned(),
            )),
            (None, Some(_)) => Err((
                "masters-max",
                "requires containers: without them jobs have no masters".to_owned(),
            )),
            (None, _) if !slots => Err((
                "map-slots",
                "no slots; set map-slots and reduce-slots, or containers".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the slots of a machine.
    pub fn slots(&self) -> Slots {
        match self.containers {
            Some(containers) => Slots {
                map: containers,
                reduce: containers,
            },
            None => Slots {
                map: self.map_slots,
                reduce: self.reduce_slots,
            },
        }
    }
}
