//! Owns handing jobs in at their times, all by one process, and how late each was. What becomes of them
//! afterwards belongs to `bench`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use napreduce::program::encode_parameters;
use napreduce_engine::{JobId, Span};
use napreduce_live::{CheckpointSupport, ClusterClient, JobPlan, Split, SubmitOptions};
use napreduce_sim::SimulatedJob;

use super::plan::LivePlan;
use crate::error::{LabError, LiveClusterError};
use crate::jobs::{RECORD_BYTES, RECORDS, REPLAYED, REPLAYED_MAPS, TaskBody};
use crate::process::Interrupt;

/// Memory of a task for its records, which are few.
const TASK_MEMORY: u64 = 16 << 20;
/// Connections that jobs are handed in over, by turns: an answer comes when the job is on the disk, and the
/// next job may be due before.
pub const HANDS: usize = 4;
/// Between two jobs of one time.
const APART: Duration = Duration::from_micros(500);
/// The longest sleep without a look at the interrupt.
const SLICE: Duration = Duration::from_millis(20);
/// A submission may be late by this, and by a share of the mean gap.
const LATE_MAX: Span = Span::from_millis(5);
const LATE_SHARE: u64 = 20;

/// When each job is handed in, since the first could be. Those of one time come a little apart, so that the
/// cluster takes them in their order, over whichever connections.
fn times(jobs: &[SimulatedJob]) -> Vec<Duration> {
    let mut before = 0;
    let mut times = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        before = if number > 0 && jobs[number - 1].submit == job.submit { before + 1 } else { 0 };
        times.push(Duration::from_micros(job.submit.0) + APART * before);
    }
    times
}

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
    /// Hands in each job at its time since `began`; `meanwhile` hears again and again how many were.
    ///
    /// # Errors
    /// On an interrupt, and when the cluster does not take a job.
    pub fn hand_in<'a>(
        &self,
        clients: &'a mut [ClusterClient],
        jobs: &[SimulatedJob],
        began: Instant,
        interrupt: &Interrupt,
        mut meanwhile: impl FnMut(usize),
    ) -> Result<Vec<HandedIn>, LabError> {
        let (times, so_far) = (times(jobs), AtomicUsize::new(0));
        let one = |client: &mut ClusterClient, number: usize| {
            wait_until(began + times[number], interrupt)?;
            let due = began + Duration::from_micros(jobs[number].submit.0);
            let late = Span(due.elapsed().as_micros() as u64);
            let job = self.submit(client, number, &jobs[number])?;
            so_far.fetch_add(1, Ordering::Relaxed);
            Ok::<_, LabError>((number, HandedIn { job, late }))
        };
        let (one, hands) = (&one, clients.len());
        let mut handed = thread::scope(|scope| {
            let hand = |(turn, client): (usize, &'a mut ClusterClient)| {
                let own = (turn..jobs.len()).step_by(hands);
                let all = move || own.map(|number| one(&mut *client, number)).collect();
                scope.spawn::<_, Result<Vec<_>, LabError>>(all)
            };
            let hands: Vec<ScopedJoinHandle<'_, _>> = clients.iter_mut().enumerate().map(hand).collect();
            while !hands.iter().all(ScopedJoinHandle::is_finished) {
                meanwhile(so_far.load(Ordering::Relaxed));
                thread::sleep(SLICE);
            }
            let mut handed = Vec::new();
            for hand in hands {
                handed.extend(hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, LabError>(handed)
        })?;
        handed.sort_by_key(|(number, _)| *number);
        Ok(handed.into_iter().map(|(_, handed)| handed).collect())
    }

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

fn wait_until(due: Instant, interrupt: &Interrupt) -> Result<(), LabError> {
    loop {
        interrupt.check()?;
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(SLICE));
    }
}

/// By how much a submission may be late in a run that counts.
pub fn late_max(plan: &LivePlan) -> Span {
    LATE_MAX.max(Span(plan.mean_gap().0 / LATE_SHARE))
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Time;

    use super::*;

    #[test]
    fn jobs_of_one_time_come_a_little_apart() {
        let at = |jobs: &[u64]| {
            let job = |time: &u64| SimulatedJob::new("job", Time(*time));
            let times = times(&jobs.iter().map(job).collect::<Vec<_>>());
            times.iter().map(Duration::as_micros).collect::<Vec<_>>()
        };
        assert_eq!(at(&[0, 0, 0, 9_000, 9_001, 9_001]), [0, 500, 1_000, 9_000, 9_001, 9_501]);
        assert_eq!(at(&[]), [0; 0]);
    }
}
