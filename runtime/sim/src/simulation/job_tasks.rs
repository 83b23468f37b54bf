//! The set-up and the clean-up task of a job, as Hadoop 1 has them.
//!
//! Owns how long they take: they go before all other tasks, so that each leaves in the answer to the next
//! heartbeat, starts as any attempt does, and is heard of with a heartbeat. What they hold of a slot is left
//! out: of some hundred slots one is free soon enough. Does not own the job in between.

use std::collections::BTreeMap;

use napreduce_engine::Time;

use super::Simulation;
use super::queue::Due;
use crate::job::SimulatedJob;
use crate::run::{JobResult, SimulationError};

/// Jobs that are being set up or cleaned up after.
#[derive(Debug, Default)]
pub(super) struct JobTasks {
    set_up: BTreeMap<u64, (SimulatedJob, Time)>,
    clean_up: BTreeMap<u64, JobResult>,
    last: u64,
}

impl JobTasks {
    pub fn is_empty(&self) -> bool {
        self.set_up.is_empty() && self.clean_up.is_empty()
    }

    /// When the jobs came.
    pub fn since(&self) -> impl Iterator<Item = Time> + '_ {
        let came = self.set_up.values().map(|(_, came)| *came);
        came.chain(self.clean_up.values().map(|result| result.submitted))
    }
}

impl Simulation {
    /// A job that came now is set up before it runs.
    pub(super) fn set_up(&mut self, plan: SimulatedJob) {
        let number = self.job_task();
        self.job_tasks.set_up.insert(number, (plan, self.now));
    }

    /// A job whose tasks are over is over when it is cleaned up after.
    pub(super) fn clean_up(&mut self, result: JobResult) {
        let number = self.job_task();
        self.job_tasks.clean_up.insert(number, result);
    }

    pub(super) fn job_task_ends(&mut self, number: u64) -> Result<(), SimulationError> {
        if let Some((plan, came)) = self.job_tasks.set_up.remove(&number) {
            return self.hand_over(plan, came);
        }
        if let Some(result) = self.job_tasks.clean_up.remove(&number) {
            self.over(result);
        }
        Ok(())
    }

    /// Starts a task of a job.
    fn job_task(&mut self) -> u64 {
        self.job_tasks.last += 1;
        let number = self.job_tasks.last;
        let overheads = self.settings.overheads;
        let beat = |time: Time| match overheads.heartbeat.0 {
            0 => time,
            period => Time(time.0.checked_next_multiple_of(period).unwrap_or(u64::MAX)),
        };
        let heard = beat(beat(self.now) + overheads.order_latency + overheads.launch);
        self.queue.push(heard, Due::JobTaskEnds { number });
        number
    }
}
