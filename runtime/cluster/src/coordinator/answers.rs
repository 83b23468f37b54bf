//! Answers to clients: submissions, listings and commands of operators.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

use napreduce_engine::{
    AttemptId, AttemptState, Blame, Explanation, Job, JobId, PauseKind, Reason, ReasonCode, Start,
    TaskId, TaskKind, TaskState, WorkerId, WorkerState,
};
use napreduce_local::coordinator::{Accepted, LiveJob, Submitter, unix_micros};
use napreduce_local::output::ClaimMark;
use napreduce_protocol::requests::{EndChain, Explain, GetJob, HoldChain, ListJobs, ListTasks};
use napreduce_protocol::{
    FromCoordinator, JobDetail, JobError, JobSummary, LiveAttempt, Submission, SuspendedMemory,
    TaskPhase, TaskSummary, ToCoordinator, WorkerMemory, WorkerPhase, WorkerSummary,
};

use super::ClusterCoordinator;
use super::history::{explain_ended, log_holder};
use super::requests::{Refusal, Reply, Request, send};

/// Maximum number of commands listed for a whole job.
const WAYS_MAX: usize = 5;

impl ClusterCoordinator {
    pub(super) fn answer(&mut self, request: Request) {
        match request {
            Request::Message(message, reply) => self.answer_message(message, reply),
            Request::Follow { job, reply } if self.local.state().jobs().contains_key(&job) => {
                send(reply, Ok(self.local.follow(job)));
            }
            Request::Follow { job, reply } => self.follow_ended(job, reply),
            Request::LogHolder { attempt, reply } => {
                match self.local.state().jobs().get(&attempt.task.job) {
                    Some(known) => {
                        send(
                            reply,
                            log_holder(
                                &self.local.detail(known),
                                &known.logs,
                                attempt,
                                &self.data_addresses(),
                            ),
                        );
                    }
                    None => self.log_holder_of_ended(attempt, reply),
                }
            }
            Request::Definition { job, reply } => self.definition(job, reply),
            Request::ReleaseChain { chain } => self.release_chain(chain),
        }
    }

    fn answer_message(&mut self, message: ToCoordinator, reply: Reply) {
        use FromCoordinator as Answer;
        use ToCoordinator as Message;
        if let Some(job) = self.ended_job_of(&message) {
            return self.answer_about_ended(job, message, reply);
        }
        let answer = match message {
            Message::Submission(submission) => return self.submit(*submission, reply),
            Message::HoldChain(HoldChain { chain, root }) => {
                return self.hold_chain(chain, root, reply);
            }
            Message::EndChain(EndChain { chain }) => return self.end_chain(chain, reply),
            Message::GetWindow(window) => return self.answer_about_window(window, reply),
            Message::KillJob(_)
            | Message::CommandTask(_)
            | Message::CommandJob(_)
            | Message::ChangeJob(_)
            | Message::DrainWorker(_)
            | Message::UndrainWorker(_) => {
                let commanded = self.command(message);
                return self.local.afterwards(move || send(reply, commanded));
            }
            Message::ListJobs(ListJobs { limit }) => Ok(Answer::Jobs(self.list_jobs(limit))),
            Message::GetJob(GetJob { job }) => self.find(job).map(Answer::Job),
            Message::ListTasks(ListTasks { job }) => self.list_tasks(job).map(Answer::Tasks),
            Message::GetOutcomes(message) => self.outcomes(&message).map(Answer::Outcomes),
            Message::Explain(Explain { job, task }) => {
                self.explain(job, task).map(Answer::Explained)
            }
            Message::ListQueues(_) => Ok(Answer::Queues(self.list_queues())),
            Message::ListWorkers(_) => Ok(Answer::Workers(self.list_workers())),
            Message::OfferBlob(_)
            | Message::Chunk(_)
            | Message::FetchBlob(_)
            | Message::RerunJob(_)
            | Message::Follow { .. }
            | Message::ReadLog(_) => Err(Refusal::wrong(
                "protocol error: this request needs its own connection",
            )),
        };
        send(reply, answer);
    }

    fn submit(&mut self, submission: Submission, reply: Reply) {
        let token = submission.token;
        let running = self
            .local
            .state()
            .jobs()
            .values()
            .find(|job| job.accepted.token == token)
            .map(LiveJob::id);
        let ended = self.history.of_token(token);
        if let Some(job) = running.or(ended) {
            return send(reply, Ok(FromCoordinator::Submitted(job)));
        }
        if self.local.is_claiming_for(token) {
            return self
                .local
                .join_submission(token, client(reply, submission.rerun_of.map(|of| of.job)));
        }
        if let Err(refusal) = self.admit(&submission.plan, &submission.user) {
            return send(reply, Err(refusal));
        }
        let job = self.local.next_job();
        let Submission {
            plan,
            user,
            program,
            files,
            rerun_of,
            ..
        } = submission;
        let claim = ClaimMark::default();
        let client = client(reply, rerun_of.as_ref().map(|of| of.job));
        let accepted = Accepted {
            job,
            token,
            plan,
            user,
            program: Some(program),
            files,
            claim,
            rerun_of,
        };
        self.local.claim(accepted, client);
    }

    fn list_jobs(&self, limit: u32) -> Vec<JobSummary> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let running = self
            .local
            .state()
            .jobs()
            .values()
            .rev()
            .map(|job| self.local.summary(job));
        let mut jobs: Vec<JobSummary> = running.take(limit).collect();
        // A job whose end is not journaled has not ended, even if its files exist.
        let running = |job| self.local.state().jobs().contains_key(&job);
        let mut ended = self.history.summaries(limit - jobs.len(), &running);
        let unrecorded = self.local.state().unrecorded().values();
        ended.extend(
            unrecorded
                .filter(|job| !running(job.job) && !self.history.has(job.job))
                .cloned(),
        );
        ended.sort_by_key(|job| Reverse(job.job));
        ended.truncate(limit - jobs.len());
        jobs.extend(ended);
        jobs
    }

    /// Returns all details of a job that has not moved to the history.
    pub(super) fn find(&self, job: JobId) -> Result<Box<JobDetail>, Refusal> {
        let known = self
            .local
            .state()
            .jobs()
            .get(&job)
            .ok_or(Refusal::NoSuchJob(job))?;
        Ok(Box::new(self.local.detail(known)))
    }

    fn list_tasks(&self, job: Option<JobId>) -> Result<Vec<TaskSummary>, Refusal> {
        let Some(job) = job else {
            let all = self
                .local
                .state()
                .jobs()
                .keys()
                .flat_map(|job| self.tasks_of(*job));
            let is_suspended = |task: &TaskSummary| task.state == TaskPhase::Suspended;
            return Ok(all
                .filter(|task| !task.live.is_empty() || is_suspended(task))
                .collect());
        };
        if self.local.state().view().job(job).is_some() {
            return Ok(self.tasks_of(job));
        }
        Ok(self.find(job)?.tasks())
    }

    fn tasks_of(&self, id: JobId) -> Vec<TaskSummary> {
        let view = self.local.state().view();
        let (Some(job), Some(kept)) = (view.job(id), self.local.state().jobs().get(&id)) else {
            return Vec::new();
        };
        let mut launched = BTreeMap::<TaskId, u32>::new();
        let mut launched_millis = BTreeMap::<AttemptId, u64>::new();
        for attempt in &kept.attempts {
            *launched.entry(attempt.attempt.task).or_default() += 1;
            launched_millis.insert(attempt.attempt, attempt.launched_millis);
        }
        let ids = TaskKind::ALL.into_iter().flat_map(|kind| {
            (0..job.tasks_total(kind)).map(move |index| TaskId {
                job: id,
                kind,
                index,
            })
        });
        let mut tasks: Vec<TaskSummary> = ids
            .map(|task| {
                let attempts = launched.get(&task).copied().unwrap_or(0);
                TaskSummary::of(task, phase_of(job.task_state(task)), attempts)
            })
            .collect();
        let maps = job.tasks_total(TaskKind::Map) as usize;
        for attempt in job.attempts().filter_map(|attempt| view.attempt(attempt)) {
            let AttemptId { task, .. } = attempt.id();
            let position = task.index as usize
                + if task.kind == TaskKind::Reduce {
                    maps
                } else {
                    0
                };
            tasks[position].live.push(LiveAttempt {
                attempt: attempt.id(),
                worker: attempt.worker(),
                state: attempt.state(),
                launched_millis: launched_millis
                    .get(&attempt.id())
                    .copied()
                    .unwrap_or_default(),
                reason: kept
                    .book
                    .why(attempt.id())
                    .filter(|_| attempt.state() != AttemptState::Running),
                bytes_done: attempt.bytes_done(),
                bytes_total: attempt.bytes_total(),
            });
        }
        for task in &mut tasks {
            let stopped = |live: &LiveAttempt| live.state == AttemptState::Suspended;
            let from = job.start_of(task.task);
            if !task.live.is_empty() && task.live.iter().all(stopped) {
                task.state = TaskPhase::Suspended;
                task.reason = task.live.iter().find_map(|live| live.reason.clone());
            } else if job.held_attempt(task.task).is_some() {
                task.state = TaskPhase::Suspended;
                task.reason = job.why_held(task.task).map(str::to_owned);
            } else if let Start::Checkpoint(saved) = from
                && job.task_state(task.task) == Some(TaskState::Pending)
            {
                task.state = TaskPhase::Checkpointed;
                task.reason = kept.book.why_checkpointed(saved);
            }
        }
        tasks
    }

    fn explain(&self, job: JobId, task: Option<TaskId>) -> Result<Vec<Reason>, Refusal> {
        let view = self.local.state().view();
        let Some(known) = view.job(job) else {
            if let Some(reasons) = self.local.explain_ending(job) {
                return Ok(reasons);
            }
            return Ok(explain_ended(&*self.find(job)?));
        };
        let remedy = |text: String| Reason::new(ReasonCode::Remedy, text);
        let held = known.pause().map(|pause| match pause.kind {
            PauseKind::OutputUnreachable => remedy(format!(
                "it continues when the directory is reachable; end it with: nap job kill {job}"
            )),
            PauseKind::Hold => remedy(format!("release it with: nap job release {job}")),
            PauseKind::Suspend => remedy(format!("resume it with: nap job resume {job}")),
        });
        match task {
            Some(task) if known.task_state(task).is_none() => Err(Refusal::NoSuchTask(task)),
            Some(task) => {
                let mut reasons = with_state(&task, self.local.state().engine().explain(task));
                self.put_limit_first(job, &mut reasons);
                reasons.extend(held);
                reasons.extend(self.ways_on(known, |attempt| attempt.task == task));
                let lately = self
                    .local
                    .state()
                    .jobs()
                    .get(&job)
                    .into_iter()
                    .flat_map(|kept| kept.book.lines(task));
                reasons.extend(lately.map(|line| Reason::new(ReasonCode::Preempted, line)));
                Ok(reasons)
            }
            None => {
                let mut reasons = with_state(&job, self.local.state().engine().explain_job(job));
                self.put_limit_first(job, &mut reasons);
                let remarks = self
                    .local
                    .state()
                    .engine()
                    .remarks(self.local.entry_time(), job);
                let remarks = remarks
                    .into_iter()
                    .map(|remark| Reason::new(ReasonCode::Scheduler, remark));
                let is_new = |remark: &Reason| !reasons.contains(remark);
                let remarks: Vec<Reason> = remarks.filter(is_new).collect();
                reasons.extend(remarks);
                reasons.extend(held);
                reasons.extend(self.ways_on(known, |_| true).into_iter().take(WAYS_MAX));
                Ok(reasons)
            }
        }
    }

    /// Puts a job's queue or user limit first: free slots do not help such a job.
    fn put_limit_first(&self, job: JobId, reasons: &mut Vec<Reason>) {
        use ReasonCode::{AllSlotsTaken, Declined, JobsBefore, TasksBefore};
        if let Some(why) = self.local.state().engine().why_limited(job) {
            reasons.retain(|one| {
                !matches!(
                    one.code,
                    AllSlotsTaken | Declined | JobsBefore | TasksBefore
                )
            });
            let at = reasons
                .iter()
                .position(|one| one.code.is_why())
                .unwrap_or(reasons.len());
            reasons.insert(at, Reason::new(ReasonCode::Scheduler, why));
        }
    }

    /// Returns the commands that resume attempts of a job which operators have suspended.
    fn ways_on(&self, job: &Job, of: impl Fn(AttemptId) -> bool) -> Vec<Reason> {
        let view = self.local.state().view();
        let held = |attempt: &AttemptId| {
            view.attempt(*attempt)
                .is_some_and(|known| known.is_held() && known.state() == AttemptState::Suspended)
        };
        let live = job.attempts().filter(held);
        let gone = TaskKind::ALL
            .into_iter()
            .flat_map(|kind| job.held_tasks(kind));
        let attempts = live
            .chain(gone.filter_map(|task| job.held_attempt(task)))
            .filter(|attempt| of(*attempt));
        let command = |attempt| format!("resume it with: nap task resume {attempt}");
        attempts
            .map(|attempt| Reason::new(ReasonCode::Remedy, command(attempt)))
            .collect()
    }

    pub(super) fn list_workers(&self) -> Vec<WorkerSummary> {
        // A worker that may leave is listed until it has left.
        let gone = self
            .local
            .state()
            .gone()
            .summaries(unix_micros() / 1_000)
            .into_iter();
        let gone = gone.filter(|gone| !self.local.state().links().contains_key(&gone.worker));
        let there = self
            .local
            .state()
            .links()
            .keys()
            .filter_map(|worker| self.worker_summary(*worker));
        let mut workers: Vec<WorkerSummary> = gone.chain(there).collect();
        workers.sort_by_key(|worker| worker.worker);
        workers
    }

    fn worker_summary(&self, worker: WorkerId) -> Option<WorkerSummary> {
        let link = self.local.state().links().get(&worker)?;
        let known = self.local.state().view().worker(worker)?;
        let lacks = known.lacks().map(str::to_owned);
        let (state, remark) = match known.state() {
            _ if link.is_leaving() => (WorkerPhase::Leaving, None),
            WorkerState::Up if !link.is_connected() => {
                (WorkerPhase::Up, Some("but not connected".to_owned()))
            }
            WorkerState::Up if known.exclusion().is_some() => (WorkerPhase::Excluded, None),
            WorkerState::Up if lacks.is_some() => (WorkerPhase::Excluded, lacks),
            WorkerState::Up if known.is_cleared() => (
                WorkerPhase::Up,
                Some("kept for a task that runs alone".to_owned()),
            ),
            WorkerState::Up => (WorkerPhase::Up, None),
            WorkerState::Draining => (WorkerPhase::Draining, None),
            WorkerState::Unknown | WorkerState::Lost => (WorkerPhase::Lost, None),
        };
        let mut remarks: Vec<String> = remark.into_iter().collect();
        let blame = match known.exclusion() {
            Some(exclusion) => Some(&exclusion.blame),
            None => known.blame(),
        };
        let blame = blame.filter(|_| matches!(state, WorkerPhase::Up | WorkerPhase::Excluded));
        remarks.extend(blame.map(Blame::in_words));
        let unread = self
            .local
            .state()
            .view()
            .unread_from(worker)
            .collect::<Vec<_>>();
        if !unread.is_empty() {
            remarks.push(format!("not readable from {}", unread.join(", ")));
        }
        let slots = |kind| (known.slots(kind), known.slots(kind) - known.free(kind));
        // Its last report may predate later orders.
        let is_suspended = |held: &&SuspendedMemory| {
            let attempt = self.local.state().view().attempt(held.attempt);
            attempt.is_some_and(|attempt| attempt.state() == AttemptState::Suspended)
        };
        Some(WorkerSummary {
            worker,
            name: link.identity().name.clone(),
            host: link.identity().host.clone(),
            rack: link.identity().rack.clone(),
            state,
            remarks,
            failing: blame.map(|blame| blame.last),
            isolation: link.identity().isolation.clone(),
            gone_millis: None,
            reason: link
                .drain_reason()
                .filter(|_| state == WorkerPhase::Draining)
                .map(str::to_owned),
            map_slots: slots(TaskKind::Map),
            reduce_slots: slots(TaskKind::Reduce),
            silent_millis: u64::try_from(link.heard.silence().as_millis()).unwrap_or(u64::MAX),
            memory: WorkerMemory {
                suspended: link
                    .memory()
                    .suspended
                    .iter()
                    .filter(is_suspended)
                    .copied()
                    .collect(),
                ..link.memory().clone()
            },
        })
    }
}

/// A client waiting for its submission to be accepted.
fn client(reply: Reply, rerun_of: Option<JobId>) -> Submitter {
    Submitter::Client(Box::new(move |submitted| {
        let answer = submitted.map(FromCoordinator::Submitted);
        let refusal = |error: &JobError| match rerun_of {
            Some(job) => Refusal::of_rerun(job, error),
            None => Refusal::of(error),
        };
        send(reply, answer.map_err(refusal));
    }))
}

fn phase_of(state: Option<TaskState>) -> TaskPhase {
    match state {
        Some(TaskState::Active) => TaskPhase::Running,
        Some(TaskState::Done) => TaskPhase::Succeeded,
        Some(TaskState::Pending) | None => TaskPhase::Waiting,
    }
}

fn with_state(what: &dyn Display, explanation: Explanation) -> Vec<Reason> {
    let mut reasons = vec![Reason::new(
        ReasonCode::State,
        format!("{what} is {}", explanation.state),
    )];
    reasons.extend(explanation.reasons);
    reasons
}
