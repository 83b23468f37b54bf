//! The policy that an operator configured: the data a coordinator needs, independent of any particular
//! policy.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::Scheduler;
use crate::ids::TaskKind;
use crate::settings::PreemptionSettings;

/// A policy with its values.
pub trait PolicyChoice: Debug + Send + Sync {
    /// Returns the name in configuration files.
    fn name(&self) -> &'static str;

    /// Creates an instance of the policy.
    ///
    /// # Errors
    /// Reports the invalid value and the valid ones.
    fn build(&self) -> Result<Box<dyn Scheduler>, String>;

    /// Returns the policy's queues; `None` if it accepts any name.
    fn queues(&self) -> Option<Vec<&str>>;

    /// Returns the setting that allows checkpoints of tasks of a kind of a job of this name; `None` if they
    /// are never checkpointed.
    fn checkpoints(
        &self,
        kind: TaskKind,
        job: &str,
        settings: &PreemptionSettings,
    ) -> Option<&'static str>;

    /// Returns name and values, for [`ReadPolicy`]. Two choices are equal if these are.
    fn to_json(&self) -> Value;

    /// Returns the values that differ from the published ones, as in a configuration file.
    fn changed_values(&self) -> Option<Value>;
}

/// Reads the output of [`PolicyChoice::to_json`], possibly of an earlier version.
pub type ReadPolicy = fn(&Value) -> Result<Arc<dyn PolicyChoice>, String>;
