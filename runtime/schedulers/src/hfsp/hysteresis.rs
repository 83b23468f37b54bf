//! A switch that limits the suspended tasks on a worker or in the cluster.

use serde::{Deserialize, Serialize};

/// How slots are taken from a larger job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Suspend its tasks immediately.
    #[default]
    Eager,
    /// Wait for its tasks to end.
    Wait,
}

/// A switch with two thresholds: suspending stops at the high one and starts again at the low one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hysteresis {
    mode: Mode,
}

impl Hysteresis {
    /// Returns the mode for the number of suspended tasks: [`Mode::Wait`] from `high` on, until at most `low`
    /// are left.
    pub fn decide(&mut self, suspended: u32, high: u32, low: u32) -> Mode {
        self.mode = match self.mode {
            Mode::Eager if suspended >= high => Mode::Wait,
            Mode::Wait if suspended <= low => Mode::Eager,
            mode => mode,
        };
        self.mode
    }
}
