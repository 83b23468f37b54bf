//! The life of a simulated job from submission to end, and its result.

use std::collections::{BTreeMap, VecDeque};

use napreduce_engine::{
    AttemptId, Event, JobId, JobOutcome, JobPart, JobSpec, MapSpec, Span, TaskId, TaskKind, Time,
    WorkerId,
};

use super::Simulation;
use super::attempts::{MapsDone, Phase, VirtualAttempt};
use super::batch::Group;
use super::checkpoints::Checkpoint;
use super::job_tasks::JobTask;
use super::task_set::TaskSet;
use super::workers::Workers;
use crate::job::{SimulatedJob, SimulatedMap};
use crate::run::{Ending, JobResult, SimulationError};
use crate::slot_time;

/// Maximum length of a task: ten years.
const TASK_MAX: Span = Span::from_secs(10 * 365 * 86_400);
/// Maximum total length of a job's tasks: 30,000 years.
const JOB_MAX: Span = Span::from_secs(30_000 * 365 * 86_400);

/// The role of a job with containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Management {
    /// The master of a job, which is submitted once the master has started.
    Master { of: Option<JobId> },
    /// A job and its master.
    Managed { by: JobId },
}

/// The reduce slots of a job over time.
#[derive(Debug, Default)]
struct HeldReduceSlots {
    now: u64,
    /// Time up to which they are counted.
    counted_until: Time,
    /// Slot time until then, and until the end of the last map.
    total: u64,
    before_maps_end: u64,
    /// Sum of the times from the last map to the end of each reduce.
    ends_after_maps: u64,
}

impl HeldReduceSlots {
    fn count_until(&mut self, now: Time) {
        self.total += self.now * now.since(self.counted_until).0;
        self.counted_until = now;
    }
}

/// An active job.
#[derive(Debug)]
pub(super) struct RunningJob {
    /// Number of maps with an available output. Not counted for a map-only job.
    pub maps_done: u32,
    /// When all maps were done for the first time.
    maps_end: Option<Time>,
    /// When a reduce got a slot for the first time.
    first_reduce: Option<Time>,
    held: HeldReduceSlots,
    /// How the number of available map outputs changed while there were reduces, which fetch them.
    pub maps_done_history: Vec<MapsDone>,
    /// Places of the live reduces.
    pub reduces: Vec<u32>,
    checkpoints: BTreeMap<TaskId, Checkpoint>,
    /// Completed tasks, by kind.
    done: [TaskSet; 2],
    /// Maps that were done at least once. Not counted for a map-only job.
    maps_ever_done: TaskSet,
    /// Set with containers.
    pub management: Option<Management>,
    pub plan: SimulatedJob,
    pub result: JobResult,
}

impl RunningJob {
    fn new(plan: SimulatedJob, result: JobResult, management: Option<Management>) -> RunningJob {
        let fed_maps = if plan.reduces.is_empty() {
            0
        } else {
            plan.maps.len()
        };
        RunningJob {
            maps_done: 0,
            maps_end: None,
            first_reduce: None,
            held: HeldReduceSlots::default(),
            maps_done_history: Vec::new(),
            reduces: Vec::new(),
            checkpoints: BTreeMap::new(),
            done: [
                TaskSet::new(plan.maps.len()),
                TaskSet::new(plan.reduces.len()),
            ],
            maps_ever_done: TaskSet::new(fed_maps),
            management,
            plan,
            result,
        }
    }

    pub fn is_master(&self) -> bool {
        matches!(self.management, Some(Management::Master { .. }))
    }

    /// Whether it has reduces, which fetch the outputs of its maps.
    pub fn has_reduces(&self) -> bool {
        !self.plan.reduces.is_empty()
    }

    /// Returns the number of its completed tasks.
    pub fn tasks_done(&self, kind: TaskKind) -> u32 {
        self.done[slot_time::of(kind)].count()
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
        self.maps_ever_done.count() == self.maps()
    }

    /// Whether a reduce must wait for maps.
    pub fn must_wait(&self, reduce: &VirtualAttempt) -> bool {
        if self.maps_complete() {
            return false;
        }
        // A reduce without shuffle time still waits for the last map.
        let is_between = reduce.done == reduce.shuffle && !self.has_completed_every_map();
        reduce.is_in_shuffle() || is_between
    }

    /// Adds a live reduce; returns its position in the list.
    pub fn add_reduce(&mut self, place: u32) -> u32 {
        self.reduces.push(place);
        self.reduces.len() as u32 - 1
    }

    /// Removes a reduce from the list. Returns the reduce that moved to its position.
    pub fn remove_reduce(&mut self, position: u32) -> Option<u32> {
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

    /// Records that it holds more or fewer reduce slots, in the view of the coordinator.
    pub fn change_reduce_slots(&mut self, now: Time, change: i32) {
        self.held.count_until(now);
        self.held.now = self.held.now.saturating_add_signed(change.into());
    }

    pub fn checkpoint_of(&self, task: TaskId) -> Option<Checkpoint> {
        self.checkpoints.get(&task).copied()
    }

    /// Returns the work in its checkpoints.
    pub fn work_in_checkpoints(&self) -> u64 {
        self.checkpoints
            .values()
            .map(|checkpoint| checkpoint.done)
            .sum()
    }

    /// Removes the checkpoint of a task; returns the work in it.
    pub fn remove_checkpoint(&mut self, task: TaskId) -> u64 {
        let removed = self.checkpoints.remove(&task);
        removed.map_or(0, |checkpoint| checkpoint.done)
    }

    /// Keeps the checkpoint of an attempt that started from the task's previous one.
    pub fn replace_checkpoint(&mut self, task: TaskId, checkpoint: Checkpoint) {
        self.checkpoints.insert(task, checkpoint);
    }

    /// Keeps the checkpoint of an attempt that started from the beginning. If a duplicate of the attempt also
    /// saved its work, the checkpoint with the most work remains. Returns the work in the other one.
    pub fn add_checkpoint(&mut self, task: TaskId, checkpoint: Checkpoint) -> u64 {
        let other = self.checkpoint_of(task).map_or(0, |other| other.done);
        if other > checkpoint.done {
            return checkpoint.done;
        }
        self.checkpoints.insert(task, checkpoint);
        other
    }

    /// Records the completion of a task.
    fn complete(&mut self, task: TaskId, now: Time) {
        let is_new = self.done[slot_time::of(task.kind)].insert(task.index);
        assert!(is_new, "{task} is done twice");
        match task.kind {
            TaskKind::Reduce => self.complete_reduce(task, now),
            TaskKind::Map if self.has_reduces() => self.complete_map(task, now),
            TaskKind::Map => {}
        }
    }

    fn complete_reduce(&mut self, task: TaskId, now: Time) {
        assert!(
            self.has_completed_every_map(),
            "{task} is done before the last map of its job"
        );
        let maps_end = self.maps_end.unwrap_or(self.result.submitted);
        let after = now.since(maps_end).0;
        self.held.ends_after_maps = self.held.ends_after_maps.saturating_add(after);
    }

    fn complete_map(&mut self, task: TaskId, now: Time) {
        self.maps_done += 1;
        self.maps_ever_done.insert(task.index);
        if self.maps_complete() && self.maps_end.is_none() {
            self.maps_end = Some(now);
            self.held.count_until(now);
            self.held.before_maps_end = self.held.total;
        }
    }

    /// Records the loss of a map output.
    fn lose_output(&mut self, map: TaskId) {
        let was_done = self.done[slot_time::of(TaskKind::Map)].remove(map.index);
        assert!(was_done, "{map} was not done, but its output is lost");
        self.maps_done -= 1;
    }

    /// Completes its result when it ends in the engine.
    fn end(&mut self, now: Time, outcome: &JobOutcome) {
        self.result.ended = now;
        self.result.ending = match outcome {
            JobOutcome::Succeeded => Ending::Succeeded,
            JobOutcome::Failed { .. } => Ending::Failed,
            JobOutcome::Killed { .. } => Ending::Killed,
        };
        if let Some(end) = self.maps_end
            && let Some(first) = self.first_reduce
        {
            self.result.reduce_wait = first.since(end);
        }
        self.held.count_until(now);
        self.result.reduces_held = Span(self.held.total);
        // Each reduce waited from the last map until its end, except while it held a slot.
        let held_after = self.held.total - self.held.before_maps_end;
        let waited = self.held.ends_after_maps.saturating_sub(held_after);
        self.result.reduces_waited = Span(waited);
        if self.result.ending == Ending::Succeeded {
            self.check_complete();
        }
    }

    /// Panics if a task of its last phase was not completed.
    fn check_complete(&self) {
        let kind = if self.has_reduces() {
            TaskKind::Reduce
        } else {
            TaskKind::Map
        };
        let done = self.tasks_done(kind) as usize;
        let job = self.result.job;
        assert_eq!(done, self.plan.tasks(kind), "{job} ended before its tasks");
    }
}

/// The active jobs, by number.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// Number of jobs before the first one in `all`.
    removed: u32,
    /// Jobs that have ended leave a gap until they are the first.
    all: VecDeque<Option<Box<RunningJob>>>,
    /// Number of active jobs.
    pub running: usize,
}

impl Jobs {
    /// Stores a job under the next number, starting at 1.
    fn push(&mut self, job: RunningJob) -> JobId {
        let id = self.next_id();
        self.all.push_back(Some(Box::new(job)));
        self.running += 1;
        id
    }

    fn next_id(&self) -> JobId {
        JobId(self.removed + self.all.len() as u32 + 1)
    }

    fn position_of(&self, JobId(number): JobId) -> Option<usize> {
        let position = number.checked_sub(self.removed + 1)?;
        Some(position as usize)
    }

    pub fn get(&self, job: JobId) -> Option<&RunningJob> {
        let position = self.position_of(job)?;
        self.all.get(position)?.as_deref()
    }

    pub fn get_mut(&mut self, job: JobId) -> Option<&mut RunningJob> {
        let position = self.position_of(job)?;
        self.all.get_mut(position)?.as_deref_mut()
    }

    pub fn at(&self, job: JobId) -> &RunningJob {
        self.get(job)
            .expect("jobs are stored until the engine ends them")
    }

    pub fn at_mut(&mut self, job: JobId) -> &mut RunningJob {
        self.get_mut(job)
            .expect("jobs are stored until the engine ends them")
    }

    fn remove(&mut self, job: JobId) -> Option<Box<RunningJob>> {
        let position = self.position_of(job)?;
        let removed = self.all.get_mut(position)?.take()?;
        self.running -= 1;
        while let Some(None) = self.all.front() {
            self.all.pop_front();
            self.removed += 1;
        }
        Some(removed)
    }

    /// Returns the jobs of the workload, in order of submission: all but masters.
    pub fn without_masters(&self) -> impl Iterator<Item = &RunningJob> {
        self.all
            .iter()
            .flatten()
            .map(Box::as_ref)
            .filter(|job| !job.is_master())
    }
}

/// Checks the lengths of a job's tasks and their sum against the limits.
fn check_lengths(plan: &SimulatedJob) -> Result<(), SimulationError> {
    let maps = plan.maps.iter().map(|task| task.work);
    let reduces = plan.reduces.iter().map(|task| task.work());
    let mut longest = Span(0);
    let mut all = Span(0);
    for task in maps.chain(reduces) {
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

/// Returns the specification of a job that arrived at `came`, for the engine.
pub(super) fn spec_of(plan: &SimulatedJob, came: Time, workers: &Workers) -> JobSpec {
    JobSpec {
        name: plan.name.to_string(),
        user: plan.user.to_string(),
        queue: plan.queue.to_string(),
        priority: plan.priority,
        deadline: plan.deadline.map(|span| came + span),
        maps: plan
            .maps
            .iter()
            .map(|map| spec_of_map(map, workers))
            .collect(),
        reduces: plan.reduces.len() as u32,
        attempts_max: plan.attempts_max,
        slowstart_permille: plan.slowstart_permille,
        unsaved: plan.unsaved.clone(),
        memory: plan.memory,
        outputs_move: false,
    }
}

fn spec_of_map(map: &SimulatedMap, workers: &Workers) -> MapSpec {
    let mut preferred: Vec<WorkerId> = Vec::with_capacity(map.preferred.len());
    for machine in &map.preferred {
        if let Some(worker) = workers.on_machine(*machine) {
            preferred.push(worker.id);
        }
    }
    MapSpec {
        bytes: map.bytes,
        preferred,
    }
}

/// Returns the attempt that orders the submission of a job among simultaneous ones.
fn before_first_attempt(job: JobId) -> AttemptId {
    let task = TaskId {
        job,
        kind: TaskKind::Map,
        index: 0,
    };
    AttemptId { task, number: 0 }
}

impl Simulation {
    /// Handles the arrival of a job: submits it immediately or after its setup task and master.
    pub(super) fn arrive_job(&mut self, plan: SimulatedJob) -> Result<(), SimulationError> {
        let now = self.clock.now();
        check_lengths(&plan)?;
        self.guard.allow_for(&plan, now, &self.settings.overheads);
        self.run.slot_time.job_submitted();
        if self.settings.overheads.job_tasks {
            self.start_job_task(JobTask::Setup {
                job: plan,
                came: now,
            });
            return Ok(());
        }
        self.dispatch(plan, now)
    }

    /// Handles a trigger of the policy: submits a job that waits for it.
    pub(super) fn submit_triggered(&mut self, name: String) -> Result<(), SimulationError> {
        let plan = self.submissions.take_triggered(name)?;
        self.arrive_job(plan)
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
        self.chain_lengths.set_deadline(&mut plan);
        let spec = spec_of(&plan, came, &self.workers);
        let result = JobResult::begin(self.jobs.next_id(), &plan, came, &self.settings);
        let job = self.jobs.push(RunningJob::new(plan, result, management));
        match management {
            Some(Management::Master { .. }) => self.engine.announce(job, JobPart::Master),
            Some(Management::Managed { .. }) => self.engine.announce(job, JobPart::Managed),
            None => {}
        }
        self.batch.push(
            Group::Arrival,
            0,
            Some(before_first_attempt(job)),
            Event::JobSubmitted { job, spec },
        );
        job
    }

    /// Handles the completion of a task.
    pub(super) fn task_done(&mut self, id: AttemptId) {
        let task = id.task;
        let executed = self.batch.take_completed(id);
        let job = self.jobs.at_mut(task.job);
        job.complete(task, self.clock.now());
        let total = job.plan.work_of(task.kind, task.index);
        // The attempt started with the work of a checkpoint. If the task has one with more, the rest of it is
        // lost. The work of the attempt was counted as lost until now.
        let started_with = total - executed;
        let lost = job.remove_checkpoint(task).saturating_sub(started_with);
        self.run.slot_time.useful += total;
        self.run.slot_time.wasted = self.run.slot_time.wasted + lost - executed;
        job.result.wasted.0 = job.result.wasted.0 + lost - executed;
        if task.kind == TaskKind::Map && job.has_reduces() {
            self.maps_changed(task.job);
        }
    }

    /// Handles the loss of a map output.
    pub(super) fn output_lost(&mut self, map: TaskId) {
        let job = self.jobs.at_mut(map.job);
        job.lose_output(map);
        let work = job.plan.work_of(map.kind, map.index);
        self.run.slot_time.useful -= work;
        self.waste(map.job, work);
        self.maps_changed(map.job);
    }

    /// Counts lost work, in all and of its job.
    pub(super) fn waste(&mut self, job: JobId, work: u64) {
        self.run.slot_time.wasted += work;
        self.jobs.at_mut(job).result.wasted.0 += work;
    }

    /// Resumes or pauses fetching reduces after a change in available map outputs.
    fn maps_changed(&mut self, id: JobId) {
        let job = self.jobs.at_mut(id);
        if job.reduces.is_empty() {
            return;
        }
        job.maps_done_history.push(MapsDone {
            since: self.clock.now(),
            count: job.maps_done,
        });
        let complete = job.maps_complete();
        for position in 0..job.reduces.len() {
            let place = self.jobs.at(id).reduces[position];
            let attempt = self.attempts.at(place);
            let resumes = complete && attempt.phase == Phase::Fetching;
            let pauses = !complete && attempt.phase == Phase::Working && attempt.is_in_shuffle();
            if resumes || pauses {
                self.begin_work(place);
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
        let now = self.clock.now();
        let left = job.work_in_checkpoints();
        self.run.slot_time.wasted += left;
        job.result.wasted.0 += left;
        job.end(now, outcome);
        if let Some(recorder) = &mut self.recorder {
            recorder.job_ended(now, &job, outcome)?;
        }
        self.submit_follower(job.plan, &job.result)?;
        if self.settings.overheads.job_tasks {
            let result = job.result;
            self.start_job_task(JobTask::Cleanup { result });
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
