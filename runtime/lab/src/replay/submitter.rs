//! Owns handing jobs in at their times, all by one process over one connection, and how late each was. What
//! becomes of them afterwards belongs to `bench`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use napreduce::program::encode_parameters;
use napreduce_core::{JobId, Span};
use napreduce_live::{CheckpointSupport, ClusterClient, JobPlan, Split, SubmitOptions};
use napreduce_sim::SimulatedJob;

use super::plan::LivePlan;
use crate::error::{LabError, LiveClusterError};
use crate::jobs::{RECORD_BYTES, RECORDS, REPLAYED, REPLAYED_MAPS, TaskBody};
use crate::process::Interrupt;

/// Memory of a task for its records, which are few.
const TASK_MEMORY: u64 = 16 << 20;
/// The longest sleep without a look at the interrupt.
const SLICE: Duration = Duration::from_millis(20);
/// A submission may be late by this, and by a share of the mean gap.
const LATE_MAX: Span = Span::from_millis(5);
const LATE_SHARE: u64 = 20;

/// A job that was handed in.
#[derive(Clone, Copy, Debug)]
pub struct HandedIn {
    pub job: JobId,
    /// How long after its time.
    pub late: Span,
}

/// What jobs are handed in with.
#[derive(Clone, Copy, Debug)]
pub struct Handing<'a> {
    /// The records of all maps.
    pub records: &'a Path,
    /// The length of that file.
    pub records_length: u64,
    /// Where outputs go, each by the name of its job.
    pub outputs: &'a Path,
    /// Without, no time passes in tasks.
    pub body: Option<TaskBody>,
    pub rounds_per_second: u64,
}

impl Handing<'_> {
    /// Hands in a job now.
    ///
    /// # Errors
    /// When the cluster does not take it.
    pub fn submit(
        &self,
        client: &mut ClusterClient,
        number: usize,
        job: &SimulatedJob,
    ) -> Result<JobId, LabError> {
        let options = SubmitOptions { user: job.user.to_string(), ..SubmitOptions::default() };
        let plan = self.plan(number, job)?;
        Ok(client.submit(plan, &options).map_err(LiveClusterError::from)?)
    }

    fn plan(&self, number: usize, job: &SimulatedJob) -> Result<JobPlan, LabError> {
        let tasks = LivePlan::tasks(job, self.body, self.rounds_per_second);
        let memory = tasks.fill_mib << 20;
        let parameters = encode_parameters(&tasks).map_err(|error| {
            crate::error::WorkloadReplayError::Policy(format!("job {}: {error}", job.name))
        })?;
        let length = RECORDS * RECORD_BYTES as u64;
        let split = |map: u64| Split {
            path: self.records.to_owned(),
            offset: map * length,
            length,
            file_length: self.records_length,
            version: None,
        };
        let definition = if job.reduces.is_empty() { REPLAYED_MAPS } else { REPLAYED };
        // Names of jobs may be of any form, so that outputs are numbered.
        Ok(JobPlan {
            name: job.name.to_string(),
            parameters,
            splits: (0..job.maps.len() as u64).map(|map| split(map).into()).collect(),
            reduces: job.reduces.len() as u32,
            attempts_max: job.attempts_max,
            task_memory: TASK_MEMORY.max(memory),
            queue: job.queue.to_string(),
            priority: job.priority,
            deadline: job.deadline.map(|deadline| Duration::from_micros(deadline.0)),
            slowstart_permille: job.slowstart_permille,
            // Its closures keep no state.
            checkpoint: CheckpointSupport { map: true, reduce: true },
            ..JobPlan::new(definition, self.outputs.join(number.to_string()))
        })
    }
}

/// Waits until `due`; `meanwhile` may look at the cluster when there is much time, given how much.
///
/// # Errors
/// On an interrupt, and what `meanwhile` says.
pub fn wait_until(
    due: Instant,
    interrupt: &Interrupt,
    mut meanwhile: impl FnMut(Duration) -> Result<(), LabError>,
) -> Result<(), LabError> {
    loop {
        interrupt.check()?;
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        meanwhile(left)?;
        let left = due.saturating_duration_since(Instant::now());
        thread::sleep(left.min(SLICE));
    }
}

/// By how much a submission may be late in a run that counts.
pub fn late_max(plan: &LivePlan) -> Span {
    LATE_MAX.max(Span(plan.mean_gap().0 / LATE_SHARE))
}
