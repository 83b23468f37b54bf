//! The engine settings and their defaults. A recovery must use the settings of the first run, because the
//! same events under other settings have other effects.

use serde::{Deserialize, Serialize};

use crate::ids::TaskKind;
use crate::preemption::{PreemptRequest, Primitive};
use crate::primitive_choice::{AutoSettings, PrimitiveChoice};
use crate::suspended_max::SuspendedMax;
use crate::time::{Span, Time};

/// The engine settings.
///
/// The defaults: lenient, a reservation of 400 ms (twice the usual heartbeat interval), exclusion of failing
/// workers, no speculation (on a single machine a duplicate competes with the straggler), and every primitive
/// as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSettings {
    /// Panic on an illegal scheduler action (tests, simulator) instead of counting and ignoring it (live).
    pub strict: bool,
    /// Time for which a freed slot stays reserved for its job, in addition to the grace of the request.
    pub reservation: Span,
    /// When a worker with many failures is excluded; `None`: never.
    pub exclusion: Option<ExclusionSettings>,
    /// How long a task is not retried on a worker after a failure caused by the worker's disk or limits. Doubles
    /// with each further one of the task, up to four times the value.
    pub shortage_span: Span,
    /// A task fails for good after this many workers died while it ran alone; zero: never. It runs alone
    /// after two workers died while it ran with other tasks.
    pub crashes_max: u32,
    /// The cluster will only ever have one host: a disk shortage fails the job, because waiting cannot help.
    pub one_host: bool,
    /// When a straggler gets a duplicate attempt; `None`: never.
    pub speculation: Option<SpeculationSettings>,
    /// Limits and fallbacks for the primitive that a policy prefers.
    pub preemption: PreemptionSettings,
    /// Include the map outputs to read in the orders to reduces. A driver that moves no data does not need
    /// them.
    pub name_outputs: bool,
    /// The seed of the engine's random choices.
    pub seed: u64,
    /// Worker slots are containers: an attempt of either kind takes one. A worker reports the same number as
    /// map slots and as reduce slots. Only for the simulator; a cluster's workers have two kinds of slots.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_slots: bool,
}

impl Default for EngineSettings {
    fn default() -> EngineSettings {
        EngineSettings {
            strict: false,
            reservation: Span::from_millis(400),
            exclusion: Some(ExclusionSettings::default()),
            shortage_span: Span::from_secs(5),
            crashes_max: 3,
            one_host: false,
            speculation: None,
            preemption: PreemptionSettings::default(),
            name_outputs: true,
            seed: 0,
            shared_slots: false,
        }
    }
}

/// How the engine turns the primitive that a policy prefers into one that it uses. It checks in this order:
/// whether the task kind supports the primitive, whether the worker can keep another suspended attempt, and
/// whether the primitive is worth its cost.
///
/// By default, every task can be preempted as requested, up to the limit of suspended attempts per worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PreemptionSettings {
    /// The primitives for maps.
    pub map: KindPreemption,
    /// The primitives for reduces.
    pub reduce: KindPreemption,
    /// Maximum suspended attempts per worker.
    pub suspended_max: SuspendedMax,
    /// The fallback for a suspend on a worker that has reached that maximum and still keeps more than half of
    /// it.
    pub when_full: Instead,
    /// When a primitive that saves work is not worth its cost; `None`: it always is.
    pub cost: Option<CostRule>,
    /// Limits on preemptions of one task.
    pub limits: PreemptionLimits,
    /// When a suspended attempt that waits for a slot of its worker may move to another one; `None`: never.
    pub convert: Option<Conversion>,
    /// The primitive to use instead of the one that the policy requests; the policy still chooses victims.
    pub primitive: Option<PrimitiveChoice>,
    /// Cost assumptions for `PrimitiveChoice::Auto`.
    pub auto: AutoSettings,
    /// The handling of an attempt that still holds its slot when the grace of its request expires. By default it
    /// is killed unless the primitive is `Wait`.
    pub escalate: Option<Escalation>,
    /// After this many preemptions without a second of progress, a task is protected from further preemption
    /// until it has run for one second; after the next one for two seconds, then four, and so on.
    pub preemptions_without_progress_max: u32,
}

impl Default for PreemptionSettings {
    fn default() -> PreemptionSettings {
        PreemptionSettings {
            map: KindPreemption::default(),
            reduce: KindPreemption::default(),
            suspended_max: SuspendedMax::default(),
            when_full: Instead::Wait,
            cost: None,
            limits: PreemptionLimits::default(),
            convert: None,
            primitive: None,
            auto: AutoSettings::default(),
            escalate: None,
            preemptions_without_progress_max: 10,
        }
    }
}

impl PreemptionSettings {
    /// Returns how tasks of a kind can be preempted.
    pub fn of(&self, kind: TaskKind) -> KindPreemption {
        match kind {
            TaskKind::Map => self.map,
            TaskKind::Reduce => self.reduce,
        }
    }

    /// Returns whether the costs of the possible primitives decide.
    pub(crate) fn chooses_by_cost(&self) -> bool {
        self.primitive == Some(PrimitiveChoice::Auto)
    }

    /// Returns when the grace of a request ends in a kill, if it does.
    pub(crate) fn killed_at(&self, request: &PreemptRequest) -> Option<Time> {
        let grace = request.grace?;
        if !self.ends_in_kill(request.primitive) {
            return None;
        }
        Some(request.begins() + grace)
    }

    /// Returns whether a request for this primitive ends in a kill when its grace is over.
    fn ends_in_kill(&self, primitive: Primitive) -> bool {
        match (primitive, self.escalate) {
            (Primitive::Kill, _) => true,
            (_, Some(escalation)) => escalation == Escalation::Kill,
            (Primitive::Wait, None) => false,
            (Primitive::Suspend | Primitive::Checkpoint, None) => true,
        }
    }

    /// Returns how long a task must run before it can be a victim again, given its preemptions without
    /// progress and the work that they lost: at first as long as each of them lost, at least a second, and
    /// twice as long after each further one.
    pub(crate) fn spared_for(&self, preemptions_without_progress: u32, lost_work: Span) -> Span {
        let Some(beyond) =
            preemptions_without_progress.checked_sub(self.preemptions_without_progress_max)
        else {
            return Span(0);
        };
        let lost_each = lost_work
            .0
            .checked_div(preemptions_without_progress.into())
            .unwrap_or_default();
        Span(
            PROGRESS
                .0
                .max(lost_each)
                .saturating_mul(1 << beyond.min(40)),
        )
    }
}

/// The increase of saved work that counts as progress of a repeatedly preempted task.
pub(crate) const PROGRESS: Span = Span::from_secs(1);

/// The handling of an attempt that still holds its slot when the grace of its request expires. A request to kill
/// always ends in a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Escalation {
    /// Kill the attempt, even if the primitive was `Wait`.
    Kill,
    /// The request stays open until the slot is free.
    Never,
}

/// The primitives for tasks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KindPreemption {
    pub suspend: bool,
    pub checkpoint: bool,
    /// The fallback if they cannot be preempted as requested.
    pub otherwise: Instead,
}

impl Default for KindPreemption {
    fn default() -> KindPreemption {
        KindPreemption {
            suspend: true,
            checkpoint: true,
            otherwise: Instead::Kill,
        }
    }
}

/// A fallback that is always possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instead {
    /// Let the attempt finish.
    Wait,
    /// Kill the attempt.
    Kill,
}

impl From<Instead> for Primitive {
    fn from(instead: Instead) -> Primitive {
        match instead {
            Instead::Wait => Primitive::Wait,
            Instead::Kill => Primitive::Kill,
        }
    }
}

/// The cost of saving work. An attempt that has done less work than that is killed instead, and an attempt
/// that would end before its slot could be freed may finish (OS-Assisted Task Preemption for Hadoop, V-A,
/// recommends both without numbers). All costs default to zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CostRule {
    /// From the order to the free slot.
    #[serde(with = "crate::time::text")]
    pub suspend: Span,
    /// From the free slot to resumed work.
    #[serde(with = "crate::time::text")]
    pub resume: Span,
    /// Replace the two values above with recent measurements for tasks of the kind as soon as there are any.
    pub measured: bool,
    /// Let attempts finish that would end before their slot could be freed.
    pub let_finish: bool,
    /// Kill attempts that have done less work than saving it would cost.
    pub kill_fresh: bool,
}

impl Default for CostRule {
    fn default() -> CostRule {
        CostRule {
            suspend: Span(0),
            resume: Span(0),
            measured: false,
            let_finish: true,
            kill_fresh: true,
        }
    }
}

/// How often policies may preempt one task: a task that is preempted continually makes no progress. Operators
/// are not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PreemptionLimits {
    /// How long a preempted task must run before it is preempted again; an earlier request waits until then.
    /// Zero: no minimum.
    #[serde(with = "crate::time::text")]
    pub minimum_run: Span,
    /// How often a task may be suspended, over all its attempts; after that it may finish. `None`: no limit.
    pub suspends_max: Option<u32>,
    /// How often the slot of a task may be taken by any primitive, over all its attempts; after that it may
    /// finish. `None`: no limit.
    pub preemptions_max: Option<u32>,
}

/// When a suspended attempt is given up so that its task can continue on another worker. A stopped process
/// cannot move, so without this it waits for its own worker even if others are idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Conversion {
    /// How long its worker must have had no slot for it, while another worker has an unwanted slot.
    #[serde(with = "crate::time::text")]
    pub after: Span,
    pub to: Converted,
}

/// How a suspended attempt is given up when its task moves to another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Converted {
    /// Wake it to save its work at the next boundary and exit. If its kind cannot do that, it stays
    /// suspended.
    Checkpoint,
    /// Kill it; its task restarts from its last checkpoint, if it has one.
    Kill,
}

/// When a worker is excluded, and for how long. At least half of the workers with map slots stay in use, and
/// half of those with reduce slots.
///
/// The default is four failures (the limit per task) of two tasks, for 30 s: long enough to save other tasks
/// a failed attempt, short enough for a cleaned-up disk or a machine that ran out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionSettings {
    /// Counted failures without a success in between.
    pub failures: u32,
    /// The minimum number of distinct tasks among the failures: one task that fails everywhere does not
    /// indicate a bad worker.
    pub tasks: u32,
    pub span: Span,
}

impl Default for ExclusionSettings {
    fn default() -> ExclusionSettings {
        ExclusionSettings {
            failures: 4,
            tasks: 2,
            span: Span::from_secs(30),
        }
    }
}

/// When an attempt gets a duplicate. The defaults are 5 s of work (a tenth of Hadoop's original value,
/// because tasks here take seconds; LATE only required some progress), three finished tasks, twice the
/// median, and a check every second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeculationSettings {
    /// How long an attempt must have run; earlier, its progress is not significant.
    pub minimum: Span,
    /// How many tasks of its kind its job must have finished, capped at half of them.
    pub finished_min: u32,
    /// How much longer than the median task duration the remaining work must take, in thousandths.
    pub slowdown_permille: u32,
    /// How often the engine checks for stragglers, while there may be some.
    pub period: Span,
}

impl Default for SpeculationSettings {
    fn default() -> SpeculationSettings {
        SpeculationSettings {
            minimum: Span::from_secs(5),
            finished_min: 3,
            slowdown_permille: 2000,
            period: Span::from_secs(1),
        }
    }
}
