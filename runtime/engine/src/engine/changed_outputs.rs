//! Maps that run again and write other records than before. The records of a map are distributed among all reduces,
//! so a job is wrong if one reduce reads the records of one attempt and another those of a second one: some records
//! would be lost, others would come twice. Each finished attempt reports a digest of its records in the order in
//! which reduces read them. If it differs from that of the attempt before:
//!
//! - if a reduce has finished or may commit, it has used the old output: the job fails;
//! - otherwise the reduces start from the beginning and read the new output only. Whether they had read the old one is
//!   not known: they are killed in any state, and their checkpoints are not used.
//!
//! Both are decided when the new output arrives. Later reduces are given only that one, so it is enough to keep the
//! last digest of each map.

use crate::cluster::{Job, WrittenOutput};
use crate::engine::Rules;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind};
use crate::job::JobOutcome;
use crate::states::{JobInput, TaskInput, TaskState};

/// The requirement on every map; ends messages about a map that violates it.
const REQUIREMENT: &str = "a map must emit the same records in the same order whenever it reads the same input: \
                           without the order of a HashMap, the time, random numbers or a hash with a random seed, \
                           and its input must not change while the job runs";

impl Rules {
    /// Handles a map output whose records differ from those of an earlier attempt.
    pub(super) fn map_output_changed(
        &mut self,
        map: TaskId,
        first: WrittenOutput,
        second: WrittenOutput,
    ) {
        let first = AttemptId {
            task: map,
            number: first.number,
        };
        let second = AttemptId {
            task: map,
            number: second.number,
        };
        if let Some(reduce) = self.cluster.job(map.job).committing_reduce() {
            let reason = format!(
                "{map} is not deterministic: {second} wrote other records than {first}, whose output {reduce} has \
                 used; {REQUIREMENT}"
            );
            return self.decide(map.job, JobInput::Failed, JobOutcome::Failed { reason });
        }
        let changed = format!("{second} wrote other records than {first}");
        if self.restart_reduces(map.job, &changed) {
            self.warn(format!(
                "{map} is not deterministic: {changed}; the reduces that may have read the output of {first} start \
                 again; {REQUIREMENT}"
            ));
        }
    }

    /// Kills all attempts at the reduces of a job, and drops their checkpoints. Returns whether there were any.
    fn restart_reduces(&mut self, job: JobId, reason: &str) -> bool {
        let mut restarted = false;
        for index in 0..self.cluster.job(job).tasks_total(TaskKind::Reduce) {
            let reduce = TaskId {
                job,
                kind: TaskKind::Reduce,
                index,
            };
            restarted |= self.restart_reduce(reduce, reason);
        }
        self.cluster.refresh(job);
        restarted
    }

    fn restart_reduce(&mut self, reduce: TaskId, reason: &str) -> bool {
        let task = self.cluster.task_mut(reduce);
        let live = std::mem::take(&mut task.live);
        let had_checkpoint = task.checkpoint.is_some();
        for &number in live.iter() {
            let attempt = AttemptId {
                task: reduce,
                number,
            };
            // A checkpoint that it is writing does not count.
            self.cluster.attempt_mut(attempt).superseded = true;
            self.kill(attempt, reason.to_owned());
        }
        let job = self.cluster.job_mut(reduce.job);
        job.set_checkpoint(reduce, None);
        if !live.is_empty() {
            job.step_task(reduce, TaskInput::AttemptEnded);
        }
        had_checkpoint || !live.is_empty()
    }
}

impl Job {
    /// Returns a reduce that has finished, or an attempt of which may commit.
    fn committing_reduce(&self) -> Option<TaskId> {
        for (index, task) in (0..).zip(&self.phases.reduce.tasks) {
            if task.state == TaskState::Done || task.committer.is_some() {
                return Some(TaskId {
                    job: self.id,
                    kind: TaskKind::Reduce,
                    index,
                });
            }
        }
        None
    }
}
