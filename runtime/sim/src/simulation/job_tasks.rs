//! The setup and cleanup tasks of a job in Hadoop 1. They precede all other tasks: each is ordered in the
//! reply to the next heartbeat, starts like an attempt, and is reported with a heartbeat. Their slots are not
//! modelled, since one of some hundred slots is free soon enough.

use std::collections::BTreeMap;

use napreduce_engine::{Span, Time};

use super::Simulation;
use super::clock::{TimedEvent, next_multiple};
use crate::job::SimulatedJob;
use crate::run::{JobResult, SimulationError};
use crate::settings::Overheads;

/// A setup or cleanup task.
#[derive(Debug)]
pub(super) enum JobTask {
    /// Precedes the job, which arrived at `came`.
    Setup { job: SimulatedJob, came: Time },
    /// Follows the job, which ends with it.
    Cleanup { result: JobResult },
}

impl JobTask {
    /// Returns the arrival time of the job.
    fn came(&self) -> Time {
        match self {
            JobTask::Setup { came, .. } => *came,
            JobTask::Cleanup { result } => result.submitted,
        }
    }
}

/// The running setup and cleanup tasks, by number.
#[derive(Debug, Default)]
pub(super) struct JobTasks {
    running: BTreeMap<u64, JobTask>,
    /// The number of the last one.
    last: u64,
}

impl JobTasks {
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the arrival times of these jobs.
    pub fn arrival_times(&self) -> impl Iterator<Item = Time> + '_ {
        self.running.values().map(JobTask::came)
    }

    /// Adds a task; returns its number.
    fn start(&mut self, task: JobTask) -> u64 {
        self.last += 1;
        self.running.insert(self.last, task);
        self.last
    }

    /// Removes and returns a task.
    fn end(&mut self, number: u64) -> Option<JobTask> {
        self.running.remove(&number)
    }
}

/// Returns when the coordinator hears of the end of a task that a job needs now.
fn end_of_task(now: Time, overheads: &Overheads) -> Time {
    let ordered = next_heartbeat(now, overheads);
    let ended = ordered + overheads.order_latency + overheads.launch;
    next_heartbeat(ended, overheads)
}

/// Returns the time of the next heartbeat: `time` if workers report immediately.
fn next_heartbeat(time: Time, overheads: &Overheads) -> Time {
    if overheads.heartbeat == Span(0) {
        return time;
    }
    next_multiple(time, overheads.heartbeat)
}

impl Simulation {
    /// Starts a setup or cleanup task.
    pub(super) fn start_job_task(&mut self, task: JobTask) {
        let number = self.job_tasks.start(task);
        let end = end_of_task(self.clock.now(), &self.settings.overheads);
        self.clock
            .schedule_at(end, TimedEvent::JobTaskEnds { number });
    }

    /// Handles the end of a setup or cleanup task.
    pub(super) fn job_task_ends(&mut self, number: u64) -> Result<(), SimulationError> {
        match self.job_tasks.end(number) {
            Some(JobTask::Setup { job, came }) => self.dispatch(job, came)?,
            Some(JobTask::Cleanup { result }) => self.finish_job(result),
            None => {}
        }
        Ok(())
    }
}
