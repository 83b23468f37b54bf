//! Owns handing jobs in at their times, all by one process, and how late each was. What becomes of them
//! afterwards belongs to `bench`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
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
/// Connections that jobs are handed in over, by turns: an answer comes when the job is on the disk, and the next job may be
/// due before.
pub const HANDS: usize = 4;
/// The longest sleep without a look at the interrupt.
const SLICE: Duration = Duration::from_millis(20);
/// A submission may be late by this, and by a share of the mean gap.
const LATE_MAX: Span = Span::from_millis(5);
const LATE_SHARE: u64 = 20;

/// Jobs by the connection that they are handed in over. Those of one time stay in their order by sharing one.
fn turns(jobs: &[SimulatedJob], hands: usize) -> Vec<Vec<usize>> {
    let mut turns = vec![Vec::new(); hands];
    let mut turn = 0;
    for (number, job) in jobs.iter().enumerate() {
        if number > 0 && jobs[number - 1].submit != job.submit {
            turn = (turn + 1) % hands;
        }
        turns[turn].push(number);
    }
    turns
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
        let so_far = AtomicUsize::new(0);
        let one = |client: &mut ClusterClient, number: usize| {
            let due = began + Duration::from_micros(jobs[number].submit.0);
            wait_until(due, interrupt)?;
            let late = Span(due.elapsed().as_micros() as u64);
            let job = self.submit(client, number, &jobs[number])?;
            so_far.fetch_add(1, Ordering::Relaxed);
            Ok::<_, LabError>((number, HandedIn { job, late }))
        };
        let turns = turns(jobs, clients.len());
        let one = &one;
        let mut handed = thread::scope(|scope| {
            let hand = |(client, own): (&'a mut ClusterClient, Vec<usize>)| {
                let all = move || own.into_iter().map(|number| one(&mut *client, number)).collect();
                scope.spawn::<_, Result<Vec<_>, LabError>>(all)
            };
            let hands: Vec<ScopedJoinHandle<'_, _>> = clients.iter_mut().zip(turns).map(hand).collect();
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
    use napreduce_core::Time;

    use super::*;

    #[test]
    fn connections_take_turns_and_jobs_of_one_time_share_one() {
        let at = |times: &[u64]| {
            let job = |time: &u64| SimulatedJob::new("job", Time(*time));
            turns(&times.iter().map(job).collect::<Vec<_>>(), 3)
        };
        assert_eq!(at(&[0, 0, 5, 6, 6, 9, 9]), [vec![0, 1, 5, 6], vec![2], vec![3, 4]]);
        assert_eq!(at(&[7]), [vec![0], vec![], vec![]]);
        assert_eq!(at(&[]), [const { Vec::<usize>::new() }; 3]);
    }
}
