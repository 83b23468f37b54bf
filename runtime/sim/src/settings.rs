//! What can be chosen about a simulation: machines, overheads, failures, and what is watched.
//!
//! Owns the settings and their defaults: everything that costs time costs nothing unless it is asked for.
//! Does not own what any of them does.

use napreduce_engine::{EngineSettings, Ratio, Slots, Span, TaskKind, Time, fields};
use serde::{Deserialize, Serialize};

/// The most machines of a cluster.
pub(crate) const MACHINES_MAX: u32 = 100_000;
/// The most slots of a cluster, of both kinds together.
pub(crate) const SLOTS_MAX: u64 = 10_000_000;

/// A number that is too large, or too small, to be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitError(pub String);

fields! {
    /// What can be chosen about a simulation.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct SimulationSettings {
        pub machines: u32 = machines,
        /// How many attempts of each kind each of them runs at once.
        pub slots: Slots = slots,
        /// So many of the machines have map slots alone, and the others reduce slots alone.
        pub map_machines: Option<u32>,
        /// What each machine has where they are not alike, in the place of `slots`; none when they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub unlike_slots: Vec<Slots>,
        /// The machines are dealt out to so many racks in turn.
        pub racks: u32 = 1,
        /// Slots are containers, as many as map slots are said: one kind for maps, reduces and a master of
        /// each job, which holds one from before its first task to its end. Of each queue so many masters are
        /// there at once, at most.
        pub masters_max: Option<u32>,
        /// The settings of the engine; always strict.
        pub engine: EngineSettings = EngineSettings { strict: true, ..EngineSettings::default() },
        /// What takes time besides work.
        pub overheads: Overheads,
        pub failures: Failures,
        /// Of everything random in the simulation itself. Policies and workloads have seeds of their own.
        pub seed: u64,
        /// What attempts tell of their progress, in relation to the truth.
        pub progress: ToldProgress,
        /// How often every attempt at work reports its progress; never, without.
        pub progress_period: Option<Span>,
        /// Points of progress that are reported exactly when they are reached.
        pub marks: Vec<ProgressMark>,
        /// Whether the slots held by each job are kept as a function of time.
        pub record_allocation: bool,
        /// Ends the run at this time, whatever is unfinished.
        pub until: Option<Time>,
    }

    /// Machines with slots, and everything else for free.
    pub fn new(machines: u32, slots: Slots);
}

impl SimulationSettings {
    /// Machines with so many containers each; masters of each queue take a quarter of them at most.
    pub fn of_containers(machines: u32, containers: u32) -> SimulationSettings {
        let slots = Slots { map: containers, reduce: containers };
        let mut settings = SimulationSettings::new(machines, slots);
        settings.share_slots(None);
        settings
    }

    /// Has containers from now on in the place of slots of two kinds.
    pub fn share_slots(&mut self, masters_max: Option<u32>) {
        let containers = u64::from(self.machines) * u64::from(self.slots.map);
        let quarter = u32::try_from(containers / 4).unwrap_or(u32::MAX).max(1);
        self.masters_max = Some(masters_max.unwrap_or(quarter));
        self.engine.shared_slots = true;
    }

    /// Checks that a cluster of this size fits into memory.
    ///
    /// # Errors
    /// Names the number and its limit.
    pub fn check(&self) -> Result<(), LimitError> {
        if self.machines > MACHINES_MAX {
            let error = format!("{} machines; give at most {MACHINES_MAX}", self.machines);
            return Err(LimitError(error));
        }
        let (maps, reduces) = self.slots_in_all();
        if maps.saturating_add(reduces) > SLOTS_MAX {
            let error = format!(
                "{} machines with {} map and {} reduce slots each; give at most {SLOTS_MAX} slots in all",
                self.machines, self.slots.map, self.slots.reduce
            );
            return Err(LimitError(error));
        }
        Ok(())
    }

    /// The last time up to which slot time is counted without overflow.
    pub(crate) fn last_time(&self) -> Time {
        let (maps, reduces) = self.slots_in_all();
        Time(u64::MAX / 2 / maps.saturating_add(reduces).max(1))
    }

    /// The slots of a machine, by its number from 0.
    pub fn slots_of(&self, machine: u32) -> Slots {
        if let Some(slots) = self.unlike_slots.get(machine as usize) {
            return *slots;
        }
        match self.map_machines {
            Some(apart) if machine < apart => Slots { reduce: 0, ..self.slots },
            Some(_) => Slots { map: 0, ..self.slots },
            None => self.slots,
        }
    }

    /// The rack of a machine, by its number from 0.
    pub fn rack_of(&self, machine: u32) -> u32 {
        machine % self.racks.max(1)
    }

    /// What the rack of a machine is called.
    pub fn rack_name(&self, machine: u32) -> String {
        format!("/rack-{}", self.rack_of(machine))
    }

    /// The slots of all machines together, as many as they are.
    pub fn slots_in_all(&self) -> (u64, u64) {
        if !self.unlike_slots.is_empty() {
            let sum =
                |of: fn(&Slots) -> u32| self.unlike_slots.iter().map(|slots| u64::from(of(slots))).sum();
            return (sum(|slots| slots.map), sum(|slots| slots.reduce));
        }
        let (machines, apart) = (u64::from(self.machines), self.map_machines.map(u64::from));
        let (maps, reduces) =
            apart.map_or((machines, machines), |apart| (apart, machines.saturating_sub(apart)));
        (maps * u64::from(self.slots.map), reduces * u64::from(self.slots.reduce))
    }
}

fields! {
    /// What attempts tell of their progress: the share that is done, to a power, times a factor of the
    /// attempt's own. The truth by default.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct ToldProgress {
        /// Above 1 an attempt tells less than is done until shortly before its end, below 1 more.
        pub exponent: f64 = 1.0,
        /// How far the factor is from 1 at most: it is uniform from 1 - error to 1 + error, by the seed
        /// and the attempt.
        pub error: f64,
    }
}

impl ToldProgress {
    /// What is told when so much of a whole is done and the attempt's factor is drawn at this place of its
    /// range, 0 to 1. All is told only of what is done.
    pub(crate) fn of(self, done: u64, total: u64, drawn: f64) -> u64 {
        if self == ToldProgress::default() || done >= total || total == 0 {
            return done;
        }
        let share = (done as f64 / total as f64).powf(self.exponent);
        let told = share * (1.0 + self.error * (2.0 * drawn - 1.0)) * total as f64;
        (told as u64).min(total - 1)
    }

    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// Says what is allowed.
    pub fn check(self) -> Result<(), String> {
        if !(0.01..=100.0).contains(&self.exponent) {
            return Err(format!("exponent = {}; give a number from 0.01 to 100", self.exponent));
        }
        if !(0.0..=1.0).contains(&self.error) {
            return Err(format!("error = {}; give a share from 0 to 1", self.error));
        }
        Ok(())
    }
}

/// A point of progress of one task that is reported when it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressMark {
    /// The job, by name.
    pub job: String,
    pub kind: TaskKind,
    /// Its number, from 0.
    pub index: u32,
    /// The share of its work.
    pub share: Ratio,
}

/// What takes time besides work. All zero by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Overheads {
    /// Workers speak with the coordinator at 0, h, 2h and so on alone; whenever there is something to say, if
    /// zero.
    #[serde(with = "napreduce_engine::time::text")]
    pub heartbeat: Span,
    /// With heartbeats: a worker also speaks when a task there ends.
    pub out_of_band: bool,
    /// From when an order leaves until it acts on the worker.
    #[serde(with = "napreduce_engine::time::text")]
    pub order_latency: Span,
    /// From the order to the first work of an attempt.
    #[serde(with = "napreduce_engine::time::text")]
    pub launch: Span,
    /// Each job has a set-up task before its first task and a clean-up task after its last one, as in
    /// Hadoop 1. They go before all others, so that they are started with the next heartbeat; they do nothing
    /// but start and be heard of.
    pub job_tasks: bool,
    /// With containers: how long the start of a job's master takes; masters start one after another.
    #[serde(with = "napreduce_engine::time::text")]
    pub master: Span,
    /// On top of the launch of a map that prefers other machines than its own: its input comes over the
    /// network; where there are several racks, from another one.
    #[serde(with = "napreduce_engine::time::text")]
    pub remote_input: Span,
    /// The same where there are several racks and the input comes from another machine of its own.
    #[serde(with = "napreduce_engine::time::text")]
    pub rack_input: Span,
    /// From the order to the free slot. The bytes are those that are swapped out.
    pub suspend: Cost,
    /// From the order to the first work. The bytes are those that were swapped out.
    pub resume: Cost,
    /// From the order to the free slot. The bytes are the memory of the task.
    pub checkpoint_write: Cost,
    /// On top of the launch of an attempt that goes on from a checkpoint. The bytes are the memory of the
    /// task.
    pub checkpoint_read: Cost,
    /// On top of that, when the checkpoint was written by another worker: its input is fetched again.
    #[serde(with = "napreduce_engine::time::text")]
    pub restore_elsewhere: Span,
    /// On top of that, of a reduce: what it had fetched is fetched again, at the rate at which it was.
    pub restore_refetches: bool,
    /// What a checkpoint of a reduce holds goes by its phase, and its finished keys are read over when it
    /// goes on; it holds the memory of the task, without.
    pub checkpoint_by_phase: Option<CheckpointByPhase>,
    /// How much of the last work a checkpoint loses, if the attempt has worked for so long.
    #[serde(with = "napreduce_engine::time::text")]
    pub checkpoint_loss: Span,
    /// Memory of a worker in bytes that suspended attempts use before anything is swapped. Nothing is ever
    /// swapped without it.
    pub spare_memory: Option<u64>,
    /// From the order to the free slot.
    #[serde(with = "napreduce_engine::time::text")]
    pub kill: Span,
    /// Memory of a machine, of which there is enough without. What of suspended attempts does not fit beside
    /// one that starts is paged out while that one starts, and back in when its attempt goes on.
    pub machine_memory: Option<MachineMemory>,
    /// Disks and network of a machine, which its tasks share; each task has as much as it can use, without.
    pub machine_bandwidth: Option<MachineBandwidth>,
}

/// What a machine moves at most. A map reads its input from the disks and writes its output there while it
/// works, a reduce fetches its input over the network, and then reads it from the disks: each at an even pace
/// over the time that this takes alone. Where tasks want more than there is, each gets an equal part, but
/// none more than it wants, and is slower accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineBandwidth {
    /// Bytes a second of all disks together; no limit, without.
    #[serde(default)]
    pub disk: Option<u64>,
    /// Bytes a second that reduces fetch; no limit, without.
    #[serde(default)]
    pub network: Option<u64>,
}

/// Memory of a machine, and what it costs to have too little: attempts hold the memory of their job's tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineMemory {
    /// Bytes.
    pub ram: u64,
    /// Bytes of it that the system and the daemons hold.
    #[serde(default)]
    pub base: u64,
    /// Bytes a second that are paged out or in.
    pub bandwidth: u64,
    /// How much is paged out for each byte that does not fit, in thousandths: the kernel does not choose as
    /// well as it could.
    #[serde(default = "thousand")]
    pub excess_permille: u32,
}

fn thousand() -> u32 {
    1_000
}

impl MachineMemory {
    /// How long it takes to move so many bytes.
    pub fn time_of(self, bytes: u64) -> Span {
        Cost { fixed: Span(0), bandwidth: Some(self.bandwidth) }.of(bytes)
    }
}

/// What a checkpoint of a reduce holds: while it fetches what it has fetched, as far as that is in memory;
/// afterwards its output so far. Who goes on from it reads over the keys that are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckpointByPhase {
    /// Bytes of output for each byte of input, in thousandths.
    pub output_permille: u32,
    /// Bytes a second at which finished keys are read over; in no time, without.
    #[serde(default)]
    pub read_over: Option<u64>,
}

/// A time that grows with the bytes that are moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cost {
    /// Always.
    #[serde(with = "napreduce_engine::time::text")]
    pub fixed: Span,
    /// Bytes a second, on top; no matter how many bytes, without.
    pub bandwidth: Option<u64>,
}

impl Cost {
    /// The same for any number of bytes.
    pub const fn fixed(fixed: Span) -> Cost {
        Cost { fixed, bandwidth: None }
    }

    /// How long it takes for so many bytes.
    pub fn of(self, bytes: u64) -> Span {
        let moved = self.bandwidth.map_or(0, |rate| u128::from(bytes) * 1_000_000 / u128::from(rate.max(1)));
        self.fixed + Span(u64::try_from(moved).unwrap_or(u64::MAX))
    }
}

/// What goes wrong, by the seed. Nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failures {
    /// The probability that an attempt fails, at a uniform point of its work; 0 to 1. Which attempts do does
    /// not depend on the policy.
    pub attempt: f64,
    /// The mean time until a machine is lost, exponentially distributed; never, without.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub machine_mean: Option<Span>,
    /// After how long a lost machine is back, empty; never, without.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub machine_return: Option<Span>,
}
