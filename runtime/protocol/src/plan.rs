//! A job plan: the job as submitted, with defaults.

use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::TaskKind;
use serde::{Deserialize, Serialize};

use crate::splits::InputSplit;
use crate::submitted::Invocation;
use crate::text::check_name;

/// A job ready to run, embedded or on a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The program's definition to build in each task process.
    pub definition: String,
    /// Its encoded parameters for `Definitions::build`.
    pub parameters: Vec<u8>,
    /// Name of the job, for people.
    pub name: String,
    /// One per map task, in order; may be empty.
    pub splits: Vec<InputSplit>,
    /// The number of reduce tasks; 0 makes the job map-only.
    pub reduces: u32,
    /// Encoded cut keys of a range partitioner, ascending: one fewer than `reduces`, or none.
    pub cuts: Vec<Vec<u8>>,
    /// The output directory.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// Whether to replace an existing output when the job succeeds.
    pub overwrite: bool,
    /// Failures of one task that fail the job; at least 1.
    pub attempts_max: u32,
    /// Memory limit of one attempt, in bytes.
    pub task_memory: u64,
    /// Extension of part files without its dot; empty for none.
    pub part_extension: String,
    /// Whether to compress blocks of map output.
    pub compress: bool,
    /// The queue of a cluster.
    pub queue: String,
    /// Higher is more important, on a cluster.
    pub priority: i32,
    /// The deadline after submission, if any.
    pub deadline: Option<Duration>,
    /// Reduces may start when this many thousandths of the maps are done (0..=1000).
    pub slowstart_permille: u32,
    /// Time without progress after which an attempt fails; zero for never.
    pub task_timeout: Duration,
    /// Which tasks can be checkpointed.
    pub checkpoint: CheckpointSupport,
    /// Its chain, on a cluster: see `Chain::token`.
    pub chain: Option<u128>,
    /// Whether saved data must be synced to disk before it counts.
    pub durable: bool,
    /// The command line that submitted it, if there was one.
    #[serde(default)]
    pub invocation: Option<Invocation>,
}

impl JobPlan {
    fn named(name: String, definition: String, output: PathBuf) -> JobPlan {
        JobPlan {
            definition,
            parameters: Vec::new(),
            name,
            splits: Vec::new(),
            reduces: 1,
            cuts: Vec::new(),
            output,
            overwrite: false,
            attempts_max: JobPlan::ATTEMPTS_MAX_DEFAULT,
            task_memory: JobPlan::TASK_MEMORY_DEFAULT,
            part_extension: String::new(),
            compress: false,
            queue: JobPlan::QUEUE_DEFAULT.to_owned(),
            priority: 0,
            deadline: None,
            slowstart_permille: JobPlan::SLOWSTART_PERMILLE_DEFAULT,
            task_timeout: JobPlan::TASK_TIMEOUT_DEFAULT,
            checkpoint: CheckpointSupport::default(),
            chain: None,
            durable: false,
            invocation: None,
        }
    }
}

/// Which tasks can be checkpointed: those whose user code is stateless or saves its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckpointSupport {
    pub map: bool,
    pub reduce: bool,
}

impl JobPlan {
    /// Default attempts per task.
    pub const ATTEMPTS_MAX_DEFAULT: u32 = 4;
    /// Default memory per task in bytes.
    pub const TASK_MEMORY_DEFAULT: u64 = 256 << 20;
    /// The default queue.
    pub const QUEUE_DEFAULT: &str = "default";
    /// Default share of finished maps at which reduces start, in thousandths. On one machine, earlier reduces
    /// only hold memory; on several, the last fifth of the maps leaves enough time to fetch.
    pub const SLOWSTART_PERMILLE_DEFAULT: u32 = 800;
    /// Default time without progress after which an attempt fails; the same as Hadoop's.
    pub const TASK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);

    /// The defaults: no splits, one reduce, nothing overwritten.
    pub fn new(definition: impl Into<String>, output: impl Into<PathBuf>) -> JobPlan {
        let definition = definition.into();
        JobPlan::named(definition.clone(), definition, output.into())
    }

    /// Lists the kinds of tasks that cannot be checkpointed.
    pub fn unsaved(&self) -> Vec<TaskKind> {
        let CheckpointSupport { map, reduce } = self.checkpoint;
        let cannot = |kind: &TaskKind| match kind {
            TaskKind::Map => !map,
            TaskKind::Reduce => !reduce && self.reduces > 0,
        };
        TaskKind::ALL.into_iter().filter(cannot).collect()
    }

    /// Checks that the plan is consistent.
    pub fn check(&self) -> Result<(), String> {
        if self.attempts_max == 0 {
            return Err("attempts_max must be at least 1".to_owned());
        }
        if self.slowstart_permille > 1000 {
            return Err(format!(
                "invalid slowstart_permille {} (limit 1000)",
                self.slowstart_permille
            ));
        }
        check_name("name", &self.name, "--name")?;
        check_name("queue", &self.queue, "--queue")?;
        let cuts = self.cuts.len();
        if cuts > 0 && cuts as u64 + 1 != u64::from(self.reduces) {
            return Err(format!(
                "{cuts} cut keys make {} partitions, but the job has {} reduces",
                cuts + 1,
                self.reduces
            ));
        }
        Ok(())
    }
}
