//! What can be chosen about an engine.
//!
//! Owns the settings and their defaults. A recovery must use the settings of the first run: the same events
//! under other settings have other effects.

use serde::{Deserialize, Serialize};

use crate::ids::TaskKind;
use crate::preemption::Primitive;
use crate::primitive_choice::{AutoSettings, PrimitiveChoice};
use crate::suspended_max::SuspendedMax;
use crate::time::Span;

/// What can be chosen about an engine.
///
/// Lenient, with a reservation of 400 ms (twice the usual heartbeat interval), and workers excluded. No
/// speculation: on a single machine a duplicate would only take what the straggler needs. Every primitive
/// as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSettings {
    /// An illegal action of the scheduler panics (tests, simulator) instead of being counted and
    /// ignored (live).
    pub strict: bool,
    /// How long a slot that was freed for a job is kept for it, on top of the grace of the request.
    pub reservation: Span,
    /// When a worker on which much fails is excluded; never, without.
    pub exclusion: Option<ExclusionSettings>,
    /// For how long a worker gets nothing after a failure that belongs to its disk or its limits; twice
    /// as long after each further one, up to 64 times, until an attempt ends well there.
    pub shortage_span: Span,
    /// A task fails for good when so many workers died while it ran there alone; never, when zero. It
    /// runs alone from the third time on, when workers have died twice while it ran beside others.
    pub crashes_max: u32,
    /// There is no other host and never will be: what its disk lacks fails the job, since nobody would
    /// wait well.
    pub one_host: bool,
    /// When an attempt that takes much longer than its like gets a duplicate; never, without.
    pub speculation: Option<SpeculationSettings>,
    /// What becomes of a primitive that a policy prefers.
    pub preemption: PreemptionSettings,
    /// Orders tell reduces which map outputs to read. A driver that moves no data has no use for that.
    pub name_outputs: bool,
    /// Where the engine's own random choices start.
    pub seed: u64,
    /// Slots of workers are of one kind, as containers are: a worker says how many as map slots and once
    /// more as reduce slots, and an attempt of either kind takes one of them. For the simulator; workers
    /// of a cluster have slots of two kinds.
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

/// What becomes of the primitive that a policy prefers: it is asked in this order whether the kind of
/// task can be preempted so, whether its worker can keep another suspended attempt, and whether it is
/// worth its cost.
///
/// Everything can be preempted as asked, everywhere, as long as a worker does not keep too much
/// that is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PreemptionSettings {
    /// How maps can be preempted.
    pub map: KindPreemption,
    /// How reduces can be preempted.
    pub reduce: KindPreemption,
    /// How many suspended attempts a worker keeps at most.
    pub suspended_max: SuspendedMax,
    /// What becomes of a suspend when a worker keeps that many, or did and still keeps more than
    /// half of them.
    pub when_full: Instead,
    /// When a primitive that saves work is not worth it; always is, without.
    pub cost: Option<CostRule>,
    /// How often one task may be preempted.
    pub limits: PreemptionLimits,
    /// When a suspended attempt that waits for a slot of its worker may go on elsewhere; never, without.
    pub convert: Option<Conversion>,
    /// What is used whatever a policy prefers: who is preempted and how are chosen apart.
    pub primitive: Option<PrimitiveChoice>,
    /// What the choice goes by where it is left to the costs.
    pub auto: AutoSettings,
    /// What becomes of an attempt whose slot is not free when the grace of its request is over; without
    /// it, it is killed unless it is to be let finish.
    pub escalate: Option<Escalation>,
    /// A task whose slot was taken so often, with no second of work more to show for it, is no victim
    /// again before it has run for a second; for two after the next time, then for four, and so on.
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
    /// How tasks of a kind can be preempted.
    pub fn of(&self, kind: TaskKind) -> KindPreemption {
        match kind {
            TaskKind::Map => self.map,
            TaskKind::Reduce => self.reduce,
        }
    }

    /// Whether a request for this primitive ends in a kill when its grace is over.
    pub(crate) fn ends_in_kill(&self, primitive: Primitive) -> bool {
        match (primitive, self.escalate) {
            (Primitive::Kill, _) => true,
            (_, Some(escalation)) => escalation == Escalation::Kill,
            (Primitive::Wait, None) => false,
            (Primitive::Suspend | Primitive::Checkpoint, None) => true,
        }
    }

    /// How long a task must run before it is a victim again that was one so often without progress.
    pub(crate) fn spared_for(&self, preemptions_without_progress: u32) -> Span {
        match preemptions_without_progress.checked_sub(self.preemptions_without_progress_max) {
            Some(beyond) => Span(PROGRESS.0.saturating_mul(1 << beyond.min(40))),
            None => Span(0),
        }
    }
}

/// So much more work that is kept is progress of a task that is preempted again and again.
pub(crate) const PROGRESS: Span = Span::from_secs(1);

/// What becomes of an attempt whose slot is not free when the grace of its request is over. A request to kill
/// ends in a kill in any case: that is what its grace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Escalation {
    /// It is killed, also if it was to be let finish.
    Kill,
    /// The request stays open until the slot is free.
    Never,
}

/// How tasks of one kind can be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct KindPreemption {
    /// They can be suspended.
    pub suspend: bool,
    /// They can be checkpointed.
    pub checkpoint: bool,
    /// What is done if they cannot be preempted as asked.
    pub otherwise: Instead,
}

impl Default for KindPreemption {
    fn default() -> KindPreemption {
        KindPreemption { suspend: true, checkpoint: true, otherwise: Instead::Kill }
    }
}

/// What can always be done instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instead {
    /// Let it finish.
    Wait,
    /// End it.
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

/// What saving work costs. Below it, the work is lost instead; and what ends sooner than it could be
/// saved is let finish (OS-Assisted Task Preemption for Hadoop, V-A, recommends both without numbers).
/// Nothing costs anything when it is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CostRule {
    /// From the order to the free slot.
    #[serde(with = "crate::time::text")]
    pub suspend: Span,
    /// From the free slot to work that goes on.
    #[serde(with = "crate::time::text")]
    pub resume: Span,
    /// What the primitive took lately, for tasks of the kind, takes the place of the two above as soon as
    /// it is known.
    pub measured: bool,
    /// What ends sooner than its slot could be freed is let finish.
    pub let_finish: bool,
    /// What has done less than it would cost to keep it is killed.
    pub kill_fresh: bool,
}

impl Default for CostRule {
    fn default() -> CostRule {
        CostRule { suspend: Span(0), resume: Span(0), measured: false, let_finish: true, kill_fresh: true }
    }
}

/// How often one task may be preempted by policies: what is stopped and continued all the time gets nothing
/// done. What operators ask for is not held to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct PreemptionLimits {
    /// How long a task that was preempted before must have run again before it is preempted again: an earlier
    /// wish waits until then. None when zero.
    #[serde(with = "crate::time::text")]
    pub minimum_run: Span,
    /// How often a task is suspended at most, over all its attempts; then it is let finish. Any
    /// number, without.
    pub suspends_max: Option<u32>,
    /// How often the slot of a task is taken at most, by whatever primitive, over all its attempts; then it
    /// is let finish. Any number, without.
    pub preemptions_max: Option<u32>,
}

/// When a suspended attempt is given up for one elsewhere: nothing can move a stopped process, so that it
/// waits for its worker however free the others are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Conversion {
    /// After its worker had no slot for it for so long, while another one has a slot that nobody wants.
    #[serde(with = "crate::time::text")]
    pub after: Span,
    /// What becomes of it.
    pub to: Converted,
}

/// What becomes of a suspended attempt whose task is to go on elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Converted {
    /// It is woken, saves its work at the next boundary and exits. Where its kind cannot do that, it stays.
    Checkpoint,
    /// It is killed, and its task begins again from where its last checkpoint ends, if it has one.
    Kill,
}

/// When a worker is excluded, and for how long. Half of the workers with map slots stay in use in
/// any case, and half of those with reduce slots.
///
/// After four failures (a task has no more) of two tasks, for 30 s: long enough to spare other tasks a
/// try, short enough for a disk that was cleaned up or a machine that was out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionSettings {
    /// After so many counted failures without a success in between.
    pub failures: u32,
    /// If they are of at least so many tasks: one task that fails everywhere says nothing about a worker.
    pub tasks: u32,
    /// For how long.
    pub span: Span,
}

impl Default for ExclusionSettings {
    fn default() -> ExclusionSettings {
        ExclusionSettings { failures: 4, tasks: 2, span: Span::from_secs(30) }
    }
}

/// When an attempt gets a duplicate: after 5 s at work (a tenth of what Hadoop waited at first, since
/// tasks here take seconds; LATE only wanted some progress), three finished tasks, twice the median,
/// looked for every second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpeculationSettings {
    /// How long an attempt must have been at work: before, its progress says little.
    pub minimum: Span,
    /// How many tasks of its kind its job must have finished, though never more than half of them.
    pub finished_min: u32,
    /// How much longer than the median of those the rest must take, in thousandths.
    pub slowdown_permille: u32,
    /// How often stragglers are looked for, while there may be some.
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
