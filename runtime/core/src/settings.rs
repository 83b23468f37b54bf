//! What can be chosen about an engine.
//!
//! Owns the settings and their defaults. A recovery must use the settings of the first run: the same events under other
//! settings have other effects.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// What can be chosen about an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSettings {
    /// An illegal action of the scheduler panics (tests, simulator) instead of being counted and ignored (live).
    pub strict: bool,
    /// A request to preempt whose grace is over becomes a kill.
    pub escalate: bool,
    /// How long a slot that was freed for a job is kept for it, on top of the grace of the request.
    pub reservation: Span,
    /// When a worker on which much fails is set aside; never, without.
    pub set_aside: Option<SetAsideSettings>,
    /// When an attempt that takes much longer than its like gets a duplicate; never, without.
    pub speculation: Option<SpeculationSettings>,
}

impl Default for EngineSettings {
    /// Lenient, with escalation, a reservation of 400 ms (twice the usual heartbeat interval), and workers set aside. No
    /// speculation: on a single machine a duplicate would only take what the straggler needs.
    fn default() -> EngineSettings {
        EngineSettings {
            strict: false,
            escalate: true,
            reservation: Span::from_millis(400),
            set_aside: Some(SetAsideSettings::default()),
            speculation: None,
        }
    }
}

/// When a worker is set aside, and for how long. Half of the workers with map slots stay in use in
/// any case, and half of those with reduce slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideSettings {
    /// After so many counted failures without a success in between.
    pub failures: u32,
    /// If they are of at least so many tasks: one task that fails everywhere says nothing about a worker.
    pub tasks: u32,
    /// For how long.
    pub span: Span,
}

impl Default for SetAsideSettings {
    /// After four failures (a task has no more) of two tasks, for 30 s: long enough to spare other tasks a try, short
    /// enough for a disk that was cleaned up or a machine that was out of memory.
    fn default() -> SetAsideSettings {
        SetAsideSettings { failures: 4, tasks: 2, span: Span::from_secs(30) }
    }
}

/// When an attempt gets a duplicate.
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
    /// After 5 s at work (a tenth of what Hadoop waited at first, since tasks here take seconds; LATE only wanted some
    /// progress), three finished tasks, twice the median, looked for every second.
    fn default() -> SpeculationSettings {
        SpeculationSettings {
            minimum: Span::from_secs(5),
            finished_min: 3,
            slowdown_permille: 2000,
            period: Span::from_secs(1),
        }
    }
}
