//! Why a job or task does not run, with the commands that would help.

use napreduce_engine::{
    AttemptId, AttemptState, Job, JobId, PauseKind, Reason, ReasonCode, TaskId, TaskKind,
};
use napreduce_protocol::JobDetail;
use napreduce_protocol::requests::Explain;

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::{HandleLater, Reply};

/// Maximum number of commands listed for a whole job.
const REMEDIES_MAX: usize = 5;

impl HandleLater for Explain {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<Vec<Reason>>) {
        let Explain { job, task } = self;
        if let Some(known) = coordinator.local.state().view().job(job) {
            return reply.send(match task {
                Some(task) => coordinator.explain_task(known, task),
                None => Ok(coordinator.explain_job(known)),
            });
        }
        if let Some(reasons) = coordinator.local.explain_ending(job) {
            return reply.send(Ok(reasons));
        }
        match coordinator.find(job) {
            Some(detail) => reply.send(Ok(explain_ended(&detail))),
            None => coordinator.read_ended(job, reply, |ended| Ok(explain_ended(&ended.detail))),
        }
    }
}

impl ClusterCoordinator {
    fn explain_task(&self, job: &Job, task: TaskId) -> Result<Vec<Reason>, Refusal> {
        if job.task_state(task).is_none() {
            return Err(Refusal::NoSuchTask(task));
        }
        let state = self.local.state();
        let explanation = state.engine().explain(task);
        let mut reasons = vec![state_reason(format!("{task} is {}", explanation.state))];
        reasons.extend(explanation.reasons);
        self.put_limit_first(job.id(), &mut reasons);
        reasons.extend(pause_remedy(job));
        reasons.extend(self.resume_remedies(job, |attempt| attempt.task == task));
        if let Some(live) = state.jobs().get(&job.id()) {
            for line in live.book.lines(task) {
                reasons.push(Reason::new(ReasonCode::Preempted, line));
            }
        }
        Ok(reasons)
    }

    fn explain_job(&self, job: &Job) -> Vec<Reason> {
        let id = job.id();
        let engine = self.local.state().engine();
        let explanation = engine.explain_job(id);
        let mut reasons = vec![state_reason(format!("{id} is {}", explanation.state))];
        reasons.extend(explanation.reasons);
        self.put_limit_first(id, &mut reasons);
        let mut remarks = Vec::new();
        for remark in engine.remarks(self.local.entry_time(), id) {
            let remark = Reason::new(ReasonCode::Scheduler, remark);
            if !reasons.contains(&remark) {
                remarks.push(remark);
            }
        }
        reasons.extend(remarks);
        reasons.extend(pause_remedy(job));
        let mut remedies = self.resume_remedies(job, |_| true);
        remedies.truncate(REMEDIES_MAX);
        reasons.extend(remedies);
        reasons
    }

    /// Puts a job's queue or user limit first: free slots do not help such a job.
    fn put_limit_first(&self, job: JobId, reasons: &mut Vec<Reason>) {
        use ReasonCode::{AllSlotsTaken, Declined, JobsBefore, TasksBefore};
        let Some(limit) = self.local.state().engine().why_limited(job) else {
            return;
        };
        reasons.retain(|reason| {
            !matches!(
                reason.code,
                AllSlotsTaken | Declined | JobsBefore | TasksBefore
            )
        });
        let first = reasons
            .iter()
            .position(|reason| reason.code.is_why())
            .unwrap_or(reasons.len());
        reasons.insert(first, Reason::new(ReasonCode::Scheduler, limit));
    }

    /// Returns the commands that resume attempts of a job which operators have suspended.
    fn resume_remedies(&self, job: &Job, is_wanted: impl Fn(AttemptId) -> bool) -> Vec<Reason> {
        let view = self.local.state().view();
        let mut held: Vec<AttemptId> = Vec::new();
        for attempt in job.attempts().filter_map(|attempt| view.attempt(attempt)) {
            if attempt.is_held() && attempt.state() == AttemptState::Suspended {
                held.push(attempt.id());
            }
        }
        // Attempts that are gone, whose tasks are still held.
        for kind in TaskKind::ALL {
            held.extend(
                job.held_tasks(kind)
                    .filter_map(|task| job.held_attempt(task)),
            );
        }
        held.retain(|attempt| is_wanted(*attempt));
        held.into_iter()
            .map(|attempt| remedy(format!("resume it with: nap task resume {attempt}")))
            .collect()
    }
}

/// Explains a job whose tasks are over, including one whose output is not committed yet.
fn explain_ended(detail: &JobDetail) -> Vec<Reason> {
    let job = detail.summary.job;
    let mut text = format!("{job} has ended, {}", detail.summary.phase.in_words());
    if let Some(reason) = &detail.summary.reason {
        text = format!("{text}: {reason}");
    }
    vec![state_reason(text)]
}

/// Returns the command that ends a job's pause.
fn pause_remedy(job: &Job) -> Option<Reason> {
    let id = job.id();
    Some(remedy(match job.pause()?.kind {
        PauseKind::OutputUnreachable => {
            format!("it continues when the directory is reachable; end it with: nap job kill {id}")
        }
        PauseKind::Hold => format!("release it with: nap job release {id}"),
        PauseKind::Suspend => format!("resume it with: nap job resume {id}"),
    }))
}

fn state_reason(text: String) -> Reason {
    Reason::new(ReasonCode::State, text)
}

fn remedy(text: String) -> Reason {
    Reason::new(ReasonCode::Remedy, text)
}
