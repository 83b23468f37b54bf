//! The settings of a simulation. All overheads are zero by default.

use napreduce_engine::{EngineSettings, PrimitiveChoice, Ratio, Slots, Span, TaskKind, Time};
use napreduce_schedulers::SchedulerConfiguration;
use serde::{Deserialize, Serialize};

/// Maximum machines of a cluster.
pub(crate) const MACHINES_MAX: u32 = 100_000;
/// Maximum slots of a cluster, both kinds together.
pub(crate) const SLOTS_MAX: u64 = 10_000_000;

/// A number outside the limits of the simulator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitError(pub String);

/// The settings of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationSettings {
    pub machines: u32,
    /// Concurrent attempts per machine, by kind.
    pub slots: Slots,
    /// Number of machines with map slots only; the others have reduce slots only.
    pub map_machines: Option<u32>,
    /// Slots per machine, overriding `slots`; empty if machines are equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike_slots: Vec<Slots>,
    /// Number of racks; machines are assigned round-robin.
    pub racks: u32,
    /// With containers: the maximum number of concurrent masters per queue. Containers replace both kinds
    /// of slots; their number is that of map slots. The master of a job holds one for the whole job.
    pub masters_max: Option<u32>,
    /// Always strict.
    pub engine: EngineSettings,
    pub overheads: Overheads,
    pub failures: Failures,
    /// Seed of the simulation; policies and workloads have their own.
    pub seed: u64,
    /// How reported progress differs from actual progress.
    pub progress: ProgressModel,
    /// Interval of progress reports; `None` for no reports.
    pub progress_period: Option<Span>,
    /// Progress points reported exactly when reached.
    pub marks: Vec<ProgressMark>,
    /// Whether the slots held by each job are recorded over time.
    pub record_allocation: bool,
    /// Stop time of the run.
    pub until: Option<Time>,
}

impl SimulationSettings {
    /// Returns settings without overheads.
    pub fn new(machines: u32, slots: Slots) -> SimulationSettings {
        SimulationSettings {
            machines,
            slots,
            map_machines: None,
            unlike_slots: Vec::new(),
            racks: 1,
            masters_max: None,
            engine: EngineSettings {
                strict: true,
                ..EngineSettings::default()
            },
            overheads: Overheads::default(),
            failures: Failures::default(),
            seed: 0,
            progress: ProgressModel::default(),
            progress_period: None,
            marks: Vec::new(),
            record_allocation: false,
            until: None,
        }
    }
}

impl SimulationSettings {
    /// Returns settings with containers. By default the masters of each queue hold at most a quarter of them.
    pub fn with_containers(machines: u32, containers: u32) -> SimulationSettings {
        let slots = Slots {
            map: containers,
            reduce: containers,
        };
        let mut settings = SimulationSettings::new(machines, slots);
        settings.share_slots(None);
        settings
    }

    /// Switches from slots of two kinds to containers.
    pub fn share_slots(&mut self, masters_max: Option<u32>) {
        let containers = u64::from(self.machines) * u64::from(self.slots.map);
        let quarter = u32::try_from(containers / 4).unwrap_or(u32::MAX).max(1);
        self.masters_max = Some(masters_max.unwrap_or(quarter));
        self.engine.shared_slots = true;
    }

    /// Checks the size of the cluster against the limits.
    ///
    /// # Errors
    /// Names the value and its limit.
    pub fn check(&self) -> Result<(), LimitError> {
        if self.machines > MACHINES_MAX {
            let error = format!(
                "too many machines: {} (limit {MACHINES_MAX})",
                self.machines
            );
            return Err(LimitError(error));
        }
        if self.all_slots() > SLOTS_MAX {
            let error = format!(
                "too many slots: {} machines with {} map and {} reduce slots each (limit {SLOTS_MAX})",
                self.machines, self.slots.map, self.slots.reduce
            );
            return Err(LimitError(error));
        }
        Ok(())
    }

    /// Returns whether anything in a run under a policy reads the progress of tasks: the policy, the costs of
    /// preemption, or speculation. Otherwise reports of progress only take time.
    pub fn reads_progress(&self, policy: &SchedulerConfiguration) -> bool {
        let preemption = &self.engine.preemption;
        let chooses_by_cost = preemption.primitive == Some(PrimitiveChoice::Auto);
        let by_costs = preemption.cost.is_some() || chooses_by_cost;
        policy.uses_progress() || by_costs || self.engine.speculation.is_some()
    }

    /// Returns the last time at which slot time does not overflow.
    pub(crate) fn last_time(&self) -> Time {
        Time(u64::MAX / 2 / self.all_slots().max(1))
    }

    /// Returns the slots of a machine.
    pub fn slots_of(&self, machine: u32) -> Slots {
        if let Some(slots) = self.unlike_slots.get(machine as usize) {
            return *slots;
        }
        match self.map_machines {
            Some(apart) if machine < apart => Slots {
                reduce: 0,
                ..self.slots
            },
            Some(_) => Slots {
                map: 0,
                ..self.slots
            },
            None => self.slots,
        }
    }

    /// Returns the rack number of a machine.
    pub fn rack_of(&self, machine: u32) -> u32 {
        machine % self.racks.max(1)
    }

    pub fn rack_name(&self, machine: u32) -> String {
        format!("/rack-{}", self.rack_of(machine))
    }

    /// Returns the total number of slots of both kinds.
    pub(crate) fn all_slots(&self) -> u64 {
        let (maps, reduces) = self.total_slots();
        maps.saturating_add(reduces)
    }

    /// Returns the total number of containers, if containers replace both kinds of slots.
    pub(crate) fn containers(&self) -> u64 {
        let (containers, _) = self.total_slots();
        containers
    }

    /// Returns the total number of map and reduce slots.
    pub fn total_slots(&self) -> (u64, u64) {
        if !self.unlike_slots.is_empty() {
            let sum = |of: fn(&Slots) -> u32| {
                self.unlike_slots
                    .iter()
                    .map(|slots| u64::from(of(slots)))
                    .sum()
            };
            return (sum(|slots| slots.map), sum(|slots| slots.reduce));
        }
        let machines = u64::from(self.machines);
        let apart = self.map_machines.map(u64::from);
        let (maps, reduces) = apart.map_or((machines, machines), |apart| {
            (apart, machines.saturating_sub(apart))
        });
        (
            maps * u64::from(self.slots.map),
            reduces * u64::from(self.slots.reduce),
        )
    }
}

/// A model of reported progress: the actual progress raised to a power, times a factor per attempt. Exact
/// by default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProgressModel {
    /// Above 1 progress is under-reported until shortly before the end, below 1 over-reported.
    pub exponent: f64,
    /// Maximum deviation of the factor from 1. It is uniform in [1 - error, 1 + error], from the seed and
    /// the attempt.
    pub error: f64,
}

impl Default for ProgressModel {
    fn default() -> ProgressModel {
        ProgressModel {
            exponent: 1.0,
            error: f64::default(),
        }
    }
}

impl ProgressModel {
    /// Returns the reported amount for `done` of `total`; `drawn` in 0..1 selects the factor. Only completed
    /// work is reported as complete.
    pub(crate) fn of(self, done: u64, total: u64, drawn: f64) -> u64 {
        if self == ProgressModel::default() || done >= total || total == 0 {
            return done;
        }
        let share = (done as f64 / total as f64).powf(self.exponent);
        let reported = share * (1.0 + self.error * (2.0 * drawn - 1.0)) * total as f64;
        (reported as u64).min(total - 1)
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// Names the value and the allowed range.
    pub fn check(self) -> Result<(), String> {
        if !(0.01..=100.0).contains(&self.exponent) {
            return Err(format!(
                "invalid exponent {}; give 0.01 to 100",
                self.exponent
            ));
        }
        if !(0.0..=1.0).contains(&self.error) {
            return Err(format!("invalid error {}; give 0 to 1", self.error));
        }
        Ok(())
    }
}

/// A progress point of one task that is reported when it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressMark {
    /// By name.
    pub job: String,
    pub kind: TaskKind,
    /// From 0.
    pub index: u32,
    /// Fraction of its work.
    pub share: Ratio,
}

/// Time costs besides work. All zero by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Overheads {
    /// Heartbeat interval: workers report at multiples of it. If zero, they report immediately.
    #[serde(with = "napreduce_engine::time::text")]
    pub heartbeat: Span,
    /// With heartbeats: report the end of a task immediately.
    pub out_of_band: bool,
    /// Latency of an order from coordinator to worker.
    #[serde(with = "napreduce_engine::time::text")]
    pub order_latency: Span,
    /// From the order to the start of work.
    #[serde(with = "napreduce_engine::time::text")]
    pub launch: Span,
    /// Runs a setup task before and a cleanup task after each job, as Hadoop 1 does. They precede other tasks
    /// and take only their launch and report.
    pub job_tasks: bool,
    /// With containers: start time of a master. Masters start one after another.
    #[serde(with = "napreduce_engine::time::text")]
    pub master: Span,
    /// Added to the launch of a map whose input is on another machine; with several racks, on another rack.
    #[serde(with = "napreduce_engine::time::text")]
    pub remote_input: Span,
    /// As `remote_input`, for input on another machine of the same rack.
    #[serde(with = "napreduce_engine::time::text")]
    pub rack_input: Span,
    /// From the order to the free slot; bytes are those swapped out.
    pub suspend: Cost,
    /// From the order to work; bytes are those swapped out.
    pub resume: Cost,
    /// From the order to the free slot; bytes are the memory of the task.
    pub checkpoint_write: Cost,
    /// Added to the launch of an attempt from a checkpoint; bytes are the memory of the task.
    pub checkpoint_read: Cost,
    /// Added if the checkpoint is on another worker: the input is fetched again.
    #[serde(with = "napreduce_engine::time::text")]
    pub restore_elsewhere: Span,
    /// Adds the repeated shuffle of a restored reduce, at the original rate.
    pub restore_refetches: bool,
    /// Sizes of checkpoints of reduces by phase; by default the memory of the task.
    pub checkpoint_by_phase: Option<CheckpointByPhase>,
    /// Work lost by a checkpoint, at most what the attempt has done.
    #[serde(with = "napreduce_engine::time::text")]
    pub checkpoint_loss: Span,
    /// Memory of a worker in bytes for suspended attempts before swapping starts. `None` disables swapping.
    pub spare_memory: Option<u64>,
    /// From the order to the free slot.
    #[serde(with = "napreduce_engine::time::text")]
    pub kill: Span,
    /// Memory limits of a machine. Suspended attempts are paged out while another one starts, and paged in
    /// when they resume.
    pub machine_memory: Option<MachineMemory>,
    /// Disk and network limits of a machine, shared by its tasks; unlimited if `None`.
    pub machine_bandwidth: Option<MachineBandwidth>,
}

/// Disk and network bandwidth of a machine. A map reads its input from and writes its output to disk while it
/// works. A reduce fetches its input over the network, then reads it from disk. Each moves its bytes evenly
/// over its run time alone. If the total exceeds the bandwidth, tasks get equal parts, capped at their own
/// rate, and slow down accordingly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineBandwidth {
    /// Bytes per second of all disks together; `None` is unlimited.
    #[serde(default)]
    pub disk: Option<u64>,
    /// Bytes per second fetched by reduces; `None` is unlimited.
    #[serde(default)]
    pub network: Option<u64>,
}

/// Memory of a machine and the cost of paging. Attempts use the task memory of their job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MachineMemory {
    /// In bytes.
    pub ram: u64,
    /// Bytes used by the system and the daemons.
    #[serde(default)]
    pub base: u64,
    /// Bytes per second paged out or in.
    pub bandwidth: u64,
    /// Bytes paged out per byte that does not fit, in thousandths: the kernel's choice is not optimal.
    #[serde(default = "thousand")]
    pub excess_permille: u32,
}

fn thousand() -> u32 {
    1_000
}

impl MachineMemory {
    /// Returns the time to page `bytes`.
    pub fn time_of(self, bytes: u64) -> Span {
        Cost {
            fixed: Span(0),
            bandwidth: Some(self.bandwidth),
        }
        .of(bytes)
    }
}

/// Checkpoint sizes of a reduce: during the shuffle its fetched bytes, as far as they are in memory;
/// afterwards its output so far. A restored reduce skips the keys that are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckpointByPhase {
    /// Output bytes per input byte, in thousandths.
    pub output_permille: u32,
    /// Bytes per second at which finished keys are skipped; `None` takes no time.
    #[serde(default)]
    pub read_over: Option<u64>,
}

/// A time that depends on the bytes moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cost {
    #[serde(with = "napreduce_engine::time::text")]
    pub fixed: Span,
    /// Bytes per second, added to the fixed time; `None` ignores the bytes.
    pub bandwidth: Option<u64>,
}

impl Cost {
    /// Returns a cost that does not depend on bytes.
    pub const fn fixed(fixed: Span) -> Cost {
        Cost {
            fixed,
            bandwidth: None,
        }
    }

    /// Returns the time for `bytes`.
    pub fn of(self, bytes: u64) -> Span {
        let moved = self.bandwidth.map_or(0, |rate| {
            u128::from(bytes) * 1_000_000 / u128::from(rate.max(1))
        });
        self.fixed + Span(u64::try_from(moved).unwrap_or(u64::MAX))
    }
}

/// Random failures. None by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Failures {
    /// Probability that an attempt fails, at a uniform point of its work. The choice of attempts does not
    /// depend on the policy.
    pub attempt: f64,
    /// Mean time to the loss of a machine, exponentially distributed; `None` disables losses.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub machine_mean: Option<Span>,
    /// Time until a lost machine returns empty; `None` is never.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub machine_return: Option<Span>,
}
