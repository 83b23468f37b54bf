//! The client itself: one method for each thing that can be asked, all of them blocking.
//!
//! Owns the small runtime the conversation runs on. Does not own patience (`session`) nor signals (`run`).

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use napreduce_core::{AttemptId, JobId, TaskId, WorkerId};
use napreduce_protocol::{
    CommandOutcome, FromCoordinator, JobCommand, JobDetail, JobError, JobPlan, JobReport, JobSummary,
    LogStream, TaskCommand, TaskSummary, ToCoordinator, WorkerSummary,
};
use tokio::runtime::{Builder, Runtime};

use super::run::{self, FollowOptions};
use super::session::{Patience, Session, Trouble, ask, receive};
use super::submission::{Parcel, SubmitOptions};
use super::{ClientError, ClusterPlace};

/// A piece of a log comes from another host.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);

/// A connection to the coordinator of a cluster, made again when it breaks. Must not be used inside an async runtime.
///
/// ```no_run
/// use napreduce_live::{ClusterClient, ClusterPlace, Patience};
///
/// let place = ClusterPlace::parse("/var/lib/cluster", None)?;
/// let mut client = ClusterClient::connect(place, Patience::default())?;
/// for job in client.jobs(10)? {
///     println!("{} {}", job.job, job.name);
/// }
/// # Ok::<(), napreduce_live::ClientError>(())
/// ```
#[derive(Debug)]
pub struct ClusterClient {
    session: Session,
    runtime: Runtime,
}

impl ClusterClient {
    /// Connects to a coordinator, within the patience's limits.
    pub fn connect(place: ClusterPlace, patience: Patience) -> Result<ClusterClient, ClientError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ClientError::Io { doing: "start the runtime", source })?;
        let mut session = Session::new(place, patience);
        runtime.block_on(session.connect())?;
        Ok(ClusterClient { session, runtime })
    }

    /// Hands in a job; its program and files are sent unless the coordinator has them. Inputs and output must be absolute
    /// and on storage that every worker sees.
    pub fn submit(&mut self, plan: JobPlan, options: &SubmitOptions) -> Result<JobId, ClientError> {
        let parcel = Parcel::pack(plan, options, &AtomicBool::new(false))?;
        self.runtime.block_on(parcel.send(&mut self.session, &Cell::new(false)))
    }

    /// Submits a job and follows it to its end. Meanwhile SIGINT, SIGTERM and SIGHUP do as the options say; a second one
    /// ends the program at once.
    pub fn run(
        &mut self,
        plan: JobPlan,
        submit: &SubmitOptions,
        follow: &FollowOptions,
    ) -> Result<JobReport, JobError> {
        self.runtime.block_on(run::run(&mut self.session, plan, submit, follow))
    }

    /// Follows a job to its end, likewise.
    pub fn follow(&mut self, job: JobId, options: &FollowOptions) -> Result<JobReport, JobError> {
        self.runtime.block_on(run::follow(&mut self.session, job, options))
    }

    /// The running jobs, then those in history, newest first, at most `limit`.
    pub fn jobs(&mut self, limit: u32) -> Result<Vec<JobSummary>, ClientError> {
        match self.ask(&ToCoordinator::Jobs { limit })? {
            FromCoordinator::Jobs(jobs) => Ok(jobs),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// Everything about a job.
    pub fn job(&mut self, job: JobId) -> Result<JobDetail, ClientError> {
        match self.ask(&ToCoordinator::Job { job })? {
            FromCoordinator::Job(detail) => Ok(*detail),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// Ends a job; returns when that is decided.
    pub fn kill_job(&mut self, job: JobId, reason: &str) -> Result<(), ClientError> {
        let request = ToCoordinator::KillJob { job, reason: reason.to_owned() };
        done(self.ask(&request)?)
    }

    /// The tasks of one job, or the live ones of all.
    pub fn tasks(&mut self, job: Option<JobId>) -> Result<Vec<TaskSummary>, ClientError> {
        match self.ask(&ToCoordinator::Tasks { job })? {
            FromCoordinator::Tasks(tasks) => Ok(tasks),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// Has something done to the live attempts of a task that it can be done to, or to one attempt; which ones that
    /// are. Returns when it is ordered: whether it is done is what [`outcomes`](Self::outcomes) says. Asked once only: a
    /// second time it would meet the next attempt.
    pub fn command_task(
        &mut self,
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: &str,
    ) -> Result<Vec<AttemptId>, ClientError> {
        let request = ToCoordinator::CommandTask { task, attempt, command, reason: reason.to_owned() };
        match self.runtime.block_on(self.session.ask_once(&request))? {
            FromCoordinator::Commanded { attempts } => Ok(attempts),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// What has become of a command so far, for these attempts of a job, or for all that are live.
    pub fn outcomes(
        &mut self,
        job: JobId,
        attempts: &[AttemptId],
        command: TaskCommand,
    ) -> Result<Vec<(AttemptId, CommandOutcome)>, ClientError> {
        match self.ask(&ToCoordinator::Outcomes { job, attempts: attempts.to_owned(), command })? {
            FromCoordinator::Outcomes(outcomes) => Ok(outcomes),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// The same for one attempt.
    pub fn preempt(
        &mut self,
        attempt: AttemptId,
        command: TaskCommand,
        reason: &str,
    ) -> Result<(), ClientError> {
        self.command_task(attempt.task, Some(attempt.number), command, reason).map(drop)
    }

    /// Suspends a job as a whole, or lets it go on; returns when that is ordered, as above.
    pub fn command_job(&mut self, job: JobId, command: JobCommand, reason: &str) -> Result<(), ClientError> {
        let request = ToCoordinator::CommandJob { job, command, reason: reason.to_owned() };
        done(self.runtime.block_on(self.session.ask_once(&request))?)
    }

    /// Why a job, or a task of it, does not run.
    pub fn explain(&mut self, job: JobId, task: Option<TaskId>) -> Result<Vec<String>, ClientError> {
        match self.ask(&ToCoordinator::Explain { job, task })? {
            FromCoordinator::Explained { lines } => Ok(lines),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// The workers.
    pub fn workers(&mut self) -> Result<Vec<WorkerSummary>, ClientError> {
        match self.ask(&ToCoordinator::Workers)? {
            FromCoordinator::Workers(workers) => Ok(workers),
            other => Err(ClientError::nonsense(&other)),
        }
    }

    /// Has a worker finish what it runs, or hand it back, and leave; returns when it gets nothing more to do.
    pub fn drain(&mut self, worker: WorkerId, hand_back: bool) -> Result<(), ClientError> {
        let answer = self.ask(&ToCoordinator::Drain { worker, hand_back })?;
        done(answer)
    }

    /// Writes the log of an attempt from `offset` on; how many bytes there were. When the connection breaks it goes on
    /// where it was.
    pub fn log(
        &mut self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        into: &mut dyn Write,
    ) -> Result<u64, ClientError> {
        let mut written = 0;
        self.runtime.block_on(self.session.persist(async |connection| {
            let request = ToCoordinator::Log { attempt, stream, offset: offset + written };
            let mut left = match ask(connection, &request).await? {
                FromCoordinator::LogLength { bytes } => bytes,
                other => return Err(ClientError::nonsense(&other).into()),
            };
            while left > 0 {
                let bytes = match receive(connection, PIECE_DEADLINE).await? {
                    FromCoordinator::Chunk { bytes } if !bytes.0.is_empty() => bytes.0,
                    other => return Err(ClientError::nonsense(&other).into()),
                };
                into.write_all(&bytes).map_err(|error| Trouble::Final(ClientError::Output(error)))?;
                written += bytes.len() as u64;
                left = left.saturating_sub(bytes.len() as u64);
            }
            Ok(())
        }))?;
        Ok(written)
    }

    fn ask(&mut self, request: &ToCoordinator) -> Result<FromCoordinator, ClientError> {
        self.runtime.block_on(self.session.ask(request))
    }
}

fn done(answer: FromCoordinator) -> Result<(), ClientError> {
    match answer {
        FromCoordinator::Done => Ok(()),
        other => Err(ClientError::nonsense(&other)),
    }
}
