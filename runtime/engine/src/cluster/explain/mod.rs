//! Explanations for people: why a task does not run, where it runs, or which attempt completed it, derived
//! from the scheduling state. `slots` explains why a launchable task has no slot, `suspended` why an attempt
//! is suspended.

mod reason;
mod slots;
mod suspended;

pub use reason::{Reason, ReasonCode};
use serde::{Deserialize, Serialize};

use crate::cluster::task::Task;
use crate::cluster::{Attempt, Cluster, ClusterView, Job};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind};
use crate::job::JobOutcome;
use crate::pause::PauseKind;
use crate::preemption::Primitive;
use crate::states::{AttemptState, JobState, TaskState};
use crate::time::Span;

/// The state of a task or a job, and the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// In one word: the state of the task or job, `unknown` or `ended`.
    pub state: String,
    /// Most important first.
    pub reasons: Vec<Reason>,
}

/// Returns the jobs that want slots of a kind, in order.
pub(crate) type Order<'a> = &'a dyn Fn(TaskKind) -> Vec<JobId>;

impl ClusterView<'_> {
    /// Explains why a task waits, where its attempts run and what they wait for, or which attempt completed
    /// it.
    ///
    /// Jobs that come first are those of the default order: see [`ClusterView::wanting`].
    pub fn explain(&self, task: TaskId) -> Explanation {
        self.explain_in_order(task, &|kind| self.wanting(kind).map(Job::id).collect())
    }

    /// As [`ClusterView::explain`], with an order of the jobs that want slots of a kind.
    pub(crate) fn explain_in_order(&self, task: TaskId, order: Order<'_>) -> Explanation {
        let cluster = self.cluster();
        let job = match self.known_job(task.job) {
            Ok(job) => job,
            Err(explanation) => return explanation,
        };
        let Some(known) = job.task(task) else {
            let total = job.tasks_total(task.kind);
            let text = format!("{} has {total} {} tasks", task.job, task.kind);
            return explanation("unknown", vec![Reason::new(ReasonCode::State, text)]);
        };
        let mut reasons = ending(job);
        reasons.extend(match known.state {
            TaskState::Pending => waits(cluster, job, task, order),
            TaskState::Active => job
                .attempts_of(task)
                .map(|id| attempt_state(cluster, job, id))
                .collect(),
            TaskState::Done => known
                .done_by
                .map(|by| done(task, known, by))
                .into_iter()
                .collect(),
        });
        let superseded = job
            .live
            .iter()
            .filter(|id| id.task == task && cluster.attempts[id].superseded);
        reasons.extend(superseded.map(|id| attempt_state(cluster, job, *id)));
        reasons.extend(failures(job, known));
        let state = match known.state {
            TaskState::Pending if known.held.is_some() => "suspended",
            TaskState::Pending => "waiting",
            TaskState::Active if is_suspended(cluster, job, task) => "suspended",
            TaskState::Active => "running",
            TaskState::Done => "succeeded",
        };
        explanation(state, reasons)
    }

    /// Explains the progress of a job and why its tasks wait.
    pub fn explain_job(&self, job: JobId) -> Explanation {
        self.explain_job_in_order(job, &|kind| self.wanting(kind).map(Job::id).collect())
    }

    /// As [`ClusterView::explain_job`], with an order of the jobs that want slots of a kind.
    pub(crate) fn explain_job_in_order(&self, job: JobId, order: Order<'_>) -> Explanation {
        let job = match self.known_job(job) {
            Ok(job) => job,
            Err(explanation) => return explanation,
        };
        let mut reasons = ending(job);
        for kind in TaskKind::ALL
            .into_iter()
            .filter(|kind| job.tasks_total(*kind) > 0)
        {
            let total = job.tasks_total(kind);
            let done = job.tasks_done(kind);
            let stopped =
                |id: &AttemptId| self.cluster().attempts[id].state == AttemptState::Suspended;
            let running = job.holding(kind);
            let suspended = job.attempts_of_kind(kind).filter(stopped).count();
            let waiting = job.phases[kind].pending.len();
            let text = format!(
                "{done} of {total} {kind} tasks are done; {running} running, {suspended} suspended, {waiting} waiting"
            );
            reasons.push(Reason::new(ReasonCode::Progress, text));
            if job.pause.is_none() {
                reasons.extend(suspended::of_job(self.cluster(), job, kind));
            }
            reasons.extend(held_without_attempts(job, kind));
            if let Some(index) = job.phases[kind].pending.iter().next() {
                let task = TaskId {
                    job: job.id,
                    kind,
                    index,
                };
                reasons.extend(waits(self.cluster(), job, task, order));
            }
        }
        explanation(self.standing(job).in_words(), reasons)
    }

    fn known_job(&self, id: JobId) -> Result<&Job, Explanation> {
        let over = || {
            if self.cluster().ended.contains(id.0) {
                let text = format!("{id} has ended; see its history");
                explanation("ended", vec![Reason::new(ReasonCode::State, text)])
            } else {
                explanation(
                    "unknown",
                    vec![Reason::new(ReasonCode::State, format!("there is no {id}"))],
                )
            }
        };
        self.cluster().jobs.get(&id).ok_or_else(over)
    }
}

/// Returns whether every live attempt at a task is suspended.
fn is_suspended(cluster: &Cluster, job: &Job, task: TaskId) -> bool {
    job.attempts_of(task)
        .all(|id| cluster.attempts[&id].state == AttemptState::Suspended)
}

fn explanation(state: &str, reasons: Vec<Reason>) -> Explanation {
    Explanation {
        state: state.to_owned(),
        reasons,
    }
}

/// Returns a reason if the job is paused or ending.
fn ending(job: &Job) -> Vec<Reason> {
    if let (JobState::Active, Some(pause)) = (job.state, &job.pause) {
        let how = match pause.kind {
            PauseKind::Hold => "held",
            PauseKind::Suspend | PauseKind::OutputUnreachable => "suspended",
        };
        let text = format!("it is {how}: {}", pause.reason);
        return vec![Reason::new(ReasonCode::HeldByOperator, text)];
    }
    let live = job.live.len();
    let why = match &job.outcome {
        Some(JobOutcome::Succeeded) => "it is complete".to_owned(),
        Some(JobOutcome::Failed { reason }) => format!("it failed: {reason}"),
        Some(JobOutcome::Killed { reason }) => format!("it is killed: {reason}"),
        None => return Vec::new(),
    };
    let text = format!(
        "{} is ending, since {why}; {live} attempts are being killed",
        job.id
    );
    vec![Reason::new(ReasonCode::Ending, text)]
}

/// Returns a reason if operators suspended tasks whose attempts have ended.
fn held_without_attempts(job: &Job, kind: TaskKind) -> Option<Reason> {
    let mut held = job.held_tasks(kind);
    let first = held.next()?;
    let text = match held.count() {
        0 => format!("{first} is suspended by an operator, and its attempt has ended"),
        1 => format!(
            "{first} and 1 other {kind} task are suspended by an operator, and their attempts have ended"
        ),
        more => {
            format!(
                "{first} and {more} other {kind} tasks are suspended by an operator, and their attempts \
                 have ended"
            )
        }
    };
    Some(Reason::new(ReasonCode::HeldByOperator, text))
}

/// Returns what a pending task waits for.
fn waits(cluster: &Cluster, job: &Job, task: TaskId, order: Order<'_>) -> Vec<Reason> {
    let phase = &job.phases.map;
    if job.state != JobState::Active || job.pause.is_some() {
        return Vec::new();
    }
    if let Some(reason) = job.why_held(task) {
        let from = match job.task(task).and_then(|known| known.checkpoint_made) {
            Some((worker, _)) => format!("from the checkpoint made on {worker}"),
            None => "from the beginning".to_owned(),
        };
        let why = format!("it is suspended by an operator: {reason}");
        let gone =
            format!("its attempt has ended; it continues {from} when an operator resumes it");
        return vec![
            Reason::new(ReasonCode::HeldByOperator, why),
            Reason::new(ReasonCode::HeldByOperator, gone),
        ];
    }
    if task.kind == TaskKind::Reduce && job.outputs.lost() > 0 {
        let text = format!(
            "it waits for {} lost map outputs, which are being recomputed",
            job.outputs.lost()
        );
        return vec![Reason::new(ReasonCode::OutputsLost, text)];
    }
    if !job.is_open(task.kind) {
        let needed =
            (u64::from(job.spec.slowstart_permille) * u64::from(phase.total())).div_ceil(1000);
        let total = phase.total();
        let done = phase.done;
        let text =
            format!("it waits for maps: {needed} of {total} must be done (slow-start), {done} are");
        return vec![Reason::new(ReasonCode::SlowStart, text)];
    }
    slots::obstacles(cluster, job, task, order)
}

/// Returns the state of an attempt.
fn attempt_state(cluster: &Cluster, job: &Job, id: AttemptId) -> Reason {
    let attempt = &cluster.attempts[&id];
    let since = seconds(cluster.now.since(attempt.launched));
    let committing = job
        .task(id.task)
        .is_some_and(|task| task.committer == Some(id.number));
    let is = match attempt.state {
        AttemptState::Launching => "is starting",
        AttemptState::Running | AttemptState::Checkpointing if committing => "commits its output",
        AttemptState::Running if attempt.wants_commit => {
            "is ready and waits while another attempt commits"
        }
        AttemptState::Running => "runs",
        AttemptState::Suspending => "is being suspended",
        AttemptState::Suspended if attempt.saving.is_some() => {
            "is suspended and gets the next free slot, to finish its record or group and be saved"
        }
        AttemptState::Suspended if attempt.is_held() => "is suspended by an operator",
        AttemptState::Suspended if job.pause.is_some() => "is suspended with its job",
        AttemptState::Suspended if attempt.is_recalled() => {
            "is suspended and gets the next free slot"
        }
        AttemptState::Suspended => "is suspended and waits for a slot",
        AttemptState::Checkpointing if attempt.is_converting() => {
            "was resumed to save its work and continue elsewhere,"
        }
        AttemptState::Resuming => "is being resumed",
        AttemptState::Checkpointing => "is saving its work",
        AttemptState::Killing => "is being killed",
        AttemptState::Finished(_) => "has ended",
    };
    let mut text = format!("{id} {is} on {}, launched {since} ago", attempt.worker);
    if let Some(progress) = attempt.progress_millionths() {
        let active = seconds(attempt.active_time(cluster.now));
        text += &format!(", {} % done in {active} of work", progress / 10_000);
    }
    if let Some(slow) = attempt.duplicate_of {
        text += &format!("; it duplicates {slow}, which was slow");
    }
    if job.awaiting_inputs.contains(&id) && !job.phases.map.is_done() {
        let missing = job.phases.map.total() - job.phases.map.done;
        text += &format!("; it waits for the outputs of {missing} maps");
    }
    if attempt.is_converting() {
        let because = attempt
            .suspension()
            .map_or("", |suspension| &suspension.reason);
        text += &format!(": {because}");
    } else if let Some(why) = suspended::why(cluster, job, attempt) {
        text += &format!("; {why}");
    }
    let code = match attempt.state {
        AttemptState::Suspended if attempt.is_held() || job.pause.is_some() => {
            ReasonCode::HeldByOperator
        }
        AttemptState::Suspended => ReasonCode::Suspended,
        _ => ReasonCode::Attempt,
    };
    Reason::new(code, text + &interruption(cluster, attempt))
}

/// Returns why an attempt is being killed or preempted, if it is.
fn interruption(cluster: &Cluster, attempt: &Attempt) -> String {
    if let Some(reason) = &attempt.kill_reason {
        return format!("; {reason}");
    }
    let Some(request) = cluster.requests.get(&attempt.id) else {
        return protection(cluster, attempt);
    };
    let whom = request
        .beneficiary
        .map_or_else(String::new, |job| format!(" for {job}"));
    let left = left(cluster, attempt).filter(|_| request.primitive == Primitive::Wait);
    let left = left.map_or_else(String::new, |left| format!(", {left}"));
    format!(
        "; it is being preempted{whom} ({}{left}): {}",
        request.primitive, request.reason
    )
}

/// Returns the remaining time of an attempt, if known.
fn left(cluster: &Cluster, attempt: &Attempt) -> Option<String> {
    attempt
        .remaining(cluster.now)
        .map(|left| format!("about {} left", left.rounded()))
}

/// Returns why an attempt is protected from preemption, if it is.
fn protection(cluster: &Cluster, attempt: &Attempt) -> String {
    let task = cluster.job(attempt.id.task.job).task(attempt.id.task);
    let spared = attempt.is_spared(cluster.now) && !attempt.is_master;
    let Some(task) = task.filter(|_| spared) else {
        return String::new();
    };
    let times = task.fruitless;
    let least = attempt.spared_for.rounded();
    format!(
        "; it was preempted {times} times without progress and is exempt until it has run for {least}"
    )
}

fn done(task: TaskId, known: &Task, (number, worker): (u32, crate::ids::WorkerId)) -> Reason {
    let by = AttemptId { task, number };
    let output = if known.output.is_some() {
        "; its output is available"
    } else {
        ""
    };
    Reason::new(
        ReasonCode::Done,
        format!(
            "completed by {by} on {worker} in {}{output}",
            seconds(known.took)
        ),
    )
}

/// Returns how often a task has failed, if it has.
fn failures(job: &Job, task: &Task) -> Option<Reason> {
    let last = task.faults.failures.last()?;
    let count = task.faults.failures.len();
    let most = job.spec.attempts_max;
    let places: Vec<String> = task
        .faults
        .failed_on
        .iter()
        .map(ToString::to_string)
        .collect();
    let text = format!(
        "it failed {count} of at most {most} times, on {}; last: {last}",
        places.join(", ")
    );
    Some(Reason::new(ReasonCode::FailedBefore, text))
}

/// Formats a span for people.
fn seconds(span: Span) -> String {
    format!("{}.{} s", span.0 / 1_000_000, span.0 / 100_000 % 10)
}
