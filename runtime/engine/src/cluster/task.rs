//! A task of a job, with the data that outlives its attempts, and the tasks of one kind with the indices that
//! find the next one to launch.

use serde::{Deserialize, Serialize};

use crate::cluster::attempt::SavedProgress;
use crate::cluster::faults::{FailureStreak, Faults, RetryPause};
use crate::cluster::live_numbers::LiveNumbers;
use crate::cluster::racks::{RackNumber, Racks};
use crate::cluster::task_set::TaskSet;
use crate::ids::WorkerId;
use crate::job::MapSpec;
use crate::settings::{ExclusionSettings, PROGRESS, PreemptionLimits};
use crate::sorted::{SortedMap, SortedSet};
use crate::states::TaskState;
use crate::time::{Span, Time};

/// A task; its index is its position in its phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub state: TaskState,
    /// How many attempts were launched; the number of the last one.
    pub launched: u32,
    /// The numbers of the live attempts, at most two, without superseded ones.
    pub live: LiveNumbers,
    /// The number of the attempt that may commit or has committed.
    pub committer: Option<u32>,
    /// The attempt whose checkpoint the task continues from.
    pub checkpoint: Option<u32>,
    /// Where and when that checkpoint was made.
    pub checkpoint_made: Option<(WorkerId, Time)>,
    /// The work time that the checkpoint preserves.
    pub kept: Span,
    /// The progress at that checkpoint.
    #[serde(default)]
    pub saved: SavedProgress,
    /// The reason of the operator who suspended its attempt. If that attempt ends without completing the
    /// task, no other is launched until an operator resumes the task.
    #[serde(default)]
    pub held: Option<String>,
    /// How often its attempts were suspended.
    #[serde(default)]
    pub suspends: u32,
    /// When its first attempt was launched.
    pub first_launched: Option<Time>,
    /// How often its slot was taken.
    pub preemptions: u32,
    /// How often policies took its slot since its preserved work last grew enough to count as progress.
    #[serde(default)]
    pub fruitless: u32,
    /// The preserved work at that time.
    #[serde(default)]
    pub secured: Span,
    /// The work that these preemptions lost.
    #[serde(default)]
    pub lost_work: Span,
    /// The work time for the completed task, without lost work.
    pub took: Span,
    /// The part of that time for which the attempt that completed it waited for maps.
    #[serde(default)]
    pub waited: Span,
    /// Bytes written by the attempt that completed it.
    pub output_bytes: u64,
    /// The attempt that completed it, and its worker.
    pub done_by: Option<(u32, WorkerId)>,
    /// The attempt that completed it, and the worker that holds its output for reduces.
    pub output: Option<(u32, WorkerId)>,
    /// The digest of the last output that it wrote for reduces, and the attempt that wrote it. Kept when the output
    /// is lost, since reduces may have read it.
    #[serde(default)]
    pub written: Option<WrittenOutput>,
    /// The output was lost and has not been produced again.
    pub lost: bool,
    /// The number of the event that last lost an output.
    pub lost_at: u64,
    #[serde(flatten)]
    pub faults: Faults,
}

/// The records that an attempt at a map wrote for reduces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenOutput {
    /// The number of the attempt.
    pub number: u32,
    pub digest: u64,
}

/// The tasks of one kind of a job.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    pub tasks: Vec<Task>,
    pub pending: TaskSet,
    /// Tasks that would be pending if an operator did not hold them.
    pub held: SortedSet<u32>,
    /// Pending tasks by the workers that hold their input.
    pub local: SortedMap<WorkerId, SortedSet<u32>>,
    /// Pending tasks by the racks of those workers that are not lost, while there are several racks.
    pub on_rack: SortedMap<RackNumber, SortedSet<u32>>,
    /// Pending tasks with a checkpoint, by its time.
    pub checkpointed: SortedSet<(Time, u32)>,
    /// Tasks that failed on some worker; `avoided` lists by worker those that another worker can run.
    pub failed: SortedSet<u32>,
    pub avoided: SortedMap<WorkerId, SortedSet<u32>>,
    /// Failures by worker; `shunned` lists the workers that all tasks avoid.
    pub streaks: SortedMap<WorkerId, FailureStreak>,
    pub shunned: SortedSet<WorkerId>,
    /// Tasks that run alone on a worker that the engine chooses; policies do not launch them.
    pub isolated: SortedSet<u32>,
    pub done: u32,
    pub sums: SumsOfWork,
}

/// Sums over the completed tasks of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SumsOfWork {
    /// The total work time.
    pub worked: Span,
    /// The part of it for which reduces waited for maps.
    pub waited: Span,
    /// The squares of the other parts, in microseconds.
    pub squares: u128,
}

/// A task runs alone after this many workers died while it ran there.
const ISOLATED_AT: usize = 2;

impl SumsOfWork {
    /// Adds a task that is completed.
    pub fn add(&mut self, took: Span, waited: Span) {
        self.worked = self.worked + took;
        self.waited = self.waited + waited;
        self.squares += square(took, waited);
    }
}

impl Task {
    /// Returns whether it must run alone.
    pub fn is_isolated(&self) -> bool {
        self.faults.lost_with.len() >= ISOLATED_AT
    }

    /// Returns whether it was suspended as often as the settings allow.
    pub fn is_suspended_enough(&self, limits: &PreemptionLimits) -> bool {
        limits
            .suspends_max
            .is_some_and(|most| self.suspends >= most)
    }

    /// Returns a reason if its slot was taken as often as the settings allow.
    pub fn why_taken_enough(&self, limits: &PreemptionLimits) -> Option<String> {
        let most = limits.preemptions_max?;
        let taken = self.preemptions;
        if taken < most {
            return None;
        }
        Some(format!(
            "its slot was taken {taken} times (preemptions-max)"
        ))
    }

    /// Records that a policy took its slot after some work, and how much of that is preserved.
    pub fn preempted(&mut self, kept: Span, worked: Span) {
        if kept >= self.secured + PROGRESS {
            self.secured = kept;
            self.fruitless = 0;
            self.lost_work = Span(0);
        } else {
            self.fruitless += 1;
            self.lost_work = self.lost_work + Span(worked.0.saturating_sub(kept.0));
        }
    }
}

impl Phase {
    pub fn of_maps(maps: &[MapSpec]) -> Phase {
        let mut phase = Phase::of_reduces(u32::try_from(maps.len()).expect("checked with the job"));
        for (index, map) in (0..).zip(maps) {
            phase.add_local(index, &map.preferred);
        }
        phase
    }

    pub fn of_reduces(count: u32) -> Phase {
        Phase {
            tasks: vec![Task::default(); count as usize],
            pending: TaskSet::of_all(count),
            ..Phase::default()
        }
    }

    /// Restores a phase from its tasks; `preferred` returns the workers that hold a task's input.
    pub fn of_tasks<'a>(tasks: Vec<Task>, preferred: impl Fn(u32) -> &'a [WorkerId]) -> Phase {
        let done = tasks
            .iter()
            .filter(|task| task.state == TaskState::Done)
            .count() as u32;
        let failed = (0..)
            .zip(&tasks)
            .filter(|(_, task)| !task.faults.failed_on.is_empty())
            .map(|(index, _)| index);
        let failed = failed.collect();
        let isolated = (0..)
            .zip(&tasks)
            .filter(|(_, task)| task.is_isolated())
            .map(|(index, _)| index);
        let isolated = isolated.collect();
        let mut phase = Phase {
            tasks,
            failed,
            isolated,
            done,
            ..Phase::of_reduces(0)
        };
        phase.sums = phase.sums_of_work();
        for index in 0..phase.total() {
            if phase.tasks[index as usize].state == TaskState::Pending {
                phase.add_pending(index, preferred(index), &Racks::default());
            }
        }
        phase
    }

    pub fn task(&self, index: u32) -> Option<&Task> {
        self.tasks.get(index as usize)
    }

    pub fn task_mut(&mut self, index: u32) -> Option<&mut Task> {
        self.tasks.get_mut(index as usize)
    }

    pub fn total(&self) -> u32 {
        self.tasks.len() as u32
    }

    pub fn is_done(&self) -> bool {
        self.done == self.total()
    }

    /// Returns a pending task for `worker`: preferably one with its input there, then one with its input on
    /// the same rack, then the first. Tasks that failed there and can run on another worker are left out.
    pub fn next(&self, worker: WorkerId, racks: &Racks) -> Option<u32> {
        let near = self
            .next_local(worker)
            .or_else(|| self.next_on_rack(worker, racks));
        near.or_else(|| self.first_for(worker, self.pending.iter()))
    }

    /// Returns a pending task for `worker` whose input or checkpoint is on its rack.
    pub fn next_on_rack(&self, worker: WorkerId, racks: &Racks) -> Option<u32> {
        if self.on_rack.is_empty() {
            return None;
        }
        self.first_for(
            worker,
            self.on_rack.get(&racks.of(worker)?)?.iter().copied(),
        )
    }

    fn first_for(&self, worker: WorkerId, mut of: impl Iterator<Item = u32>) -> Option<u32> {
        if self.shunned.contains(&worker) {
            return None;
        }
        if self.isolated.is_empty() && !self.avoided.contains_key(&worker) {
            return of.next();
        }
        of.find(|index| !self.avoids(*index, worker))
    }

    /// Returns whether a task should avoid `worker`.
    pub fn avoids(&self, index: u32, worker: WorkerId) -> bool {
        self.isolated.contains(&index)
            || self.shunned.contains(&worker)
            || self
                .avoided
                .get(&worker)
                .is_some_and(|avoided| avoided.contains(&index))
    }

    /// Returns how many pending tasks a policy may launch.
    pub fn launchable(&self) -> u32 {
        if self.isolated.is_empty() {
            return self.pending.len();
        }
        let isolated = self
            .isolated
            .iter()
            .filter(|index| self.pending.contains(**index))
            .count();
        self.pending.len() - isolated as u32
    }

    /// Records that a task failed on a worker; `usable` are the workers that could run it.
    pub fn failed_on(&mut self, index: u32, worker: WorkerId, usable: &SortedSet<WorkerId>) {
        self.tasks[index as usize].faults.failed_on.insert(worker);
        self.failed.insert(index);
        self.find_avoided_of(index, usable);
    }

    /// Recomputes which tasks avoid which workers.
    pub fn find_avoided(&mut self, usable: &SortedSet<WorkerId>) {
        self.avoided.clear();
        for index in self.failed.clone() {
            self.find_avoided_of(index, usable);
        }
        self.shunned = self.shunned_among(usable);
    }

    /// Returns the workers that all tasks avoid. If these are all usable ones, only those that lack a resource
    /// remain.
    pub fn shunned_among(&self, usable: &SortedSet<WorkerId>) -> SortedSet<WorkerId> {
        let is_avoided = |worker: &WorkerId| {
            self.streaks
                .get(worker)
                .is_some_and(|streak| streak.avoided_until.is_some())
        };
        let elsewhere = usable.iter().any(|worker| !is_avoided(worker));
        let mut shunned = SortedSet::new();
        for (worker, streak) in &self.streaks {
            if streak.avoided_until.is_some() && (streak.waits || elsewhere) {
                shunned.insert(*worker);
            }
        }
        shunned
    }

    /// Adds a failure to the streak of a worker; returns whether all tasks should avoid the worker now.
    pub fn extend_streak(&mut self, index: u32, worker: WorkerId, rule: ExclusionSettings) -> bool {
        let streak = self.streaks.get_or_default(worker);
        streak.failures += 1;
        streak.tasks.insert(index);
        streak.failures >= rule.failures && streak.tasks.len() >= rule.tasks as usize
    }

    /// Starts no task on a worker until a time. If the worker lacks a resource, the tasks wait even if every other
    /// worker is avoided.
    pub fn avoid_until(&mut self, worker: WorkerId, until: Time, lacks_resource: bool) {
        let streak = self.streaks.get_or_default(worker);
        streak.avoided_until = streak.avoided_until.max(Some(until));
        streak.waits |= lacks_resource;
    }

    /// Does not retry a task on a worker for a while.
    pub fn pause_retries(&mut self, index: u32, worker: WorkerId, pause: RetryPause) {
        self.tasks[index as usize]
            .faults
            .pauses
            .insert(worker, pause);
    }

    /// Ends the avoidance of workers that is due; returns whether there was any.
    pub fn end_avoidance(&mut self, now: Time) -> bool {
        let mut ended = false;
        for index in &self.failed {
            let faults = &mut self.tasks[*index as usize].faults;
            if faults.pauses.values().any(|pause| pause.until <= now) {
                faults.pauses.retain(|_, pause| pause.until > now);
                ended = true;
            }
        }
        let before = self.streaks.len();
        self.streaks
            .retain(|_, streak| streak.avoided_until.is_none_or(|until| until > now));
        ended || self.streaks.len() < before
    }

    /// Ends the avoidance of a worker that no longer lacks a resource; returns whether there was any.
    pub fn end_shortage_of(&mut self, worker: WorkerId) -> bool {
        let mut ended = false;
        for index in &self.failed {
            let faults = &mut self.tasks[*index as usize].faults;
            if faults.pauses.contains_key(&worker) {
                faults.pauses.remove(&worker);
                ended = true;
            }
        }
        if self.streaks.get(&worker).is_some_and(|streak| streak.waits) {
            self.streaks.remove(&worker);
            ended = true;
        }
        ended
    }

    /// Returns the ends of the avoidance of workers.
    pub fn avoidance_ends(&self) -> impl Iterator<Item = Time> + '_ {
        let tasks = self.failed.iter().map(|index| &self.tasks[*index as usize]);
        let pauses = tasks.flat_map(|task| task.faults.pauses.values().map(|pause| pause.until));
        pauses.chain(
            self.streaks
                .values()
                .filter_map(|streak| streak.avoided_until),
        )
    }

    /// Returns the workers that a task should avoid, apart from those that all tasks avoid.
    pub fn workers_avoided_by(
        &self,
        index: u32,
        usable: &SortedSet<WorkerId>,
    ) -> SortedSet<WorkerId> {
        let faults = &self.tasks[index as usize].faults;
        let mut avoided: SortedSet<WorkerId> = faults.pauses.keys().copied().collect();
        if !usable.is_subset(&faults.failed_on) {
            avoided.extend(&faults.failed_on);
        }
        avoided
    }

    fn find_avoided_of(&mut self, index: u32, usable: &SortedSet<WorkerId>) {
        let avoided_now = self.workers_avoided_by(index, usable);
        for worker in &self.tasks[index as usize].faults.failed_on {
            if avoided_now.contains(worker) {
                self.avoided.get_or_default(*worker).insert(index);
            } else if let Some(avoided) = self.avoided.get_mut(worker) {
                avoided.remove(&index);
                if avoided.is_empty() {
                    self.avoided.remove(worker);
                }
            }
        }
    }

    /// Subtracts the work time of a completed task that has to run again.
    pub fn remove_work(&mut self, index: u32) {
        let task = &self.tasks[index as usize];
        self.sums.worked.0 = self.sums.worked.0.saturating_sub(task.took.0);
        self.sums.waited.0 = self.sums.waited.0.saturating_sub(task.waited.0);
        self.sums.squares = self
            .sums
            .squares
            .saturating_sub(square(task.took, task.waited));
    }

    /// Computes the sums over the completed tasks from scratch.
    pub fn sums_of_work(&self) -> SumsOfWork {
        let mut sums = SumsOfWork::default();
        for task in self.done_tasks() {
            sums.add(task.took, task.waited);
        }
        sums
    }

    /// Returns the completed tasks.
    pub fn done_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks
            .iter()
            .filter(|task| task.state == TaskState::Done)
    }

    /// Returns a pending task for `worker` whose input or checkpoint is there.
    pub fn next_local(&self, worker: WorkerId) -> Option<u32> {
        self.first_for(worker, self.local.get(&worker)?.iter().copied())
    }

    /// Returns a pending task for `worker` that has no checkpoint.
    pub fn next_fresh(&self, worker: WorkerId) -> Option<u32> {
        let fresh = |index: &u32| self.tasks[*index as usize].checkpoint.is_none();
        self.pending
            .iter()
            .filter(fresh)
            .find(|index| !self.avoids(*index, worker))
    }

    pub fn add_pending(&mut self, index: u32, preferred: &[WorkerId], racks: &Racks) {
        if self.tasks[index as usize].held.is_some() {
            self.held.insert(index);
            return;
        }
        self.pending.insert(index);
        let Some((worker, made)) = self.tasks[index as usize].checkpoint_made else {
            self.add_local(index, preferred);
            return self.add_on_racks(index, preferred, racks);
        };
        self.checkpointed.insert((made, index));
        self.add_local(index, &[worker]);
        self.add_on_racks(index, &[worker], racks);
    }

    pub fn remove_pending(&mut self, index: u32, preferred: &[WorkerId], racks: &Racks) {
        self.pending.remove(index);
        let Some((worker, made)) = self.tasks[index as usize].checkpoint_made else {
            self.remove_local(index, preferred);
            return self.remove_on_racks(index, preferred, racks);
        };
        self.checkpointed.remove(&(made, index));
        self.remove_local(index, &[worker]);
        self.remove_on_racks(index, &[worker], racks);
    }

    fn remove_local(&mut self, index: u32, preferred: &[WorkerId]) {
        for worker in preferred {
            if let Some(tasks) = self.local.get_mut(worker) {
                tasks.remove(&index);
                if tasks.is_empty() {
                    self.local.remove(worker);
                }
            }
        }
    }

    fn add_local(&mut self, index: u32, preferred: &[WorkerId]) {
        for worker in preferred {
            self.local.get_or_default(*worker).insert(index);
        }
    }
}

fn square(took: Span, waited: Span) -> u128 {
    let with_inputs = u128::from(took.0.saturating_sub(waited.0));
    with_inputs * with_inputs
}
