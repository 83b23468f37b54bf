//! Whose tasks are stopped for a job that lacks slots, and whether tasks of a worker are stopped at all.
//!
//! Owns the choice of jobs and the switch between eager and waiting. Does not own the choice of tasks.

use serde::{Deserialize, Serialize};

/// A job that may have to give tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<I, S> {
    pub id: I,
    /// What is left of it.
    pub remaining: S,
    /// How many of its tasks can be taken.
    pub tasks: u32,
}

/// How many tasks each job gives to a job that lacks so many slots and has so much left: the largest first,
/// and nobody who is not larger than the claimant. The holders come largest first; of equal ones, the one
/// submitted last.
pub fn select<I, S: Ord>(
    remaining: &S,
    mut lacking: u32,
    holders: impl IntoIterator<Item = Holder<I, S>>,
) -> Vec<(I, u32)> {
    let mut taken = Vec::new();
    for holder in holders {
        if lacking == 0 || holder.remaining <= *remaining {
            break;
        }
        let tasks = holder.tasks.min(lacking);
        if tasks > 0 {
            lacking -= tasks;
            taken.push((holder.id, tasks));
        }
    }
    taken
}

/// What is done to a job that has to give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Its tasks are stopped at once.
    #[default]
    Eager,
    /// Its tasks are waited for.
    Wait,
}

/// Keeps stopped tasks from filling a machine: with many of them there tasks are waited for, until few are
/// left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hysteresis {
    mode: Mode,
}

impl Hysteresis {
    /// The mode with so many suspended tasks: waiting from `high` on, until there are no more than `low`.
    pub fn decide(&mut self, suspended: u32, high: u32, low: u32) -> Mode {
        self.mode = match self.mode {
            Mode::Eager if suspended >= high => Mode::Wait,
            Mode::Wait if suspended <= low => Mode::Eager,
            mode => mode,
        };
        self.mode
    }
}
