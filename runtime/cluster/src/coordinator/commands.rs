//! Commands of operators on jobs and attempts: checks and journal entries. The engine applies the entries.

use napreduce_engine::{AttemptId, Event, JobId, OperatorRefusal, Pause, PauseKind, Primitive};
use napreduce_protocol::requests::{ChangeJob, CommandJob, CommandTask, KillJob};
use napreduce_protocol::{JobCommand, TaskCommand, check_name};

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::{Handle, check_reason};

impl Handle for KillJob {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let KillJob { job, reason } = self;
        check_reason(&reason)?;
        if coordinator.local.kill_ending(job, &reason) {
            return Ok(());
        }
        coordinator.check_active(job)?;
        coordinator
            .local
            .enter(Event::JobKillRequested { job, reason });
        Ok(())
    }
}

/// Applies a command to the named attempt, or to all suitable live attempts of a task.
impl Handle for CommandTask {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<Vec<AttemptId>, Refusal> {
        let CommandTask {
            task,
            attempt,
            command,
            reason,
        } = self;
        check_reason(&reason)?;
        coordinator.check_active(task.job)?;
        let view = coordinator.local.state().view();
        let job = view.job(task.job).ok_or(Refusal::NoSuchJob(task.job))?;
        if job.task_state(task).is_none() {
            return Err(Refusal::NoSuchTask(task));
        }
        let mut named: Vec<AttemptId> = job.attempts().filter(|live| live.task == task).collect();
        if command == TaskCommand::Resume {
            named.extend(job.held_attempt(task));
        }
        if let Some(number) = attempt {
            named.retain(|one| one.number == number);
        }
        if named.is_empty() {
            return Err(match attempt {
                Some(number) => Refusal::NotLive(AttemptId { task, number }),
                None => Refusal::NoLiveAttempt(task),
            });
        }
        let mut able = Vec::new();
        let mut refused = Vec::new();
        for id in named {
            match coordinator.can_command(id, command) {
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
            let event = task_command_event(*attempt, command, reason.clone());
            coordinator.local.enter(event);
        }
        Ok(able)
    }
}

/// Suspends or resumes a whole job.
impl Handle for CommandJob {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let CommandJob {
            job,
            command,
            reason,
        } = self;
        check_reason(&reason)?;
        coordinator.check_active(job)?;
        let engine = coordinator.local.state().engine();
        let checked = match command {
            JobCommand::Suspend => engine.can_pause_job(job, PauseKind::Suspend),
            JobCommand::Resume => engine.can_resume_job(job),
            JobCommand::Hold => engine.can_pause_job(job, PauseKind::Hold),
            JobCommand::Release => engine.can_release_job(job),
        };
        checked.map_err(|why| Refusal::Job {
            command: command.in_words(),
            job,
            why,
        })?;
        let pause = |kind, reason| Event::JobPauseRequested {
            job,
            pause: Pause { kind, reason },
        };
        coordinator.local.enter(match command {
            JobCommand::Suspend => pause(PauseKind::Suspend, reason),
            JobCommand::Hold => pause(PauseKind::Hold, reason),
            JobCommand::Resume | JobCommand::Release => Event::JobResumeRequested { job, reason },
        });
        Ok(())
    }
}

/// Changes a job's priority or queue if the policy uses it.
impl Handle for ChangeJob {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<(), Refusal> {
        let ChangeJob {
            job,
            change,
            reason,
        } = self;
        check_reason(&reason)?;
        coordinator.check_active(job)?;
        if let Some(queue) = &change.queue {
            check_name("queue", queue, "--queue").map_err(Refusal::wrong)?;
            coordinator.check_queue(queue)?;
        }
        let state = coordinator.local.state();
        if let Err(why) = state.engine().can_change_job(job, &change) {
            return Err(Refusal::Change {
                job,
                change: change.in_words(),
                scheduler: state.policy().to_owned(),
                why,
            });
        }
        coordinator.local.enter(Event::JobChangeRequested {
            job,
            change,
            reason,
        });
        Ok(())
    }
}

impl ClusterCoordinator {
    /// Refuses commands to jobs that have ended or never existed.
    fn check_active(&self, job: JobId) -> Result<(), Refusal> {
        if self.local.state().view().job(job).is_some() {
            return Ok(());
        }
        if self.local.state().jobs().contains_key(&job) || self.history.has(job) {
            return Err(Refusal::JobEnded(job));
        }
        Err(Refusal::NoSuchJob(job))
    }

    /// Checks whether a command applies to an attempt.
    fn can_command(&self, attempt: AttemptId, command: TaskCommand) -> Result<(), OperatorRefusal> {
        let engine = self.local.state().engine();
        match command {
            TaskCommand::Suspend => engine.can_preempt(attempt, Primitive::Suspend),
            TaskCommand::Checkpoint => engine.can_preempt(attempt, Primitive::Checkpoint),
            TaskCommand::Kill => engine.can_preempt(attempt, Primitive::Kill),
            TaskCommand::Resume => engine.can_resume(attempt),
        }
    }
}

fn task_command_event(attempt: AttemptId, command: TaskCommand, reason: String) -> Event {
    match command {
        TaskCommand::Suspend => Event::AttemptPreemptRequested {
            attempt,
            primitive: Primitive::Suspend,
            reason,
        },
        TaskCommand::Checkpoint => Event::AttemptPreemptRequested {
            attempt,
            primitive: Primitive::Checkpoint,
            reason,
        },
        TaskCommand::Resume => Event::AttemptResumeRequested { attempt, reason },
        TaskCommand::Kill => Event::AttemptKillRequested { attempt, reason },
    }
}
