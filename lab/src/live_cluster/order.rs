//! Owns a job to be handed in, as the command line of its program.
//! What the job does is `jobs`, when it is handed in belongs to the experiments.

use std::path::{Path, PathBuf};

use napreduce_live::ByteSize;

use crate::jobs::{JOB_PROGRAM, PARENT_VARIABLE, Work};
use crate::process::CommandLine;

/// A job of the lab's program.
#[derive(Clone, Debug)]
pub struct JobOrder {
    /// What people and rules call it.
    pub name: String,
    /// What it does.
    pub work: Work,
    pub input: PathBuf,
    /// Where its output goes.
    pub output: PathBuf,
    pub reduces: u32,
    /// Input bytes for one map task.
    pub split_size: ByteSize,
    /// Memory of a task for records.
    pub task_memory: ByteSize,
    /// The queue, unless it is the default one.
    pub queue: Option<String>,
}

impl JobOrder {
    /// A job with one map and one reduce at most.
    pub fn new(name: &str, work: Work, input: &Path, output: &Path) -> JobOrder {
        JobOrder {
            name: name.to_owned(),
            work,
            input: input.to_owned(),
            output: output.to_owned(),
            reduces: 1,
            split_size: ByteSize::new(1 << 40),
            task_memory: ByteSize::new(64 << 20),
            queue: None,
        }
    }

    /// The command that hands it in, prints its id and ends.
    pub fn command(&self, program: &Path, cluster: &Path) -> CommandLine {
        self.submitting(program, cluster).arg("--detach")
    }

    fn submitting(&self, program: &Path, cluster: &Path) -> CommandLine {
        let Work { job, rounds, pause, fill, seed } = &self.work;
        let command = CommandLine::new(program)
            .called(JOB_PROGRAM)
            .env(PARENT_VARIABLE, std::process::id().to_string())
            .arg(&self.input)
            .flag("--output", &self.output)
            .flag("--cluster", cluster)
            .arg("--quiet")
            .flag("--name", &self.name)
            .flag("--reduces", self.reduces.to_string())
            .flag("--split-size", self.split_size.to_string())
            .flag("--conf", "combine-files=false")
            .flag("--task-memory", self.task_memory.to_string())
            .flag("--job", job)
            .flag("--rounds", rounds.to_string())
            .flag("--pause", pause.to_string())
            .flag("--fill", fill.to_string())
            .flag("--seed", seed.to_string());
        match &self.queue {
            Some(queue) => command.flag("--queue", queue),
            None => command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_says_everything() {
        let work = Work { job: "steps".to_owned(), rounds: 5, pause: 6, fill: 7, seed: 8 };
        let order = JobOrder {
            reduces: 3,
            queue: Some("production".to_owned()),
            ..JobOrder::new("high-1", work, "in".as_ref(), "out".as_ref())
        };
        let typed = order.command("bin/nap".as_ref(), "dir".as_ref()).typed();
        let expected = "bin/nap in --output out --cluster dir --quiet --name high-1 --reduces 3 \
                        --split-size 1TiB --conf combine-files=false --task-memory 64MiB --job steps --rounds 5 --pause 6 --fill 7 --seed 8 \
                        --queue production --detach)";
        assert!(typed.ends_with(expected), "{typed}");
    }
}
