//! The state of the trigger scheduler: known job names, holds, placements and pending actions.

use napreduce_engine::{
    Attempt, AttemptId, AttemptState, ClusterView, Job, JobId, Ratio, SortedMap, SortedSet, TaskId,
    TaskKind, TaskState, Time, WorkerId,
};
use serde::{Deserialize, Serialize};

use super::rules::{Condition, RuleAction, Target};
use super::text::read_rules;

/// A target to launch, optionally on a given worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    pub target: Target,
    pub worker: Option<WorkerId>,
}

/// The state between events.
#[derive(Debug, Clone, Default)]
pub struct TriggerState {
    /// The last job of each name.
    jobs: SortedMap<String, JobId>,
    /// Names whose last job has ended.
    over: SortedSet<String>,
    /// Rules that hold, or fired and do not repeat.
    pub held_rules: SortedSet<usize>,
    /// Targets not to be launched or resumed.
    held: SortedSet<Target>,
    /// Targets of `launch` and `resume`; they are served first.
    pub called: SortedSet<Placement>,
    /// Actions that are not possible yet, and whether a warning was issued.
    pub pending: Vec<(RuleAction, bool)>,
}

/// The saved state; targets and actions in rule syntax.
#[derive(Serialize, Deserialize)]
pub struct Saved {
    jobs: SortedMap<String, JobId>,
    over: SortedSet<String>,
    held_rules: SortedSet<usize>,
    held: Vec<String>,
    called: Vec<String>,
    pending: Vec<(String, bool)>,
}

impl TriggerState {
    pub fn job_changed(&mut self, id: JobId, view: &ClusterView<'_>) {
        match view.job(id) {
            Some(job) => {
                let name = &job.spec().name;
                if self.jobs.get(name) != Some(&id)
                    && self.jobs.get(name).is_none_or(|known| *known < id)
                {
                    self.jobs.insert(name.clone(), id);
                    self.over.remove(name);
                }
            }
            None => {
                if let Some((name, _)) = self.jobs.iter().find(|(_, known)| **known == id) {
                    self.over.insert(name.clone());
                }
            }
        }
    }

    /// Returns the last job of a name, if it has not ended.
    pub fn job<'a>(&self, name: &str, view: &ClusterView<'a>) -> Option<&'a Job> {
        view.job(*self.jobs.get(name)?)
    }

    /// Whether the last job of a name has ended.
    pub fn is_over(&self, name: &str) -> bool {
        self.over.contains(name)
    }

    pub fn holds(&self, condition: &Condition, now: Time, view: &ClusterView<'_>) -> bool {
        match condition {
            Condition::Time(at) => now >= *at,
            Condition::Progress(target, share) => {
                self.is_over(&target.job)
                    || self
                        .job(&target.job, view)
                        .is_some_and(|job| progress(job, target, view) >= *share)
            }
            Condition::Submitted(target) => self.jobs.contains_key(&target.job),
            Condition::Started(target) => {
                let launched = |task| self.was_launched(target, task, view);
                self.is_over(&target.job) || self.tasks(target, view).any(launched)
            }
            Condition::Suspended(target) => {
                let Some(job) = self.job(&target.job, view) else {
                    return false;
                };
                let of = |id: &AttemptId| target.names(&target.job, id.task.kind, id.task.index);
                let live: Vec<_> = job
                    .attempts()
                    .filter(of)
                    .filter_map(|id| view.attempt(id))
                    .collect();
                !live.is_empty() && live.iter().all(|attempt| !attempt.holds_slot())
            }
            Condition::Finished(target) => {
                let mut tasks = self.tasks(target, view).peekable();
                let job = self.job(&target.job, view);
                let done =
                    |task| job.is_some_and(|job| job.task_state(task) == Some(TaskState::Done));
                let task_done = target.task.is_some() && tasks.peek().is_some() && tasks.all(done);
                self.is_over(&target.job) || task_done
            }
        }
    }

    fn was_launched(&self, target: &Target, task: TaskId, view: &ClusterView<'_>) -> bool {
        let history = self
            .job(&target.job, view)
            .and_then(|job| job.history(task));
        history.is_some_and(|history| history.first_launched.is_some())
    }

    /// Returns the tasks of a target whose job is active.
    fn tasks<'a>(
        &'a self,
        target: &'a Target,
        view: &ClusterView<'_>,
    ) -> impl Iterator<Item = TaskId> + 'a {
        let job = self.job(&target.job, view);
        let sizes = job.map(|job| {
            (
                job.id(),
                TaskKind::ALL.map(|kind| (kind, job.tasks_total(kind))),
            )
        });
        let all = sizes.into_iter().flat_map(|(job, kinds)| {
            let of_kind =
                move |(kind, total)| (0..total).map(move |index| TaskId { job, kind, index });
            kinds.into_iter().flat_map(of_kind)
        });
        all.filter(|task| target.names(&target.job, task.kind, task.index))
    }

    /// Starts an action: applies its effect on later launches; the rest is pending.
    pub fn begin(&mut self, action: &RuleAction) {
        match action {
            RuleAction::Launch(target, worker) => {
                self.release(target);
                self.called.insert(Placement {
                    target: target.clone(),
                    worker: *worker,
                });
            }
            RuleAction::Resume(target) => {
                self.release(target);
                self.called.insert(Placement {
                    target: target.clone(),
                    worker: None,
                });
                self.pending.push((action.clone(), false));
            }
            RuleAction::Release(target) => self.release(target),
            RuleAction::Hold(target) => self.hold(target),
            RuleAction::Suspend(target)
            | RuleAction::Kill(target)
            | RuleAction::Checkpoint(target) => {
                self.hold(target);
                self.pending.push((action.clone(), false));
            }
            RuleAction::Submit(_) => self.pending.push((action.clone(), false)),
        }
    }

    fn hold(&mut self, target: &Target) {
        self.held.insert(target.clone());
        self.called.retain(|placement| placement.target != *target);
    }

    /// Lifts the hold of a target, and for a job those of its tasks.
    fn release(&mut self, target: &Target) {
        self.held
            .retain(|held| held != target && (target.task.is_some() || held.job != target.job));
        self.pending.retain(|(action, _)| {
            !matches!(action, RuleAction::Suspend(of) | RuleAction::Kill(of) | RuleAction::Checkpoint(of) if of == target)
        });
    }

    pub fn is_held(&self, name: &str, task: TaskId) -> bool {
        self.held
            .iter()
            .any(|held| held.names(name, task.kind, task.index))
    }

    /// Returns the worker on which a rule placed the task.
    pub fn worker_of(&self, name: &str, task: TaskId) -> Option<WorkerId> {
        let mut placed = self
            .called
            .iter()
            .filter(|one| one.target.names(name, task.kind, task.index));
        placed.find_map(|one| one.worker)
    }

    /// Whether a task of the target is suspended or resuming, or its job has ended.
    pub fn can_resume(&self, target: &Target, view: &ClusterView<'_>) -> bool {
        let Some(job) = self.job(&target.job, view) else {
            return self.is_over(&target.job);
        };
        let stopped = |id: AttemptId| {
            let state = view.attempt(id).map(Attempt::state);
            matches!(
                state,
                Some(AttemptState::Suspended | AttemptState::Resuming)
            ) && target.names(&target.job, id.task.kind, id.task.index)
        };
        job.attempts().any(stopped)
    }

    pub fn to_saved(&self) -> Saved {
        Saved {
            jobs: self.jobs.clone(),
            over: self.over.clone(),
            held_rules: self.held_rules.clone(),
            held: self
                .held
                .iter()
                .map(|target| RuleAction::Hold(target.clone()).to_string())
                .collect(),
            called: self
                .called
                .iter()
                .map(|one| RuleAction::Launch(one.target.clone(), one.worker).to_string())
                .collect(),
            pending: self
                .pending
                .iter()
                .map(|(action, warned)| (action.to_string(), *warned))
                .collect(),
        }
    }

    pub fn from_saved(saved: Saved) -> Result<TriggerState, String> {
        let mut state = TriggerState {
            jobs: saved.jobs,
            over: saved.over,
            held_rules: saved.held_rules,
            ..TriggerState::default()
        };
        for text in saved.held {
            if let RuleAction::Hold(target) = parse_action(&text)? {
                state.held.insert(target);
            }
        }
        for text in saved.called {
            if let RuleAction::Launch(target, worker) = parse_action(&text)? {
                state.called.insert(Placement { target, worker });
            }
        }
        for (text, warned) in saved.pending {
            state.pending.push((parse_action(&text)?, warned));
        }
        Ok(state)
    }
}

/// Parses an action.
fn parse_action(text: &str) -> Result<RuleAction, String> {
    let mut rules =
        read_rules(&format!("when time >= 0s do {text}")).map_err(|error| error.to_string())?;
    let action = rules.pop().and_then(|mut rule| rule.actions.pop());
    action.ok_or_else(|| format!("invalid action {text:?}"))
}

/// Returns the completed fraction of a target: the mean over its tasks. Exact if at most one task is running,
/// otherwise to a millionth per task.
fn progress(job: &Job, target: &Target, view: &ClusterView<'_>) -> Ratio {
    let mut done = 0_i128;
    let mut tasks = 0_i128;
    let mut begun: Vec<(u64, u64)> = Vec::new();
    for kind in TaskKind::ALL {
        for index in 0..job.tasks_total(kind) {
            let task = TaskId {
                job: job.id(),
                kind,
                index,
            };
            if !target.names(&target.job, kind, index) {
                continue;
            }
            tasks += 1;
            if job.task_state(task) == Some(TaskState::Done) {
                done += 1;
            } else if let Some(attempt) =
                job.attempts_of(task).next().and_then(|id| view.attempt(id))
            {
                let consumed = attempt.bytes_done();
                let total = attempt.bytes_total();
                begun.extend((total > 0).then_some((consumed.min(total), total)));
            }
        }
    }
    let share =
        |&(consumed, total): &(u64, u64)| Ratio::new(i128::from(consumed), i128::from(total));
    let part = match &begun[..] {
        [only] => share(only),
        many => Ratio::new(
            many.iter()
                .map(|one| i128::from(share(one).of(1_000_000)))
                .sum(),
            1_000_000,
        ),
    };
    if tasks == 0 {
        Ratio::ZERO
    } else {
        (Ratio::new(done, 1) + part) / Ratio::new(tasks, 1)
    }
}
