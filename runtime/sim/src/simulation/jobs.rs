//! The life of a simulated job from submission to end, and its result.

use std::collections::{BTreeMap, VecDeque};

use napreduce_engine::{
    AttemptId, Event, JobId, JobOutcome, JobPart, JobSpec, MapSpec, Span, TaskId, TaskKind, Time,
    WorkerId,
};

use super::Simulation;
use super::attempts::Phase;
use super::batch::Group;
use super::checkpoints::Checkpoint;
use crate::job::SimulatedJob;
use crate::run::{Ending, JobResult, SimulationError};
use crate::slot_time;

/// Maximum length of a task: ten years.
const TASK_MAX: Span = Span::from_secs(10 * 365 * 86_400);
/// Maximum total length of a job's tasks: 30,000 years.
const JOB_MAX: Span = Span::from_secs(30_000 * 365 * 86_400);

/// An active job.
#[derive(Debug)]
pub(super) struct RunningJob {
    pub maps_done: u32,
    /// Number of maps that were done at least once.
    maps_ever_done: u32,
    maps_end: Option<Time>,
    first_reduce: Option<Time>,
    held: HeldReduceSlots,
    /// Times at which the number of finished maps changed, and the new number; used by fetching reduces.
    pub history: Vec<(Time, u32)>,
    pub reduces: Vec<u32>,
    pub checkpoints: BTreeMap<(TaskKind, u32), Checkpoint>,
    done: [Vec<u64>; 2],
    ever_done: Vec<u64>,
    /// Set with containers.
    pub management: Option<Management>,
    pub plan: SimulatedJob,
    pub result: JobResult,
}

impl RunningJob {
    fn new(plan: SimulatedJob, result: JobResult) -> RunningJob {
        RunningJob {
            maps_done: 0,
            maps_ever_done: 0,
            maps_end: None,
            first_reduce: None,
            held: HeldReduceSlots::default(),
            history: Vec::new(),
            reduces: Vec::new(),
            checkpoints: BTreeMap::new(),
            done: [no_bits(plan.maps.len()), no_bits(plan.reduces.len())],
            ever_done: no_bits(if plan.reduces.is_empty() {
                0
            } else {
                plan.maps.len()
            }),
            management: None,
            plan,
            result,
        }
    }
}

/// Returns one cleared bit per task.
fn no_bits(tasks: usize) -> Vec<u64> {
    vec![0; tasks.div_ceil(64)]
}

/// The role of a job with containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Management {
    /// The master of a job, which is submitted once the master has started.
    Master { of: Option<JobId> },
    /// A job and its master.
    Managed { by: JobId },
}

/// The active jobs, by number.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    first: u32,
    all: VecDeque<Option<Box<RunningJob>>>,
    pub running: usize,
}

impl Jobs {
    /// Stores a job under the next number, starting at 1.
    fn push(&mut self, job: RunningJob) -> JobId {
        self.all.push_back(Some(Box::new(job)));
        self.running += 1;
        JobId(self.first + self.all.len() as u32)
    }

    fn next_id(&self) -> JobId {
        JobId(self.first + self.all.len() as u32 + 1)
    }

    pub fn get_mut(&mut self, JobId(job): JobId) -> Option<&mut RunningJob> {
        let position = job.checked_sub(self.first + 1)?;
        self.all.get_mut(position as usize)?.as_deref_mut()
    }

    pub fn at_mut(&mut self, job: JobId) -> &mut RunningJob {
        self.get_mut(job)
            .expect("jobs are stored until the engine ends them")
    }

    fn remove(&mut self, JobId(job): JobId) -> Option<Box<RunningJob>> {
        let removed = self
            .all
            .get_mut(job.checked_sub(self.first + 1)? as usize)?
            .take()?;
        self.running -= 1;
        while let Some(None) = self.all.front() {
            self.all.pop_front();
            self.first += 1;
        }
        Some(removed)
    }

    pub fn iter(&self) -> impl Iterator<Item = &RunningJob> {
        self.all.iter().flatten().map(|job| &**job)
    }
}

/// The reduce slots of a job over time.
#[derive(Debug, Default)]
pub(super) struct HeldReduceSlots {
    pub now: u64,
    pub since: Time,
    /// Slot time until `since`, and until the end of the last map.
    pub total: u64,
    pub before_maps_end: u64,
    /// Total time from the last map to the end of each reduce.
    pub done_at: u64,
}

impl HeldReduceSlots {
    pub fn count_until(&mut self, now: Time) {
        self.total += self.now * now.since(self.since).0;
        self.since = now;
    }
}

impl RunningJob {
    pub fn is_master(&self) -> bool {
        matches!(self.management, Some(Management::Master { .. }))
    }

    /// Returns the number of its completed tasks.
    pub fn tasks_done(&self, kind: TaskKind) -> u32 {
        self.done[slot_time::of(kind)]
            .iter()
            .map(|word| word.count_ones())
            .sum()
    }

    pub fn maps(&self) -> u32 {
        self.plan.maps.len() as u32
    }

    /// Whether all map outputs are available.
    pub fn maps_complete(&self) -> bool {
        self.maps_done == self.maps()
    }

    /// Whether every map was done at least once.
    pub fn has_completed_every_map(&self) -> bool {
        self.maps_ever_done == self.maps()
    }

    pub fn add_reduce(&mut self, place: u32) -> u32 {
        self.reduces.push(place);
        self.reduces.len() as u32 - 1
    }

    /// Removes a reduce from the list. Returns the reduce that moved to its position.
    pub fn remove_reduce(&mut self, kind: TaskKind, position: u32) -> Option<u32> {
        if kind == TaskKind::Map {
            return None;
        }
        self.reduces.swap_remove(position as usize);
        self.reduces.get(position as usize).copied()
    }

    /// Records that an attempt starts or ends work.
    pub fn worked(&mut self, now: Time) {
        let first = self.result.worked.map_or(now, |(first, _)| first);
        self.result.worked = Some((first, now));
    }

    /// Records that a reduce got a slot.
    pub fn reduce_launched(&mut self, now: Time) {
        self.first_reduce.get_or_insert(now);
    }
}

/// Sets or clears the bit of a task; returns whether it changed.
fn mark(bits: &mut [u64], index: u32, on: bool) -> bool {
    let word = &mut bits[index as usize / 64];
    let bit = 1_u64 << (index % 64);
    let was = *word & bit != 0;
    if on {
        *word |= bit
    } else {
        *word &= !bit
    }
    was != on
}

/// Checks the lengths of a job's tasks and their sum against the limits.
fn check_lengths(plan: &SimulatedJob) -> Result<(), SimulationError> {
    let tasks = plan
        .maps
        .iter()
        .map(|task| task.work)
        .chain(plan.reduces.iter().map(|task| task.work()));
    let mut longest = Span(0);
    let mut all = Span(0);
    for task in tasks {
        longest = longest.max(task);
        all = all + task;
    }
    if longest > TASK_MAX || all > JOB_MAX {
        return Err(SimulationError::JobTooLong {
            job: plan.name.clone(),
            longest,
            all,
        });
    }
    Ok(())
}

impl Simulation {
    /// Handles the arrival of a job: submits it immediately or after its setup task and master.
    pub(super) fn arrive_job(&mut self, plan: SimulatedJob) -> Result<(), SimulationError> {
        check_lengths(&plan)?;
        self.allow_for(&plan);
        self.run.slot_time.job_submitted();
        if self.settings.overheads.job_tasks {
            self.set_up(plan);
            return Ok(());
        }
        self.dispatch(plan, self.clock.now())
    }

    /// Submits a job that arrived at `came`, after its master has started if it needs one.
    pub(super) fn dispatch(
        &mut self,
        plan: SimulatedJob,
        came: Time,
    ) -> Result<(), SimulationError> {
        if self.settings.masters_max.is_some() {
            return self.await_master(plan, came);
        }
        self.submit(plan, came, None);
        Ok(())
    }

    /// Submits a job that arrived at `came`; returns its id.
    pub(super) fn submit(
        &mut self,
        mut plan: SimulatedJob,
        came: Time,
        management: Option<Management>,
    ) -> JobId {
        self.chain_lengths.divide(&mut plan);
        let spec = self.spec_of(&plan, came);
        let result = JobResult::begin(self.jobs.next_id(), &plan, came, &self.settings);
        let mut running = RunningJob::new(plan, result);
        running.management = management;
        let job = self.jobs.push(running);
        match management {
            Some(Management::Master { .. }) => self.engine.announce(job, JobPart::Master),
            Some(Management::Managed { .. }) => self.engine.announce(job, JobPart::Managed),
            None => {}
        }
        self.batch.push(
            Group::Arrival,
            0,
            Some(AttemptId {
                task: TaskId {
                    job,
                    kind: TaskKind::Map,
                    index: 0,
                },
                number: 0,
            }),
            Event::JobSubmitted { job, spec },
        );
        job
    }

    /// Submits a job that waited for a trigger.
    pub(super) fn submit_triggered(&mut self, name: String) -> Result<(), SimulationError> {
        let plan = self.submissions.take_triggered(name)?;
        self.arrive_job(plan)
    }

    pub(super) fn spec_of(&self, plan: &SimulatedJob, came: Time) -> JobSpec {
        let on = |machine: &u32| -> Option<WorkerId> {
            let worker = self.workers.on_machine(*machine)?;
            Some(worker.id)
        };
        let map = |task: &crate::job::SimulatedMap| MapSpec {
            bytes: task.bytes,
            preferred: task.preferred.iter().filter_map(on).collect(),
        };
        JobSpec {
            name: plan.name.to_string(),
            user: plan.user.to_string(),
            queue: plan.queue.to_string(),
            priority: plan.priority,
            deadline: plan.deadline.map(|span| came + span),
            maps: plan.maps.iter().map(map).collect(),
            reduces: plan.reduces.len() as u32,
            attempts_max: plan.attempts_max,
            slowstart_permille: plan.slowstart_permille,
            unsaved: plan.unsaved.clone(),
            memory: plan.memory,
            outputs_move: false,
        }
    }

    /// Records a change in the number of reduce slots held by a job, in the view of the coordinator.
    pub(super) fn reduce_slots_change(&mut self, id: AttemptId, change: i64) {
        if id.task.kind == TaskKind::Reduce
            && let Some(job) = self.jobs.get_mut(id.task.job)
        {
            job.held.count_until(self.clock.now());
            job.held.now = job.held.now.saturating_add_signed(change);
        }
    }

    /// Handles the completion of a task.
    pub(super) fn task_done(&mut self, id: AttemptId) {
        let kind = id.task.kind;
        let index = id.task.index;
        let executed = self.batch.take_completed(id);
        let job = self.jobs.at_mut(id.task.job);
        assert!(
            mark(&mut job.done[slot_time::of(kind)], index, true),
            "{} is done twice",
            id.task
        );
        let total = job.plan.work_of(kind, index);
        let before = total - executed;
        let more = job
            .checkpoints
            .remove(&(kind, index))
            .map_or(0, |kept| kept.done.saturating_sub(before));
        self.run.slot_time.useful += total;
        self.run.slot_time.wasted = self.run.slot_time.wasted + more - executed;
        job.result.wasted.0 = job.result.wasted.0 + more - executed;
        match kind {
            TaskKind::Reduce => {
                assert!(
                    job.has_completed_every_map(),
                    "{} is done before the last map of its job",
                    id.task
                );
                let maps_end = job.maps_end.unwrap_or(job.result.submitted);
                job.held.done_at = job
                    .held
                    .done_at
                    .saturating_add(self.clock.now().since(maps_end).0);
            }
            TaskKind::Map if !job.plan.reduces.is_empty() => {
                job.maps_done += 1;
                job.maps_ever_done += u32::from(mark(&mut job.ever_done, index, true));
                if job.maps_complete() && job.maps_end.is_none() {
                    job.maps_end = Some(self.clock.now());
                    job.held.count_until(self.clock.now());
                    job.held.before_maps_end = job.held.total;
                }
                self.maps_changed(id.task.job);
            }
            TaskKind::Map => {}
        }
    }

    /// Handles the loss of a map output.
    pub(super) fn output_lost(&mut self, task: TaskId) {
        let job = self.jobs.at_mut(task.job);
        assert!(
            mark(&mut job.done[0], task.index, false),
            "{task} was not done, but its output is lost"
        );
        let total = job.plan.work_of(task.kind, task.index);
        job.maps_done -= 1;
        job.result.wasted.0 += total;
        self.run.slot_time.useful -= total;
        self.run.slot_time.wasted += total;
        self.maps_changed(task.job);
    }

    /// Resumes or pauses fetching reduces after a change in available map outputs.
    fn maps_changed(&mut self, id: JobId) {
        let now = self.clock.now();
        let job = self.jobs.at_mut(id);
        if job.reduces.is_empty() {
            return;
        }
        job.history.push((now, job.maps_done));
        let complete = job.maps_complete();
        for position in 0..job.reduces.len() {
            let place = self.jobs.at_mut(id).reduces[position];
            let attempt = self.attempts.at(place);
            match attempt.phase {
                Phase::Fetching if complete => self.begin_work(place),
                Phase::Working if !complete && attempt.done < attempt.shuffle => {
                    self.begin_work(place)
                }
                _ => {}
            }
        }
    }

    /// Handles the end of a job in the engine.
    pub(super) fn job_ended(
        &mut self,
        id: JobId,
        outcome: &JobOutcome,
    ) -> Result<(), SimulationError> {
        let Some(mut job) = self.jobs.remove(id) else {
            return Err(SimulationError::UnknownJob { job: id });
        };
        if job.is_master() {
            return Ok(());
        }
        if let Some(Management::Managed { by }) = job.management {
            self.managed_ended(by);
        }
        let left: u64 = job.checkpoints.values().map(|kept| kept.done).sum();
        self.run.slot_time.wasted += left;
        job.result.wasted.0 += left;
        job.result.ended = self.clock.now();
        job.result.ending = match outcome {
            JobOutcome::Succeeded => Ending::Succeeded,
            JobOutcome::Failed { .. } => Ending::Failed,
            JobOutcome::Killed { .. } => Ending::Killed,
        };
        if let (Some(end), Some(first)) = (job.maps_end, job.first_reduce) {
            job.result.reduce_wait = first.since(end);
        }
        job.held.count_until(self.clock.now());
        job.result.reduces_held = Span(job.held.total);
        // Each reduce waited from the last map until its end, except while it held a slot.
        let held_after = job.held.total - job.held.before_maps_end;
        job.result.reduces_waited = Span(job.held.done_at.saturating_sub(held_after));
        if job.result.ending == Ending::Succeeded {
            let kinds = if job.plan.reduces.is_empty() {
                TaskKind::Map
            } else {
                TaskKind::Reduce
            };
            let done = job.tasks_done(kinds);
            assert_eq!(
                done as usize,
                job.plan.tasks(kinds),
                "{id} ended before its tasks"
            );
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.job_ended(self.clock.now(), &job, outcome)?;
        }
        self.follow(job.plan, &job.result)?;
        if self.settings.overheads.job_tasks {
            self.clean_up(job.result);
        } else {
            self.finish_job(job.result);
        }
        Ok(())
    }

    /// Records the result of a job after its cleanup.
    pub(super) fn finish_job(&mut self, mut result: JobResult) {
        result.ended = self.clock.now();
        self.run.slot_time.job_ended(result.sojourn());
        self.run.jobs.push(result);
    }
}
