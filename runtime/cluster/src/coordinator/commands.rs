//! Commands of operators on jobs, attempts and workers: checks and journal entries. The engine applies the
//! entries.

use napreduce_engine::{
    AttemptId, Event, JobId, OperatorRefusal, Pause, PauseKind, Primitive, WorkerId,
};
use napreduce_local::coordinator::Extra;
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, KillJob, UndrainWorker,
};
use napreduce_protocol::{FromCoordinator, JobCommand, TaskCommand, ToCoordinator, check_name};

use super::ClusterCoordinator;
use super::requests::Refusal;

impl ClusterCoordinator {
    /// Carries out a command; the reply is sent after its effects are journaled.
    pub(super) fn command(&mut self, request: ToCoordinator) -> Result<FromCoordinator, Refusal> {
        match request {
            ToCoordinator::KillJob(KillJob { job, reason }) => self.kill_job(job, reason)?,
            ToCoordinator::CommandJob(request) => self.command_job(request)?,
            ToCoordinator::ChangeJob(request) => self.change_job(request)?,
            ToCoordinator::DrainWorker(request) => self.drain(request)?,
            ToCoordinator::UndrainWorker(UndrainWorker { worker, reason }) => {
                self.undrain(worker, reason)?
            }
            ToCoordinator::CommandTask(request) => {
                let attempts = self.command_task(request)?;
                return Ok(FromCoordinator::Commanded(attempts));
            }
            other => {
                return Err(Refusal::wrong(format!(
                    "protocol error: {other:?} is not a command"
                )));
            }
        }
        Ok(FromCoordinator::Done)
    }

    fn kill_job(&mut self, job: JobId, reason: String) -> Result<(), Refusal> {
        if self.local.kill_ending(job, &reason) {
            return Ok(());
        }
        self.check_active(job)?;
        self.local.enter(Event::JobKillRequested { job, reason });
        Ok(())
    }

    fn check_active(&self, job: JobId) -> Result<(), Refusal> {
        if self.local.state().view().job(job).is_some() {
            return Ok(());
        }
        let ended = self.local.state().jobs().contains_key(&job) || self.history.has(job);
        Err(if ended {
            Refusal::JobEnded(job)
        } else {
            Refusal::NoSuchJob(job)
        })
    }

    /// Applies a command to the named attempt, or to all suitable live attempts of a task.
    fn command_task(&mut self, request: CommandTask) -> Result<Vec<AttemptId>, Refusal> {
        let CommandTask {
            task,
            attempt,
            command,
            reason,
        } = request;
        self.check_active(task.job)?;
        let view = self.local.state().view();
        let job = view.job(task.job).ok_or(Refusal::NoSuchJob(task.job))?;
        if job.task_state(task).is_none() {
            return Err(Refusal::NoSuchTask(task));
        }
        let wanted = |live: &AttemptId| {
            live.task == task && attempt.is_none_or(|number| live.number == number)
        };
        let mut live: Vec<AttemptId> = job.attempts().filter(wanted).collect();
        if command == TaskCommand::Resume {
            live.extend(
                job.held_attempt(task)
                    .filter(|held| attempt.is_none_or(|number| held.number == number)),
            );
        }
        if live.is_empty() {
            let unknown = attempt.map(|number| Refusal::NotLive(AttemptId { task, number }));
            return Err(unknown.unwrap_or(Refusal::NoLiveAttempt(task)));
        }
        let mut able = Vec::new();
        let mut refused = Vec::new();
        for id in live {
            match self.can(id, command) {
                Ok(()) => able.push(id),
                Err(why) => refused.push((id, why)),
            }
        }
        if able.is_empty() {
            return Err(Refusal::Attempts {
                command: command.in_words(),
                attempts: refused,
            });
        }
        for attempt in &able {
            self.local.enter(entry(*attempt, command, &reason));
        }
        Ok(able)
    }

    /// Checks whether a command applies to an attempt.
    fn can(&self, attempt: AttemptId, command: TaskCommand) -> Result<(), OperatorRefusal> {
        let engine = self.local.state().engine();
        match command {
            TaskCommand::Suspend => engine.can_preempt(attempt, Primitive::Suspend),
            TaskCommand::Checkpoint => engine.can_preempt(attempt, Primitive::Checkpoint),
            TaskCommand::Kill => engine.can_preempt(attempt, Primitive::Kill),
            TaskCommand::Resume => engine.can_resume(attempt),
        }
    }

    /// Suspends or resumes a whole job.
    fn command_job(&mut self, request: CommandJob) -> Result<(), Refusal> {
        let CommandJob {
            job,
            command,
            reason,
        } = request;
        self.check_active(job)?;
        let engine = self.local.state().engine();
        let can = match command {
            JobCommand::Suspend => engine.can_pause_job(job, PauseKind::Suspend),
            JobCommand::Resume => engine.can_resume_job(job),
            JobCommand::Hold => engine.can_pause_job(job, PauseKind::Hold),
            JobCommand::Release => engine.can_release_job(job),
        };
        can.map_err(|why| Refusal::Job {
            command: command.in_words(),
            job,
            why,
        })?;
        let pause = |kind, reason| Event::JobPauseRequested {
            job,
            pause: Pause { kind, reason },
        };
        self.local.enter(match command {
            JobCommand::Suspend => pause(PauseKind::Suspend, reason),
            JobCommand::Hold => pause(PauseKind::Hold, reason),
            JobCommand::Resume | JobCommand::Release => Event::JobResumeRequested { job, reason },
        });
        Ok(())
    }

    /// Changes a job's priority or queue if the policy uses it.
    fn change_job(&mut self, request: ChangeJob) -> Result<(), Refusal> {
        let ChangeJob {
            job,
            change,
            reason,
        } = request;
        self.check_active(job)?;
        if let Some(queue) = &change.queue {
            check_name("queue", queue, "--queue").map_err(Refusal::wrong)?;
            self.check_queue(queue)?;
        }
        let can = self.local.state().engine().can_change_job(job, &change);
        can.map_err(|why| {
            let change = change.in_words();
            let scheduler = self.local.state().policy().to_owned();
            Refusal::Change {
                job,
                change,
                scheduler,
                why,
            }
        })?;
        self.local.enter(Event::JobChangeRequested {
            job,
            change,
            reason,
        });
        Ok(())
    }

    fn drain(&mut self, request: DrainWorker) -> Result<(), Refusal> {
        let DrainWorker {
            worker,
            hand_back,
            reason,
        } = request;
        if !self.is_there(worker) {
            return Err(Refusal::NoSuchWorker(worker));
        }
        let event = Event::WorkerDrainRequested {
            worker,
            hand_back,
            grace: None,
        };
        self.local
            .enter_with(Some(event), vec![Extra::DrainAsked { worker, reason }]);
        Ok(())
    }

    fn undrain(&mut self, worker: WorkerId, reason: String) -> Result<(), Refusal> {
        if !self.is_there(worker) {
            return Err(Refusal::NoSuchWorker(worker));
        }
        let can = self.local.state().engine().can_undrain(worker);
        can.map_err(|why| Refusal::Worker { worker, why })?;
        let event = Event::WorkerUndrainRequested { worker };
        self.local
            .enter_with(Some(event), vec![Extra::UndrainAsked { worker, reason }]);
        Ok(())
    }
}

fn entry(attempt: AttemptId, command: TaskCommand, reason: &str) -> Event {
    let reason = reason.to_owned();
    let preempt = |primitive, reason| Event::AttemptPreemptRequested {
        attempt,
        primitive,
        reason,
    };
    match command {
        TaskCommand::Suspend => preempt(Primitive::Suspend, reason),
        TaskCommand::Checkpoint => preempt(Primitive::Checkpoint, reason),
        TaskCommand::Resume => Event::AttemptResumeRequested { attempt, reason },
        TaskCommand::Kill => Event::AttemptKillRequested { attempt, reason },
    }
}
