//! What operators have done to jobs, attempts and workers.
//!
//! Owns the answers to commands: to what they can be done, and which entries follow. Does not own what an entry leads to
//! (the engine).

use napreduce_core::{AttemptId, AttemptState, JobId, TaskId, WorkerId};

use super::answers::unknown_job;
use super::daemon::Coordinator;
use super::entry::Happening;
use super::requests::Refusal;
use crate::client::{JobCommand, TaskCommand};

impl Coordinator {
    pub(super) fn kill_job(&mut self, job: JobId, reason: String) -> Result<(), Refusal> {
        self.check_active(job)?;
        self.enter(Happening::JobKillRequested { job, reason });
        Ok(())
    }

    fn check_active(&self, job: JobId) -> Result<(), Refusal> {
        if self.brain.view().job(job).is_some() {
            return Ok(());
        }
        let ended = self.brain.jobs.contains_key(&job)
            || self.lasting.as_ref().is_some_and(|lasting| lasting.history.has(job));
        Err(if ended { Refusal::wrong(format!("{job} has ended")) } else { unknown_job(job) })
    }

    /// Does it to those live attempts of a task that it can be done to, or to the one that is named.
    pub(super) fn command_task(
        &mut self,
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: &str,
    ) -> Result<Vec<AttemptId>, Refusal> {
        self.check_active(task.job)?;
        let view = self.brain.view();
        let job = view.job(task.job).ok_or_else(|| unknown_job(task.job))?;
        if job.task_state(task).is_none() {
            return Err(Refusal::wrong(format!("{} has no task {task}", task.job)));
        }
        let wanted =
            |live: &AttemptId| live.task == task && attempt.is_none_or(|number| live.number == number);
        let live: Vec<(AttemptId, AttemptState)> =
            job.attempts().filter(wanted).filter_map(|id| Some((id, view.attempt(id)?.state()))).collect();
        if live.is_empty() {
            let what = attempt.map_or_else(
                || format!("no attempt at {task} is live"),
                |number| format!("{} is not live", AttemptId { task, number }),
            );
            return Err(Refusal::wrong(format!("{what}; see: nap task list {}", task.job)));
        }
        let able: Vec<AttemptId> =
            live.iter().filter(|(_, state)| can(command, *state)).map(|(id, _)| *id).collect();
        if able.is_empty() {
            let are: Vec<String> =
                live.iter().map(|(id, state)| format!("{id} is {}", state_in_words(*state))).collect();
            let (are, command) = (are.join(", "), command.in_words());
            return Err(Refusal::wrong(format!("cannot {command} {task}: {are}")));
        }
        for id in &able {
            let happening = self.command_entry(*id, command, reason)?;
            self.enter(happening);
        }
        Ok(able)
    }

    fn command_entry(
        &self,
        attempt: AttemptId,
        command: TaskCommand,
        reason: &str,
    ) -> Result<Happening, Refusal> {
        let reason = reason.to_owned();
        match command {
            TaskCommand::Kill => Ok(Happening::AttemptKillRequested { attempt, reason }),
            TaskCommand::Suspend | TaskCommand::Resume | TaskCommand::Checkpoint => {
                let command = command.in_words();
                Err(Refusal::wrong(format!(
                    "this version cannot {command} {attempt}; kill it or let it finish"
                )))
            }
        }
    }

    pub(super) fn command_job(&mut self, job: JobId, command: JobCommand) -> Result<(), Refusal> {
        self.check_active(job)?;
        let command = command.in_words();
        Err(Refusal::wrong(format!("this version cannot {command} {job}; kill it or let it finish")))
    }

    pub(super) fn drain(&mut self, worker: WorkerId, hand_back: bool) -> Result<(), Refusal> {
        if !self.is_there(worker) {
            return Err(Refusal::wrong(format!("there is no {worker}; see: nap worker list")));
        }
        self.enter(Happening::DrainRequested { worker, hand_back });
        Ok(())
    }
}

/// Whether an attempt in this state can be told to do this.
fn can(command: TaskCommand, state: AttemptState) -> bool {
    match command {
        TaskCommand::Suspend => state == AttemptState::Running,
        TaskCommand::Resume => state == AttemptState::Suspended,
        TaskCommand::Checkpoint => matches!(state, AttemptState::Running | AttemptState::Suspended),
        TaskCommand::Kill => !matches!(state, AttemptState::Killing | AttemptState::Finished(_)),
    }
}

pub(super) fn state_in_words(state: AttemptState) -> &'static str {
    match state {
        AttemptState::Launching => "launching",
        AttemptState::Running => "running",
        AttemptState::Suspending => "suspending",
        AttemptState::Suspended => "suspended",
        AttemptState::Resuming => "resuming",
        AttemptState::Checkpointing => "checkpointing",
        AttemptState::Killing => "killing",
        AttemptState::Finished(_) => "finished",
    }
}
