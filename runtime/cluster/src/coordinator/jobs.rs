//! The jobs and tasks that clients ask for. Those that have ended are read from the history.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, AttemptState, Job, JobId, Start, TaskId, TaskKind, TaskState};
use napreduce_local::coordinator::LiveJob;
use napreduce_protocol::requests::{GetJob, ListJobs, ListTasks};
use napreduce_protocol::{JobDetail, JobSummary, LiveAttempt, TaskPhase, TaskSummary};

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::{Handle, HandleLater, Reply};

impl Handle for ListJobs {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<Vec<JobSummary>, Refusal> {
        let limit = self.limit as usize;
        let mut jobs = coordinator.list_running(limit);
        jobs.extend(coordinator.list_ended(limit - jobs.len()));
        Ok(jobs)
    }
}

impl HandleLater for GetJob {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<JobDetail>) {
        match coordinator.find(self.job) {
            Some(detail) => reply.send(Ok(detail)),
            None => coordinator.read_ended(self.job, reply, |ended| Ok(ended.detail)),
        }
    }
}

impl HandleLater for ListTasks {
    fn handle_later(self, coordinator: &mut ClusterCoordinator, reply: Reply<Vec<TaskSummary>>) {
        let Some(job) = self.job else {
            return reply.send(Ok(coordinator.list_live_tasks()));
        };
        if coordinator.local.state().view().job(job).is_some() {
            return reply.send(Ok(coordinator.list_tasks(job)));
        }
        match coordinator.find(job) {
            Some(detail) => reply.send(Ok(detail.tasks())),
            None => coordinator.read_ended(job, reply, |ended| Ok(ended.detail.tasks())),
        }
    }
}

impl ClusterCoordinator {
    /// Returns all details of a job that has not moved to the history.
    pub(super) fn find(&self, job: JobId) -> Option<JobDetail> {
        let known = self.local.state().jobs().get(&job)?;
        Some(self.local.detail(known))
    }

    fn list_running(&self, limit: usize) -> Vec<JobSummary> {
        let newest_first = self.local.state().jobs().values().rev();
        newest_first
            .take(limit)
            .map(|job| self.local.summary(job))
            .collect()
    }

    fn list_ended(&self, limit: usize) -> Vec<JobSummary> {
        let state = self.local.state();
        // A job whose end is not journaled has not ended, even if its files exist.
        let is_running = |job| state.jobs().contains_key(&job);
        let mut ended = self.history.summaries(limit, &is_running);
        for summary in state.unrecorded().values() {
            if !is_running(summary.job) && !self.history.has(summary.job) {
                ended.push(summary.clone());
            }
        }
        ended.sort_by_key(|summary| Reverse(summary.job));
        ended.truncate(limit);
        ended
    }

    /// Lists the tasks of all jobs that have live or suspended attempts.
    fn list_live_tasks(&self) -> Vec<TaskSummary> {
        let mut tasks = Vec::new();
        for job in self.local.state().jobs().keys() {
            tasks.extend(self.list_tasks(*job));
        }
        tasks.retain(|task| !task.live.is_empty() || task.state == TaskPhase::Suspended);
        tasks
    }

    /// Lists the tasks of a job that the engine knows.
    fn list_tasks(&self, id: JobId) -> Vec<TaskSummary> {
        let view = self.local.state().view();
        let (Some(job), Some(live)) = (view.job(id), self.local.state().jobs().get(&id)) else {
            return Vec::new();
        };
        let launched = Launched::of_job(live);
        let mut tasks = Vec::new();
        for kind in TaskKind::ALL {
            for index in 0..job.tasks_total(kind) {
                let task = TaskId {
                    job: id,
                    kind,
                    index,
                };
                let phase = phase_without_attempts(job.task_state(task));
                tasks.push(TaskSummary::new(task, phase, launched.count(task)));
            }
        }
        let maps = job.tasks_total(TaskKind::Map) as usize;
        for attempt in job.attempts().filter_map(|attempt| view.attempt(attempt)) {
            let id = attempt.id();
            let position = match id.task.kind {
                TaskKind::Map => id.task.index as usize,
                TaskKind::Reduce => maps + id.task.index as usize,
            };
            let mut reason = None;
            if attempt.state() != AttemptState::Running {
                reason = live.book.why(id);
            }
            tasks[position].live.push(LiveAttempt {
                attempt: id,
                worker: attempt.worker(),
                state: attempt.state(),
                launched_millis: launched.millis(id),
                reason,
                bytes_done: attempt.bytes_done(),
                bytes_total: attempt.bytes_total(),
            });
        }
        for task in &mut tasks {
            mark_stopped(task, job, live);
        }
        tasks
    }
}

/// The attempts of a job that were launched so far.
struct Launched {
    counts: BTreeMap<TaskId, u32>,
    millis: BTreeMap<AttemptId, u64>,
}

impl Launched {
    fn of_job(job: &LiveJob) -> Launched {
        let mut counts = BTreeMap::new();
        let mut millis = BTreeMap::new();
        for attempt in &job.attempts {
            *counts.entry(attempt.attempt.task).or_default() += 1;
            millis.insert(attempt.attempt, attempt.launched_millis);
        }
        Launched { counts, millis }
    }

    fn count(&self, task: TaskId) -> u32 {
        self.counts.get(&task).copied().unwrap_or(0)
    }

    fn millis(&self, attempt: AttemptId) -> u64 {
        self.millis.get(&attempt).copied().unwrap_or(0)
    }
}

fn phase_without_attempts(state: Option<TaskState>) -> TaskPhase {
    match state {
        Some(TaskState::Active) => TaskPhase::Running,
        Some(TaskState::Done) => TaskPhase::Succeeded,
        Some(TaskState::Pending) | None => TaskPhase::Waiting,
    }
}

/// Sets the phase of a task that is suspended or waits for a slot to continue from a checkpoint.
fn mark_stopped(task: &mut TaskSummary, job: &Job, live: &LiveJob) {
    let is_stopped = |attempt: &LiveAttempt| attempt.state == AttemptState::Suspended;
    if !task.live.is_empty() && task.live.iter().all(is_stopped) {
        task.state = TaskPhase::Suspended;
        task.reason = task.live.iter().find_map(|attempt| attempt.reason.clone());
        return;
    }
    if job.held_attempt(task.task).is_some() {
        task.state = TaskPhase::Suspended;
        task.reason = job.why_held(task.task).map(str::to_owned);
        return;
    }
    let is_pending = job.task_state(task.task) == Some(TaskState::Pending);
    if let Start::Checkpoint(saved) = job.start_of(task.task)
        && is_pending
    {
        task.state = TaskPhase::Checkpointed;
        task.reason = live.book.why_checkpointed(saved);
    }
}
