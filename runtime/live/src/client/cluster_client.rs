//! The client itself: one method for each thing that can be asked, all of them blocking.
//!
//! Owns the small runtime the conversation runs on. Does not own patience (`session`) nor signals (`run`).

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use napreduce_engine::{AttemptId, JobChange, JobId, Reason, TaskId, WorkerId};
use napreduce_protocol::{
    ClusterWindow, CommandOutcome, FromCoordinator, JobCommand, JobDetail, JobError, JobPlan, JobReport,
    JobSummary, LogStream, QueueListing, RerunOf, TaskCommand, TaskSummary, ToCoordinator, WorkerSummary,
};
use tokio::runtime::{Builder, Runtime};

use super::error::{expect_answer, expect_done};
use super::run::{self, FollowOptions};
use super::session::{Patience, Session, Trouble, ask, receive};
use super::submission::{Parcel, SubmitOptions, random_token};
use super::{ClientError, ClusterPlace};

/// A piece of a log comes from another host.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);

/// What there was of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogRead {
    /// Bytes that were written, from the offset on.
    pub written: u64,
    /// Bytes of the whole log when it was read.
    pub length: u64,
    /// Whether its attempt had ended by then: it will never be longer.
    pub has_ended: bool,
}

/// A connection to the coordinator of a cluster, made again when it breaks. Must not be used inside
/// an async runtime.
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

    /// Hands in a job; its program and files are sent unless the coordinator has them. Inputs and output must
    /// be absolute and on storage that every worker sees.
    pub fn submit(&mut self, plan: JobPlan, options: &SubmitOptions) -> Result<JobId, ClientError> {
        let parcel = Parcel::pack(plan, options, &AtomicBool::new(false))?;
        self.runtime.block_on(parcel.send(&mut self.session, &Cell::new(false)))
    }

    /// Submits a job and follows it to its end. Meanwhile SIGINT, SIGTERM and SIGHUP do as the options say; a
    /// second one ends the program at once.
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
        expect_answer!(self.ask(&ToCoordinator::Jobs { limit })?, FromCoordinator::Jobs(jobs) => jobs)
    }

    /// Everything about a job.
    pub fn job(&mut self, job: JobId) -> Result<JobDetail, ClientError> {
        expect_answer!(self.ask(&ToCoordinator::Job { job })?, FromCoordinator::Job(detail) => *detail)
    }

    /// Ends a job; returns when that is decided.
    pub fn kill_job(&mut self, job: JobId, reason: &str) -> Result<(), ClientError> {
        let request = ToCoordinator::KillJob { job, reason: reason.to_owned() };
        expect_done(self.ask(&request)?)
    }

    /// The tasks of one job, or the live ones of all.
    pub fn tasks(&mut self, job: Option<JobId>) -> Result<Vec<TaskSummary>, ClientError> {
        expect_answer!(self.ask(&ToCoordinator::Tasks { job })?, FromCoordinator::Tasks(tasks) => tasks)
    }

    /// Has something done to the live attempts of a task that it can be done to, or to one attempt; which
    /// ones that are. Returns when it is ordered: whether it is done is what [`outcomes`](Self::outcomes)
    /// says. Asked once only: a second time it would meet the next attempt.
    pub fn command_task(
        &mut self,
        task: TaskId,
        attempt: Option<u32>,
        command: TaskCommand,
        reason: &str,
    ) -> Result<Vec<AttemptId>, ClientError> {
        let request = ToCoordinator::CommandTask { task, attempt, command, reason: reason.to_owned() };
        expect_answer!(self.ask_once(&request)?, FromCoordinator::Commanded { attempts } => attempts)
    }

    /// What has become of a command so far, for these attempts of a job, or for all that are live.
    pub fn outcomes(
        &mut self,
        job: JobId,
        attempts: &[AttemptId],
        command: TaskCommand,
    ) -> Result<Vec<(AttemptId, CommandOutcome)>, ClientError> {
        let request = ToCoordinator::Outcomes { job, attempts: attempts.to_owned(), command };
        expect_answer!(self.ask(&request)?, FromCoordinator::Outcomes(outcomes) => outcomes)
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
        expect_done(self.ask_once(&request)?)
    }

    /// Hands in what was submitted as a job once more, with another output if one is said; the new job. The
    /// program and the files that it took along come from the coordinator.
    pub fn rerun(&mut self, job: JobId, output: Option<&Path>, reason: &str) -> Result<JobId, ClientError> {
        let of = RerunOf { job, reason: reason.to_owned() };
        let request = ToCoordinator::Rerun { token: random_token()?, of, output: output.map(Path::to_owned) };
        expect_answer!(self.ask(&request)?, FromCoordinator::Submitted { job } => job)
    }

    /// Gives a job another priority or queue; returns when it has them.
    pub fn change_job(&mut self, job: JobId, change: &JobChange, reason: &str) -> Result<(), ClientError> {
        let request = ToCoordinator::ChangeJob { job, change: change.clone(), reason: reason.to_owned() };
        expect_done(self.ask_once(&request)?)
    }

    /// The queues that the scheduler tells apart, with what is used and wanted in each.
    pub fn queues(&mut self) -> Result<QueueListing, ClientError> {
        expect_answer!(self.ask(&ToCoordinator::Queues)?, FromCoordinator::Queues(queues) => queues)
    }

    /// Why a job, or a task of it, does not run; the most important reason first.
    pub fn explain(&mut self, job: JobId, task: Option<TaskId>) -> Result<Vec<Reason>, ClientError> {
        let answer = self.ask(&ToCoordinator::Explain { job, task })?;
        expect_answer!(answer, FromCoordinator::Explained { reasons } => reasons)
    }

    /// How queues and workers were between two moments, in milliseconds since 1970.
    pub fn window(&mut self, from_millis: u64, until_millis: u64) -> Result<ClusterWindow, ClientError> {
        let answer = self.ask(&ToCoordinator::Window { from_millis, until_millis })?;
        expect_answer!(answer, FromCoordinator::Window(window) => *window)
    }

    /// The workers.
    pub fn workers(&mut self) -> Result<Vec<WorkerSummary>, ClientError> {
        expect_answer!(self.ask(&ToCoordinator::Workers)?, FromCoordinator::Workers(workers) => workers)
    }

    /// Has a worker finish what it runs, or hand it back, and leave; returns when it gets nothing more to do.
    pub fn drain(&mut self, worker: WorkerId, hand_back: bool, reason: &str) -> Result<(), ClientError> {
        expect_done(self.ask(&ToCoordinator::Drain { worker, hand_back, reason: reason.to_owned() })?)
    }

    /// Has a worker that drains stay; returns when it may get tasks again.
    pub fn undrain(&mut self, worker: WorkerId, reason: &str) -> Result<(), ClientError> {
        let request = ToCoordinator::Undrain { worker, reason: reason.to_owned() };
        expect_done(self.ask_once(&request)?)
    }

    /// Writes the log of an attempt from `offset` on, as it is now, and says how much there was. When the
    /// connection breaks it goes on where it was. An offset behind the end asks for the length alone.
    pub fn log(
        &mut self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        into: &mut dyn Write,
    ) -> Result<LogRead, ClientError> {
        let mut read = LogRead::default();
        self.runtime.block_on(self.session.persist(async |connection| {
            let request = ToCoordinator::Log { attempt, stream, offset: offset.saturating_add(read.written) };
            let mut left;
            (left, read.length, read.has_ended) = expect_answer!(
                ask(connection, &request).await?,
                FromCoordinator::LogLength { bytes, length, has_ended } => (bytes, length, has_ended)
            )?;
            while left > 0 {
                let bytes = expect_answer!(
                    receive(connection, PIECE_DEADLINE).await?,
                    FromCoordinator::Chunk { bytes } if !bytes.0.is_empty() => bytes.0
                )?;
                into.write_all(&bytes).map_err(|error| Trouble::Final(ClientError::Output(error)))?;
                read.written += bytes.len() as u64;
                left = left.saturating_sub(bytes.len() as u64);
            }
            Ok(())
        }))?;
        Ok(read)
    }

    fn ask(&mut self, request: &ToCoordinator) -> Result<FromCoordinator, ClientError> {
        self.runtime.block_on(self.session.ask(request))
    }

    /// For what must not happen twice.
    fn ask_once(&mut self, request: &ToCoordinator) -> Result<FromCoordinator, ClientError> {
        self.runtime.block_on(self.session.ask_once(request))
    }
}
