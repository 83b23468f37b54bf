//! A policy as an operator chose it: what a coordinator needs to know without naming any policy.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::Scheduler;
use crate::ids::TaskKind;
use crate::settings::PreemptionSettings;

/// A policy with its values.
pub trait PolicyChoice: Debug + Send + Sync {
    /// The name in configuration files.
    fn name(&self) -> &'static str;

    /// A new instance of the policy.
    ///
    /// # Errors
    /// Names the invalid value and the valid ones.
    fn build(&self) -> Result<Box<dyn Scheduler>, String>;

    /// The queues that the policy tells apart; `None` if it accepts any name.
    fn queues(&self) -> Option<Vec<&str>>;

    /// The setting by which tasks of a kind of a job of this name are checkpointed sooner or later; `None` if
    /// they never are.
    fn checkpoints(&self, kind: TaskKind, job: &str, settings: &PreemptionSettings) -> Option<&'static str>;

    /// Name and values, as [`ReadPolicy`] reads them again. Two choices are equal if this is.
    fn to_json(&self) -> Value;

    /// The values that are not the published ones, as a configuration file would have them.
    fn changed_values(&self) -> Option<Value>;
}

/// Reads what [`PolicyChoice::to_json`] wrote, perhaps by an earlier version.
pub type ReadPolicy = fn(&Value) -> Result<Arc<dyn PolicyChoice>, String>;
