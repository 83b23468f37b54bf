//! The same facts as Spark's monitoring REST writes them.
//!
//! Owns the names of Spark 4's fields, and what of ours stands there: a job is an application with one job of
//! Spark's, its maps are stage 0 and its reduces stage 1. What does not exist here has the value that Spark
//! writes for nothing; memory of Java's heaps, which Spark may leave out, is left out. Does not own routes.

mod applications;
mod executors;
mod jobs;
mod metrics;
mod stages;
mod tasks;
mod times;
mod tried;
mod usual;

pub use applications::{SparkApplication, SparkApplicationStatus, SparkVersion};
pub use executors::{SparkExecutor, executors_of};
pub use jobs::{SparkJob, SparkJobStatus};
pub use stages::{ATTEMPT, SparkStage, SparkStageStatus, TASKS_MAX, kinds_of, stage_id};
pub use tasks::{SparkTask, SparkTaskStatus};
pub use times::MomentAsked;
pub use tried::{Tried, tried_of};
pub use usual::SparkTaskSummary;
