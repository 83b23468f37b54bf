//! The end of an attempt: its task is done, is retried, or has failed too often. Which failures count:
//!
//! - a failure of the task counts, and so does a cause outside it (`Retryable`): a process that cannot start
//!   must not be restarted forever;
//! - a failure because of a lost map output does not count against the reduce, if it was given that output:
//!   the map is run again, and the loss counts against the map, which bounds the retries;
//! - a failure because of the disk or a limit of one host does not count while another host has not been
//!   tried: the task runs elsewhere and is not retried there for a while. The task is at fault when it has
//!   failed so as often as it has attempts, on as many hosts or on all (`shortages`);
//! - a stopped process that the host killed for its memory does not count;
//! - an ordered kill, a checkpoint and the loss of the worker never count;
//! - a fatal failure ends the job immediately; one caused by a program file does so when two hosts, or all
//!   hosts, report it.

use crate::cluster::{Attempt, Cluster};
use crate::effect::{Record, Start};
use crate::engine::Rules;
use crate::event::FailureClass;
use crate::fault::{DiskNeed, FaultPlace};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::JobOutcome;
use crate::preemption::PreemptRequest;
use crate::states::{AttemptInput, AttemptOutcome, AttemptState, JobInput, JobState};

/// The failure of an attempt, as its worker reported it.
#[derive(Debug)]
pub(super) struct Failure {
    pub class: FailureClass,
    pub place: FaultPlace,
    pub reason: String,
    pub lost_outputs: Vec<AttemptId>,
    pub disk_need: Option<DiskNeed>,
}

impl Rules {
    /// Handles the exit of an attempt's process or the loss of its worker. `failure` is recorded if the table
    /// classifies the exit as a failure.
    pub(super) fn attempt_exits(
        &mut self,
        id: AttemptId,
        input: AttemptInput,
        failure: Option<Failure>,
    ) {
        let Some((before, AttemptState::Finished(outcome))) = self.step(id, input) else {
            return;
        };
        let held_slot = self
            .cluster
            .attempts
            .get(&id)
            .is_some_and(|attempt| attempt.holds_slot);
        let attempt = self.cluster.forget_attempt(id, before);
        if (before, outcome) == (AttemptState::Checkpointing, AttemptOutcome::Checkpointed)
            && held_slot
        {
            self.cluster.measure_checkpoint(&attempt);
        }
        if (before, outcome) == (AttemptState::Killing, AttemptOutcome::Killed) && held_slot {
            self.cluster.measure_kill(&attempt);
        }
        self.cluster
            .judge_free(id, attempt.active_time(self.cluster.now));
        let job = id.task.job;
        if attempt.superseded {
            let why = attempt.why_killed(self.cluster.requests.get(&id));
            self.record(Record::AttemptEnded(id, why));
            self.end_if_drained(job);
        } else if self.cluster.job(job).state != JobState::Active {
            self.retry(id, "its job was over".to_owned());
            self.end_if_drained(job);
        } else {
            match (outcome, failure) {
                (AttemptOutcome::Done, _) => self.task_done(&attempt),
                (AttemptOutcome::Failed, Some(failure)) => self.task_failed(&attempt, failure),
                (AttemptOutcome::Checkpointed, _) => {
                    self.record(Record::Checkpointed(id));
                    let now = self.cluster.now;
                    self.cluster.job_mut(job).keep_checkpoint(&attempt, now);
                }
                (AttemptOutcome::Lost, _) => self.retry(id, format!("{} was lost", attempt.worker)),
                (AttemptOutcome::Failed, None) | (AttemptOutcome::Killed, _) => {
                    let why = attempt.why_killed(self.cluster.requests.get(&id));
                    self.retry(id, why);
                }
            }
        }
        self.cluster.keep_hold(&attempt);
        self.pass_on_commit(id.task);
        let worked = attempt.work_time(self.cluster.now);
        self.cluster
            .close_request(id, attempt.worker, held_slot, worked, &self.settings);
        if attempt.is_master {
            self.cluster.find_avoided();
        }
        self.cluster.refresh(job);
    }

    fn task_done(&mut self, attempt: &Attempt) {
        let id = attempt.id;
        let now = self.cluster.now;
        let job = self.cluster.job_mut(id.task.job);
        let feeds_reduces = !job.commits(id.task.kind);
        let others: Vec<AttemptId> = job.attempts_of(id.task).collect();
        let before = self.cluster.task(id.task);
        let was_lost = before.lost;
        let written_before = before.written;
        self.cluster
            .job_mut(id.task.job)
            .complete_task(attempt, now);
        let written = self.cluster.task(id.task).written;
        self.cluster
            .worker_mut(attempt.worker)
            .health_mut()
            .clear_failures();
        self.cluster.clear_suspicion(id.task);
        if id.task.kind == TaskKind::Reduce {
            self.cluster.forget_unread_by(attempt.worker);
        }
        self.record(Record::TaskDone(id));
        self.settle_blame(id.task, attempt.worker);
        for other in others {
            self.supersede(other, id);
        }
        if let (Some(first), Some(second)) = (written_before, written)
            && first.digest != second.digest
        {
            self.map_output_changed(id.task, first, second);
            if self.cluster.active_job(id.task.job).is_none() {
                return;
            }
        }
        if feeds_reduces {
            if !was_lost && self.cluster.job(id.task.job).phases.map.is_done() {
                self.cluster.end_wait_for_maps(id.task.job);
            }
            self.feed_waiting_reduces(id.task);
            self.move_output_in_time(id, attempt.worker);
        }
        if self.cluster.job(id.task.job).is_complete() {
            self.decide(id.task.job, JobInput::Succeeded, JobOutcome::Succeeded);
        }
    }

    /// Kills an attempt whose task was completed by another one.
    fn supersede(&mut self, id: AttemptId, by: AttemptId) {
        self.cluster.attempt_mut(id).superseded = true;
        self.kill(id, format!("{by} did the task first"));
    }

    /// Grants the commit to the other attempt at a task if it asked for it, when the holder of the grant
    /// ended without using it.
    fn pass_on_commit(&mut self, task: TaskId) {
        let Some(job) = self.cluster.active_job(task.job) else {
            return;
        };
        let live: Vec<AttemptId> = job.attempts_of(task).collect();
        for attempt in live {
            self.grant_commit(attempt);
        }
    }

    /// Ends an attempt without counting a failure.
    fn retry(&mut self, id: AttemptId, why: String) {
        self.record(Record::AttemptEnded(id, why));
        self.cluster.job_mut(id.task.job).attempt_ended(id);
    }

    fn task_failed(&mut self, attempt: &Attempt, failure: Failure) {
        let id = attempt.id;
        let why_failed = failure.in_words();
        self.retry(id, why_failed.clone());
        // The attempt may have been ended together with the worker: batch systems send signals to every
        // process of a job.
        let worker = &self.cluster.workers[&attempt.worker];
        if failure.class == FailureClass::Excused || worker.is_ended_from_outside() {
            return;
        }
        let (lost, doubted) = self
            .cluster
            .weigh(attempt, &failure.lost_outputs, failure.place);
        let excused = self.blame_maps(attempt, &lost, &failure.reason) || !doubted.is_empty();
        let is_fatal = match failure.class {
            FailureClass::Fatal if failure.place == FaultPlace::ProgramFile => {
                self.cluster.add_program_failure(id.task, attempt.worker)
            }
            FailureClass::Fatal => true,
            FailureClass::Retryable | FailureClass::Task | FailureClass::Excused => {
                self.settings.one_host && failure.place == FaultPlace::LocalDisk
            }
        };
        if is_fatal {
            let reason = format!("{} is not retried: {why_failed}", id.task);
            self.decide(id.task.job, JobInput::Failed, JobOutcome::Failed { reason });
        } else if failure.place.is_of_host()
            && failure.class == FailureClass::Retryable
            && !self.settings.one_host
        {
            self.excuse_for_host(id, attempt.worker, &why_failed, failure.disk_need);
        } else if failure.place == FaultPlace::HostMemory
            && failure.class == FailureClass::Retryable
        {
            // The checkpoint that it started from, if any, is still valid.
        } else if failure.class != FailureClass::Retryable || !excused {
            if attempt.from != Start::Fresh && self.cluster.jobs.contains_key(&id.task.job) {
                // The checkpoint may be the cause; a task must not fail for good before it was tried without
                // it.
                self.cluster
                    .job_mut(id.task.job)
                    .set_checkpoint(id.task, None);
            }
            self.count_failure(id.task, attempt.worker, why_failed.clone());
            let exclusion = self.settings.exclusion;
            self.cluster
                .hold_against(attempt.worker, id, &why_failed, exclusion);
        } else if !doubted.is_empty() {
            self.cluster.avoid(id.task, attempt.worker);
        }
    }

    /// Counts a failure of a task on a worker, and makes the task avoid the worker.
    pub(super) fn count_failure(&mut self, id: TaskId, worker: WorkerId, reason: String) {
        let Some(job) = self.cluster.active_job(id.job) else {
            return;
        };
        let attempts_max = job.spec.attempts_max as usize;
        let task = self.cluster.task_mut(id);
        task.faults.failures.push(reason);
        if task.faults.failures.len() >= attempts_max {
            let reason = failed_too_often(id, &task.faults.failures);
            self.decide(id.job, JobInput::Failed, JobOutcome::Failed { reason });
        } else if worker != WorkerId::STORAGE {
            self.cluster.avoid(id, worker);
        }
    }
}

impl Cluster {
    /// Records that the host of a worker could not run the program of a task. Returns whether a retry cannot help:
    /// two hosts could not run it, none is left to try, or the job has ended.
    fn add_program_failure(&mut self, task: TaskId, worker: WorkerId) -> bool {
        if !self.jobs.contains_key(&task.job) {
            return true;
        }
        let host = self.host_of(worker);
        self.task_mut(task).faults.program_failed_on.insert(host);
        let failed_on = &self.task(task).faults.program_failed_on;
        let could_try = |worker: WorkerId| !failed_on.contains(&self.host_of(worker));
        failed_on.len() >= 2 || !self.usable(task.kind).into_iter().any(could_try)
    }

    /// Records how long the reduces of a job have waited for its maps.
    fn end_wait_for_maps(&mut self, job: JobId) {
        let now = self.now;
        let reduces: Vec<AttemptId> = self.job(job).attempts_of_kind(TaskKind::Reduce).collect();
        for id in reduces {
            let attempt = self.attempt_mut(id);
            attempt.waited = attempt.active_time(now);
            attempt.consumed_while_waiting = attempt.bytes_done;
        }
    }

    pub(super) fn active_job(&self, id: JobId) -> Option<&crate::cluster::Job> {
        self.jobs
            .get(&id)
            .filter(|job| job.state == JobState::Active)
    }
}

impl Attempt {
    /// Returns why it was killed, given the open request for it, if there is one.
    fn why_killed(&self, request: Option<&PreemptRequest>) -> String {
        if let Some(reason) = &self.kill_reason {
            return format!("killed: {reason}");
        }
        match request {
            Some(request) => format!("preempted: {}", request.reason),
            None => "killed".to_owned(),
        }
    }
}

impl Failure {
    /// Returns the message, with the place of the fault unless that is user code (the usual case).
    fn in_words(&self) -> String {
        match self.place {
            FaultPlace::UserCode => self.reason.clone(),
            place => format!("{place}: {}", self.reason),
        }
    }
}

/// Returns the failure reason of a job: the last failure of this task and each distinct earlier one.
fn failed_too_often(task: TaskId, failures: &[String]) -> String {
    let Some((last, before)) = failures.split_last() else {
        return format!("{task} failed");
    };
    let times = |count: usize| {
        if count == 1 {
            "1 time".to_owned()
        } else {
            format!("{count} times")
        }
    };
    let mut others: Vec<(&str, usize)> = Vec::new();
    for reason in before.iter().filter(|reason| *reason != last) {
        match others.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => others.push((reason, 1)),
        }
    }
    let mut text = format!("{task} failed {}; last: {last}", times(failures.len()));
    for (position, (reason, count)) in others.into_iter().enumerate() {
        text += if position == 0 { "; before: " } else { ", " };
        text += &format!("{reason} ({})", times(count));
    }
    text
}
