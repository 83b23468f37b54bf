//! Whether tasks of a worker are stopped at all for a job that lacks slots.
//!
//! Owns the switch between eager and waiting. Does not own the choice of jobs (`larger`) nor of tasks.

use serde::{Deserialize, Serialize};

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
