//! A job in the engine: its tasks, its live attempts, and the indices that keep event handling cheap. It
//! determines which of its tasks may be launched; policies decide which are.

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::accesses::count_access;
use crate::cluster::attempt::Attempt;
use crate::cluster::demand::Listed;
use crate::cluster::faults::FailureStreak;
use crate::cluster::job_slots::JobSlots;
use crate::cluster::live_numbers::LiveNumbers;
use crate::cluster::map_outputs::MapOutputs;
use crate::cluster::racks::Racks;
use crate::cluster::task::{Phase, Task, WrittenOutput};
use crate::cluster::task_set::TaskSet;
use crate::effect::{MapOutput, Start};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{JobOutcome, JobPart, JobSpec};
use crate::pause::Pause;
use crate::sorted::{SortedMap, SortedSet};
use crate::states::{JobState, TaskInput, TaskState};
use crate::time::{Span, Time};

/// The default order in which jobs get slots: priority, submit time, id.
pub type DefaultOrder = (Reverse<i32>, Time, JobId);

/// A job that has not ended.
#[derive(Debug)]
pub struct Job {
    pub(crate) id: JobId,
    pub(crate) phases: ByKind<Phase>,
    pub(crate) spec: JobSpec,
    pub(crate) submitted: Time,
    pub(crate) state: JobState,
    pub(crate) part: JobPart,
    /// Set on the transition to `Stopping`.
    pub(crate) outcome: Option<JobOutcome>,
    pub(crate) pause: Option<Pause>,
    /// Shared with the cluster.
    pub(crate) racks: Arc<Racks>,
    pub(crate) live: SortedSet<AttemptId>,
    pub(crate) suspended: ByKind<SortedSet<(WorkerId, AttemptId)>>,
    pub(crate) slots: JobSlots,
    /// Live reduces that were launched before every map output was ready, or that cannot read some.
    pub(crate) awaiting_inputs: SortedSet<AttemptId>,
    pub(crate) outputs: MapOutputs,
    /// Workers that freed a slot for it which it did not use; it has started nothing there since.
    pub(crate) unused_on: ByKind<SortedSet<WorkerId>>,
    pub(crate) listed: ByKind<Listed>,
    /// The policy has not yet been notified of a change.
    pub(crate) changed: bool,
}

impl Job {
    pub(crate) fn new(id: JobId, spec: JobSpec, submitted: Time) -> Job {
        Job {
            id,
            phases: ByKind {
                map: Phase::of_maps(&spec.maps),
                reduce: Phase::of_reduces(spec.reduces),
            },
            spec,
            submitted,
            state: JobState::Active,
            part: JobPart::default(),
            outcome: None,
            pause: None,
            racks: Arc::default(),
            live: SortedSet::new(),
            suspended: ByKind::default(),
            awaiting_inputs: SortedSet::new(),
            slots: JobSlots::default(),
            outputs: MapOutputs::default(),
            unused_on: ByKind::default(),
            listed: ByKind::default(),
            changed: false,
        }
    }
}

/// A job without the data derived from its tasks and their attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JobImage {
    id: JobId,
    spec: JobSpec,
    submitted: Time,
    state: JobState,
    outcome: Option<JobOutcome>,
    #[serde(default)]
    pause: Option<Pause>,
    tasks: ByKind<Vec<Task>>,
    awaiting_inputs: SortedSet<AttemptId>,
    #[serde(default)]
    unused_on: ByKind<SortedSet<WorkerId>>,
    #[serde(default)]
    streaks: ByKind<SortedMap<WorkerId, FailureStreak>>,
}

impl JobImage {
    pub(crate) fn new(job: &Job) -> JobImage {
        JobImage {
            id: job.id,
            spec: job.spec.clone(),
            submitted: job.submitted,
            state: job.state,
            outcome: job.outcome.clone(),
            pause: job.pause.clone(),
            tasks: ByKind::from_fn(|kind| job.phases[kind].tasks.clone()),
            awaiting_inputs: job.awaiting_inputs.clone(),
            unused_on: job.unused_on.clone(),
            streaks: ByKind::from_fn(|kind| job.phases[kind].streaks.clone()),
        }
    }
}

impl Job {
    /// Returns its position in the default order of jobs.
    pub fn default_order(&self) -> DefaultOrder {
        (Reverse(self.spec.priority), self.submitted, self.id)
    }

    /// Restores a job without its attempts and reservations, which also enter other indices. Fails if the
    /// image is inconsistent.
    pub(crate) fn from_image(image: JobImage) -> Result<Job, String> {
        let JobImage {
            id,
            spec,
            submitted,
            state,
            outcome,
            pause,
            tasks,
            awaiting_inputs,
            unused_on,
            streaks,
        } = image;
        spec.check().map_err(|error| format!("{id}: {error}"))?;
        if (tasks.map.len(), tasks.reduce.len()) != (spec.maps.len(), spec.reduces as usize) {
            return Err(format!("{id}: its tasks differ from its plan"));
        }
        let task = |kind, index| TaskId {
            job: id,
            kind,
            index,
        };
        let mut phases = ByKind {
            map: Phase::of_tasks(tasks.map, |index| {
                preferred(&spec, task(TaskKind::Map, index))
            }),
            reduce: Phase::of_tasks(tasks.reduce, |_| &[]),
        };
        phases.map.streaks = streaks.map;
        phases.reduce.streaks = streaks.reduce;
        let mut outputs = MapOutputs::default();
        for (index, task) in (0..).zip(&phases.map.tasks) {
            if let Some((_, worker)) = task.output {
                outputs.add(index, worker, task.output_bytes, false);
            }
            if task.lost {
                outputs.restore_lost();
            }
        }
        let nothing = JobSpec {
            maps: Vec::new(),
            reduces: 0,
            ..spec.clone()
        };
        Ok(Job {
            spec,
            state,
            outcome,
            pause,
            phases,
            awaiting_inputs,
            outputs,
            unused_on,
            ..Job::new(id, nothing, submitted)
        })
    }

    /// Returns its id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Returns whether it is a master; the containers of a master cannot be preempted.
    pub fn is_master(&self) -> bool {
        self.part == JobPart::Master
    }

    /// Returns whether a master manages it; such jobs count towards limits on running jobs.
    pub fn is_managed(&self) -> bool {
        self.part == JobPart::Managed
    }

    /// Returns its specification.
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// Returns when it was submitted.
    pub fn submitted(&self) -> Time {
        self.submitted
    }

    /// Returns its state.
    pub fn state(&self) -> JobState {
        self.state
    }

    /// Returns its outcome, once that is decided.
    pub fn outcome(&self) -> Option<&JobOutcome> {
        self.outcome.as_ref()
    }

    /// Returns how many tasks of a kind it has.
    pub fn tasks_total(&self, kind: TaskKind) -> u32 {
        self.phases[kind].total()
    }

    /// Returns how many tasks of a kind are done.
    pub fn tasks_done(&self, kind: TaskKind) -> u32 {
        self.phases[kind].done
    }

    /// Returns how many attempts of a kind hold a slot.
    pub fn holding(&self, kind: TaskKind) -> u32 {
        self.slots.held(kind)
    }

    /// Returns its pause, if it is paused; then none of its attempts is launched or resumed.
    pub fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// Returns how many suspended attempts of a kind wait for a slot, without those that an operator holds.
    pub fn suspended(&self, kind: TaskKind) -> u32 {
        self.suspended[kind].len() as u32
    }

    /// Returns its live attempts in order, including suspended ones.
    pub fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.live.iter().copied().inspect(|_| count_access())
    }

    /// Returns the state of a task; `None` if the job has no such task.
    pub fn task_state(&self, task: TaskId) -> Option<TaskState> {
        self.task(task).map(|task| task.state)
    }

    /// Returns whether a task must run alone on a worker that the engine chooses, because workers died while
    /// it ran.
    pub fn isolates(&self, task: TaskId) -> bool {
        self.phases[task.kind].isolated.contains(&task.index)
    }

    /// Returns the tasks of a kind that may be launched now on some worker, in order. Reduces become eligible
    /// by slow-start. None may start while a map output is lost, because it would hold a slot and wait.
    pub fn eligible(&self, kind: TaskKind) -> impl Iterator<Item = TaskId> + '_ {
        let phase = &self.phases[kind];
        let tasks = self
            .is_open(kind)
            .then_some(&phase.pending)
            .into_iter()
            .flat_map(TaskSet::iter);
        let tasks = tasks.filter(|index| !phase.isolated.contains(index));
        tasks
            .map(move |index| TaskId {
                job: self.id,
                kind,
                index,
            })
            .inspect(|_| count_access())
    }

    /// Returns how many tasks of a kind may be launched now.
    pub fn eligible_count(&self, kind: TaskKind) -> u32 {
        let launchable = self.phases[kind].launchable();
        if launchable > 0 && self.is_open(kind) {
            launchable
        } else {
            0
        }
    }

    /// Returns whether a task should avoid a worker: it failed there, and another worker could run it; or the
    /// worker lacked a resource that it needs; or many tasks of its job failed there.
    pub fn avoids(&self, task: TaskId, worker: WorkerId) -> bool {
        self.phases[task.kind].avoids(task.index, worker)
    }

    /// Returns when its tasks no longer avoid a worker.
    pub(crate) fn avoidance_ends(&self) -> impl Iterator<Item = Time> + '_ {
        self.phases
            .map
            .avoidance_ends()
            .chain(self.phases.reduce.avoidance_ends())
    }

    /// Returns the tasks of a kind that may be launched now on this worker, in order.
    pub fn eligible_on(
        &self,
        kind: TaskKind,
        worker: WorkerId,
    ) -> impl Iterator<Item = TaskId> + '_ {
        self.eligible(kind)
            .filter(move |task| !self.avoids(*task, worker))
    }

    /// Returns the task to launch next on a worker: preferably one with its input there, then one with its
    /// input on the same rack, then the first. Tasks that failed there and can run on another worker are left
    /// out.
    pub fn next_task(&self, kind: TaskKind, worker: WorkerId) -> Option<TaskId> {
        self.next_of(kind, |phase| phase.next(worker, &self.racks))
    }

    /// Returns the result of `next`, while tasks of that kind may be launched.
    pub(crate) fn next_of(
        &self,
        kind: TaskKind,
        next: impl FnOnce(&Phase) -> Option<u32>,
    ) -> Option<TaskId> {
        if !self.is_open(kind) {
            return None;
        }
        let index = next(&self.phases[kind])?;
        Some(TaskId {
            job: self.id,
            kind,
            index,
        })
    }

    /// Returns an attempt of a kind that is suspended on this worker and may be resumed, without those that
    /// an operator holds.
    pub fn suspended_on(&self, kind: TaskKind, worker: WorkerId) -> Option<AttemptId> {
        let (first, last) = AttemptId::range_of(self.id, kind);
        let mut here = self.suspended[kind].range((worker, first)..=(worker, last));
        here.next()
            .filter(|_| self.state == JobState::Active)
            .map(|&(_, attempt)| attempt)
    }

    /// Returns the median work time of the attempts that completed tasks of a kind; `None` before
    /// `finished_min` tasks, or half of all, are done.
    pub fn median_duration(&self, kind: TaskKind, finished_min: u32) -> Option<Span> {
        let phase = &self.phases[kind];
        if phase.done < finished_min.min(phase.total().div_ceil(2)).max(1) {
            return None;
        }
        let done = phase
            .tasks
            .iter()
            .filter(|task| task.state == TaskState::Done);
        let mut durations: Vec<Span> = done.map(|task| task.took).collect();
        let middle = durations.len() / 2;
        Some(*durations.select_nth_unstable(middle).1)
    }

    /// Returns whether some of its attempts of a kind may be stragglers: they have their inputs, and other
    /// tasks have finished.
    pub(crate) fn may_have_stragglers(&self, kind: TaskKind) -> bool {
        let is_running = self.state == JobState::Active && self.pause.is_none();
        is_running
            && !self.waits_for_maps(kind)
            && self.slots.held(kind) > 0
            && self.phases[kind].done > 0
    }

    /// Returns whether its reduces hold slots while they wait for maps, none of which has a slot.
    pub(crate) fn waits_for_itself(&self) -> bool {
        let maps_wait = self.slots.held(TaskKind::Map) == 0 && self.wants(TaskKind::Map);
        self.state == JobState::Active && self.slots.held(TaskKind::Reduce) > 0 && maps_wait
    }

    /// Returns whether it could use a slot of a kind on some worker.
    pub fn wants(&self, kind: TaskKind) -> bool {
        self.eligible_count(kind) > 0 || self.may_resume(kind)
    }

    /// Returns whether a suspended attempt of a kind may be resumed.
    pub(crate) fn may_resume(&self, kind: TaskKind) -> bool {
        !self.suspended[kind].is_empty() && self.state == JobState::Active
    }

    /// Returns whether it could use a slot of a kind on this worker.
    pub fn wants_on(&self, kind: TaskKind, worker: WorkerId) -> bool {
        self.next_task(kind, worker).is_some() || self.suspended_on(kind, worker).is_some()
    }

    /// Returns whether pending tasks of a kind may be launched.
    pub(crate) fn is_open(&self, kind: TaskKind) -> bool {
        let maps = &self.phases.map;
        self.state == JobState::Active
            && self.pause.is_none()
            && match kind {
                TaskKind::Map => true,
                TaskKind::Reduce => {
                    let needed = u64::from(self.spec.slowstart_permille) * u64::from(maps.total());
                    self.outputs.lost() == 0 && u64::from(maps.done) * 1000 >= needed
                }
            }
    }

    pub(crate) fn is_map_only(&self) -> bool {
        self.phases.reduce.tasks.is_empty()
    }

    /// Returns whether an attempt at a task of this kind writes a part of the output, which must be
    /// committed.
    pub(crate) fn commits(&self, kind: TaskKind) -> bool {
        kind == TaskKind::Reduce || self.is_map_only()
    }

    /// Returns whether every required task is done; once the reduces are done, lost map outputs are not
    /// required.
    pub(crate) fn is_complete(&self) -> bool {
        if self.is_map_only() {
            self.phases.map.is_done()
        } else {
            self.phases.reduce.is_done()
        }
    }

    /// Returns whether every map was done once; a reduce may have read an output that was lost later.
    pub(crate) fn has_had_every_map(&self) -> bool {
        self.phases.map.done + self.outputs.lost() == self.phases.map.total()
    }

    pub(crate) fn task(&self, task: TaskId) -> Option<&Task> {
        self.phases[task.kind].task(task.index)
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> Option<&mut Task> {
        self.phases[task.kind].task_mut(task.index)
    }

    /// Applies an input to a task and updates the derived sets. The input always comes from an attempt or an
    /// output of this task, so a missing row in the table is a bug.
    pub(crate) fn step_task(&mut self, id: TaskId, input: TaskInput) {
        let task = &mut self.phases[id.kind].tasks[id.index as usize];
        task.state = task
            .state
            .on(input)
            .expect("the engine keeps a task and its attempt in step");
        match input {
            TaskInput::Launched => self.remove_pending(id),
            TaskInput::DuplicateLaunched | TaskInput::DuplicateEnded => {}
            TaskInput::AttemptDone => self.phases[id.kind].done += 1,
            TaskInput::AttemptEnded => self.add_pending(id),
            TaskInput::OutputLost => {
                let phase = &mut self.phases[id.kind];
                phase.done -= 1;
                phase.remove_work(id.index);
                self.add_pending(id);
            }
        }
    }

    /// Records the launch of an attempt at a task, as its only one or as the duplicate of a slow one. Returns its id.
    pub(crate) fn launch(&mut self, id: TaskId, input: TaskInput, now: Time) -> AttemptId {
        self.step_task(id, input);
        let task = &mut self.phases[id.kind].tasks[id.index as usize];
        task.launched += 1;
        task.first_launched.get_or_insert(now);
        task.live.push(task.launched);
        AttemptId {
            task: id,
            number: task.launched,
        }
    }

    /// Updates the task of an attempt that ended without completing it and is already forgotten.
    pub(crate) fn attempt_ended(&mut self, attempt: AttemptId) {
        let task = &mut self.phases[attempt.task.kind].tasks[attempt.task.index as usize];
        if task.committer == Some(attempt.number) {
            task.committer = None;
        }
        let input = if task.live.is_empty() {
            TaskInput::AttemptEnded
        } else {
            TaskInput::DuplicateEnded
        };
        self.step_task(attempt.task, input);
    }

    /// Records that an attempt, which is already forgotten, completed its task.
    pub(crate) fn complete_task(&mut self, attempt: &Attempt, now: Time) {
        let id = attempt.id;
        let took = attempt.work_time(now);
        let feeds_reduces = !self.commits(id.task.kind);
        self.step_task(id.task, TaskInput::AttemptDone);
        self.set_checkpoint(id.task, None);
        self.phases[id.task.kind].sums.add(took, attempt.waited);
        let task = &mut self.phases[id.task.kind].tasks[id.task.index as usize];
        task.took = took;
        task.waited = attempt.waited;
        task.output_bytes = attempt.output_bytes;
        task.done_by = Some((id.number, attempt.worker));
        task.live = LiveNumbers::default();
        task.held = None;
        let was_lost = std::mem::take(&mut task.lost);
        if !feeds_reduces {
            return;
        }
        task.output = Some((id.number, attempt.worker));
        if let Some(digest) = attempt.output_digest {
            task.written = Some(WrittenOutput {
                number: id.number,
                digest,
            });
        }
        self.outputs.add(
            id.task.index,
            attempt.worker,
            attempt.output_bytes,
            was_lost,
        );
    }

    /// Lets a task continue from the checkpoint with which its attempt, which is already forgotten, ended.
    pub(crate) fn keep_checkpoint(&mut self, attempt: &Attempt, now: Time) {
        let id = attempt.id;
        self.attempt_ended(id);
        let kept = attempt.work_time(now);
        let task = &self.phases[id.task.kind].tasks[id.task.index as usize];
        if task.checkpoint.is_some() && attempt.from == Start::Fresh && task.kept > kept {
            // A duplicate started fresh and has not reached the existing checkpoint.
            return;
        }
        self.set_checkpoint(id.task, Some((id.number, attempt.worker, now)));
        let task = &mut self.phases[id.task.kind].tasks[id.task.index as usize];
        task.kept = kept;
        task.saved = attempt.progress();
    }

    /// Makes a finished map pending again because its output is lost; no other task is affected. `event` is the
    /// number of the current event.
    pub(crate) fn lose_output(&mut self, map: TaskId, event: u64) {
        self.step_task(map, TaskInput::OutputLost);
        let task = &mut self.phases[map.kind].tasks[map.index as usize];
        task.lost = true;
        task.lost_at = event;
        let holder = task.output.take().map(|(_, worker)| worker);
        let bytes = task.output_bytes;
        self.outputs.lose(map.index, holder, bytes);
    }

    /// Records that the output of an attempt at a map was copied from its worker to storage that outlives it.
    pub(crate) fn move_output(&mut self, map: AttemptId, worker: WorkerId) {
        let index = map.task.index;
        let task = &mut self.phases.map.tasks[index as usize];
        task.output = Some((map.number, WorkerId::STORAGE));
        self.outputs.move_to_storage(index, worker);
    }

    /// Returns whether an attempt has the right to commit.
    pub(crate) fn is_committing(&self, attempt: AttemptId) -> bool {
        let task = self.task(attempt.task);
        task.is_some_and(|task| task.committer == Some(attempt.number))
    }

    /// Returns whether tasks of a kind wait for maps, as reduces do until every map is done.
    pub(crate) fn waits_for_maps(&self, kind: TaskKind) -> bool {
        kind == TaskKind::Reduce && !self.phases.map.is_done()
    }

    /// Returns the maps whose output is on a worker.
    pub(crate) fn outputs_on(&self, worker: WorkerId) -> impl Iterator<Item = u32> + '_ {
        self.outputs.on(worker)
    }

    /// Returns the available map outputs, in task order.
    pub(crate) fn map_outputs(&self) -> Vec<MapOutput> {
        (0..self.phases.map.total())
            .filter_map(|index| self.map_output(index))
            .collect()
    }

    /// Returns the output of a map, if it is available.
    pub(crate) fn map_output(&self, index: u32) -> Option<MapOutput> {
        let (number, worker) = self.phases.map.task(index)?.output?;
        let task = TaskId {
            job: self.id,
            kind: TaskKind::Map,
            index,
        };
        Some(MapOutput {
            attempt: AttemptId { task, number },
            worker,
        })
    }
}

/// Returns the workers that hold the input of a task.
pub(super) fn preferred(spec: &JobSpec, task: TaskId) -> &[WorkerId] {
    match task.kind {
        TaskKind::Map => spec
            .maps
            .get(task.index as usize)
            .map_or(&[], |map| &map.preferred),
        TaskKind::Reduce => &[],
    }
}
