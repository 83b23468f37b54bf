//! What a submitter hands in: the job and how to run it embedded.
//!
//! Owns the plain data and its defaults. Does not own how inputs become splits (the framework) nor what is
//! done with the plan (`coordinator`).

use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::TaskKind;
use serde::{Deserialize, Serialize};

use crate::splits::InputSplit;
use crate::text::check_name;

/// A job ready to run: what a submitter hands to `run_embedded` or to a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPlan {
    /// Which definition of the program to build in each task process.
    pub definition: String,
    /// Its encoded parameters, handed to `Definitions::build` as they are.
    pub parameters: Vec<u8>,
    /// Name of the job, for people.
    pub name: String,
    /// One map task each, in order; may be empty.
    pub splits: Vec<InputSplit>,
    /// How many reduce tasks; 0 makes the job map-only.
    pub reduces: u32,
    /// The cut keys of a range partitioner, encoded, in ascending order: one fewer than `reduces`, or
    /// none.
    pub cuts: Vec<Vec<u8>>,
    /// The output directory.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// Whether an existing output is replaced when the job succeeds.
    pub overwrite: bool,
    /// How often a task may fail before the job does; at least 1.
    pub attempts_max: u32,
    /// Memory one attempt may use, in bytes.
    pub task_memory: u64,
    /// Extension of part files without its dot; empty for none.
    pub part_extension: String,
    /// Whether blocks of map output are compressed.
    pub compress: bool,
    /// The queue of a cluster.
    pub queue: String,
    /// Higher is more important, on a cluster.
    pub priority: i32,
    /// When it should be done, counted from submission, if it matters.
    pub deadline: Option<Duration>,
    /// Reduces may start when this many thousandths of the maps are done (0..=1000).
    pub slowstart_permille: u32,
    /// An attempt that makes no progress for so long is ended and counts as failed; zero for never.
    pub task_timeout: Duration,
    /// Which of its tasks can be checkpointed.
    pub checkpoint: CheckpointSupport,
    /// The chain it belongs to, on a cluster: see `Chain::token`.
    pub chain: Option<u128>,
    /// Whether what a task saves is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
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
        }
    }
}

/// Which tasks of a job can be checkpointed: those whose user code keeps no state, or saves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CheckpointSupport {
    pub map: bool,
    pub reduce: bool,
}

impl JobPlan {
    /// Attempts per task unless said otherwise.
    pub const ATTEMPTS_MAX_DEFAULT: u32 = 4;
    /// Bytes of memory per task unless said otherwise.
    pub const TASK_MEMORY_DEFAULT: u64 = 256 << 20;
    /// The queue of a job that names none.
    pub const QUEUE_DEFAULT: &str = "default";
    /// Share of maps after which reduces start, in thousandths, unless said otherwise: on one machine a
    /// reduce that starts earlier only holds memory, and on several the last fifth of the maps is enough to
    /// fetch beside.
    pub const SLOWSTART_PERMILLE_DEFAULT: u32 = 800;
    /// Time without progress after which an attempt is ended, unless said otherwise; as long as Hadoop waits.
    pub const TASK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(600);

    /// A plan with every default: no splits, one reduce, nothing overwritten.
    pub fn new(definition: impl Into<String>, output: impl Into<PathBuf>) -> JobPlan {
        let definition = definition.into();
        JobPlan::named(definition.clone(), definition, output.into())
    }

    /// The kinds of its tasks that cannot be checkpointed.
    pub fn unsaved(&self) -> Vec<TaskKind> {
        let CheckpointSupport { map, reduce } = self.checkpoint;
        let cannot = |kind: &TaskKind| match kind {
            TaskKind::Map => !map,
            TaskKind::Reduce => !reduce && self.reduces > 0,
        };
        TaskKind::ALL.into_iter().filter(cannot).collect()
    }

    /// Says in which way the plan contradicts itself, if it does.
    pub fn check(&self) -> Result<(), String> {
        if self.attempts_max == 0 {
            return Err("attempts_max must be at least 1".to_owned());
        }
        if self.slowstart_permille > 1000 {
            return Err(format!(
                "slowstart_permille is {}; at most 1000 make sense",
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
