//! The operator of a run: gives commands as `nap` does, and remembers what was answered.

use std::time::Duration;

use napreduce_cluster::{AsyncClient, ClientError, ClusterPlace};
use napreduce_engine::{AttemptId, AttemptState, JobId};
use napreduce_local::world::World;
use napreduce_protocol::requests::{
    CommandJob, CommandTask, GetOutcomes, KillJob, ListJobs, ListTasks,
};
use napreduce_protocol::{CommandOutcome, JobCommand, LiveAttempt, TaskCommand};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until};

use crate::chance::Chance;
use crate::client::patience;
use crate::facts::Facts;
use crate::log::Log;
use crate::plan::{Command, PlannedCommand};
use crate::reactions::Subject;

/// Time in which a launch that was ordered has arrived at its worker and been carried out.
const LAUNCH_TIME_MAX: Duration = Duration::from_secs(60);
/// Pause between two looks at a command that is carried out, and how many there are.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
const LOOKS_MAX: u32 = 20;
/// Interval of commands that let everything run, once the faults have stopped.
const LET_RUN_INTERVAL: Duration = Duration::from_secs(30);
/// More jobs than a run has.
const JOBS_MAX: u32 = 100;
const REASON: &str = "drawn by the operator";

/// The operator, before the first command.
pub struct Operator {
    pub world: World,
    pub place: ClusterPlace,
    pub commands: Vec<PlannedCommand>,
    pub seed: u64,
    pub began: Instant,
    pub facts: Facts,
    pub log: Log,
    /// After this time, everything is to run.
    pub until: Instant,
}

impl Operator {
    /// Gives commands while there are faults; then lets everything run, for ever.
    pub async fn run(self) {
        if let Some(shift) = self.begin().await {
            shift.run().await;
        }
    }

    /// Gives the commands that arrive, at once.
    pub async fn respond(self, mut arriving: UnboundedReceiver<(Command, Subject)>) {
        let Some(mut shift) = self.begin().await else {
            return;
        };
        while let Some((command, subject)) = arriving.recv().await {
            if let Err(error) = shift.respond(command, subject).await {
                shift.log.event("operator", error);
            }
        }
    }

    async fn begin(self) -> Option<Shift> {
        let Operator {
            world,
            place,
            commands,
            seed,
            began,
            facts,
            log,
            until,
        } = self;
        match AsyncClient::connect(world, place, patience()).await {
            Ok(client) => Some(Shift {
                client,
                commands,
                seed,
                began,
                facts,
                log,
                until,
                last: None,
            }),
            Err(error) => {
                log.violation("operator", error);
                None
            }
        }
    }
}

/// The operator at work.
struct Shift {
    client: AsyncClient,
    commands: Vec<PlannedCommand>,
    seed: u64,
    began: Instant,
    facts: Facts,
    log: Log,
    until: Instant,
    /// The attempt of the last command.
    last: Option<AttemptId>,
}

/// The action of the operator after a suspend.
enum After {
    /// Waits until it is done, and expects the attempt to stay suspended.
    Wait,
    /// Goes on with the next command.
    GoOn,
}

impl Shift {
    async fn run(mut self) {
        for planned in std::mem::take(&mut self.commands) {
            sleep_until(self.began + planned.at).await;
            if Instant::now() >= self.until {
                break;
            }
            if let Err(error) = self.act(&planned).await {
                self.log.event("operator", error);
            }
        }
        sleep_until(self.until).await;
        loop {
            // Some jobs are submitted late, and some suspends are under way.
            if let Err(error) = self.let_run().await {
                self.log.event("operator", error);
            }
            sleep(LET_RUN_INTERVAL).await;
        }
    }

    async fn jobs(&mut self) -> Result<Vec<JobId>, ClientError> {
        let listed = self.client.ask(ListJobs { limit: JOBS_MAX }).await?;
        let mut jobs = Vec::new();
        for job in listed {
            if !job.phase.has_ended() {
                jobs.push(job.job);
            }
        }
        Ok(jobs)
    }

    async fn live(&mut self) -> Result<Vec<LiveAttempt>, ClientError> {
        let tasks = self.client.ask(ListTasks { job: None }).await?;
        let mut live = Vec::new();
        for task in tasks {
            live.extend(task.live);
        }
        Ok(live)
    }

    /// Gives a command to a drawn attempt or job, if there is one.
    async fn act(&mut self, planned: &PlannedCommand) -> Result<(), ClientError> {
        let mut chance = Chance::new(self.seed, &format!("command-{}", planned.number));
        let is_of_attempt = matches!(
            planned.command,
            Command::SuspendAttempt
                | Command::CheckpointAttempt
                | Command::KillAttempt
                | Command::ResumeAttempt
        );
        if is_of_attempt {
            let Some(attempt) = self.pick_attempt(&mut chance).await? else {
                return Ok(());
            };
            let after = if chance.happens(500) {
                After::Wait
            } else {
                After::GoOn
            };
            return match planned.command {
                Command::SuspendAttempt => self.suspend(attempt, after).await,
                Command::CheckpointAttempt => self.command(attempt, TaskCommand::Checkpoint).await,
                Command::KillAttempt => self.command(attempt, TaskCommand::Kill).await,
                _ => self.command(attempt, TaskCommand::Resume).await,
            };
        }
        let jobs = self.jobs().await?;
        let Some(job) = chance.pick(&jobs).copied() else {
            return Ok(());
        };
        match planned.command {
            Command::SuspendJob => self.pause(job, JobCommand::Suspend).await,
            Command::HoldJob => self.pause(job, JobCommand::Hold).await,
            Command::ResumeJob => self.resume(job).await,
            _ => self.kill(job).await,
        }
    }

    /// Gives a command at a moment that was about this attempt or job.
    async fn respond(&mut self, command: Command, subject: Subject) -> Result<(), ClientError> {
        let (attempt, job) = match subject {
            Subject::Attempt(attempt, _) => (Some(attempt), attempt.task.job),
            Subject::Job(job) => (None, job),
            Subject::Client(_) => return Ok(()),
        };
        let Some(attempt) = attempt.filter(|_| command != Command::KillJob) else {
            return self.kill(job).await;
        };
        match command {
            Command::SuspendAttempt => self.suspend(attempt, After::GoOn).await,
            Command::CheckpointAttempt => self.command(attempt, TaskCommand::Checkpoint).await,
            Command::KillAttempt => self.command(attempt, TaskCommand::Kill).await,
            Command::KillRivals => self.kill_rivals(attempt).await,
            _ => self.command(attempt, TaskCommand::Resume).await,
        }
    }

    /// Kills the other attempts of a task.
    async fn kill_rivals(&mut self, attempt: AttemptId) -> Result<(), ClientError> {
        for live in self.live().await? {
            if live.attempt.task == attempt.task && live.attempt != attempt {
                self.command(live.attempt, TaskCommand::Kill).await?;
            }
        }
        Ok(())
    }

    /// Draws a live attempt, more often than not that of the last command.
    async fn pick_attempt(
        &mut self,
        chance: &mut Chance,
    ) -> Result<Option<AttemptId>, ClientError> {
        let live = self.live().await?;
        let last = live
            .iter()
            .map(|live| live.attempt)
            .find(|attempt| Some(*attempt) == self.last);
        if last.is_none() || chance.happens(400) {
            self.last = chance.pick(&live).map(|live| live.attempt);
        }
        Ok(self.last)
    }

    /// Gives a command other than a suspend to an attempt.
    async fn command(
        &mut self,
        attempt: AttemptId,
        command: TaskCommand,
    ) -> Result<(), ClientError> {
        // It may be carried out before it is answered.
        self.facts.release(attempt);
        self.log
            .event("operator", format_args!("{command} {attempt}"));
        self.client.ask(task_command(attempt, command)).await?;
        Ok(())
    }

    /// Suspends an attempt, and notes when that is done if it waits for it.
    async fn suspend(&mut self, attempt: AttemptId, after: After) -> Result<(), ClientError> {
        let command = TaskCommand::Suspend;
        let releases = self.facts.releases_of(attempt);
        self.log
            .event("operator", format_args!("{command} {attempt}"));
        self.client.ask(task_command(attempt, command)).await?;
        if matches!(after, After::GoOn) {
            return Ok(());
        }
        for _ in 0..LOOKS_MAX {
            sleep(LOOK_PAUSE).await;
            let asked = GetOutcomes {
                job: attempt.task.job,
                attempts: vec![attempt],
                command,
            };
            let outcomes = self.client.ask(asked).await?;
            match outcomes.first() {
                Some((_, CommandOutcome::Pending | CommandOutcome::Queued)) => {}
                Some((_, CommandOutcome::Done)) => {
                    self.log
                        .event("operator", format_args!("{attempt} is suspended"));
                    self.facts.hold(attempt, releases);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    async fn pause(&mut self, job: JobId, command: JobCommand) -> Result<(), ClientError> {
        self.log.event("operator", format_args!("{command} {job}"));
        self.client.ask(job_command(job, command)).await?;
        self.facts.pause(job, Instant::now() + LAUNCH_TIME_MAX);
        Ok(())
    }

    async fn resume(&mut self, job: JobId) -> Result<(), ClientError> {
        // It may be carried out before it is answered.
        self.facts.resume(job);
        self.log.event("operator", format_args!("resume {job}"));
        self.client.ask(job_command(job, JobCommand::Resume)).await
    }

    async fn kill(&mut self, job: JobId) -> Result<(), ClientError> {
        self.facts.resume(job);
        self.facts.note_killed(job);
        self.log.event("operator", format_args!("kill {job}"));
        let reason = REASON.to_owned();
        self.client.ask(KillJob { job, reason }).await?;
        self.facts.note_kill_answered(job);
        Ok(())
    }

    /// Resumes everything that is suspended or paused.
    async fn let_run(&mut self) -> Result<(), ClientError> {
        for job in self.jobs().await? {
            self.facts.resume(job);
            // Refused if nothing of it is suspended.
            let _ = self.client.ask(job_command(job, JobCommand::Resume)).await;
        }
        for live in self.live().await? {
            if live.state != AttemptState::Suspended {
                continue;
            }
            self.facts.release(live.attempt);
            let command = task_command(live.attempt, TaskCommand::Resume);
            // Refused if it has ended meanwhile.
            let _ = self.client.ask(command).await;
        }
        Ok(())
    }
}

fn task_command(attempt: AttemptId, command: TaskCommand) -> CommandTask {
    CommandTask {
        task: attempt.task,
        attempt: Some(attempt.number),
        command,
        reason: REASON.to_owned(),
    }
}

fn job_command(job: JobId, command: JobCommand) -> CommandJob {
    CommandJob {
        job,
        command,
        reason: REASON.to_owned(),
    }
}
