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
}

impl Default for EngineSettings {
    /// Lenient, with escalation, a reservation of 400 ms (twice the usual heartbeat interval), and workers set aside.
    fn default() -> EngineSettings {
        EngineSettings {
            strict: false,
            escalate: true,
            reservation: Span::from_millis(400),
            set_aside: Some(SetAsideSettings::default()),
        }
    }
}

/// When a worker is set aside, and for how long. Half of the workers stay in use in any case.
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
