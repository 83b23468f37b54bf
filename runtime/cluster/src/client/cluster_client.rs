//! The blocking client: `ask` for requests that take one answer, a method for each conversation of more messages.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::requests::{ReadLog, RerunJob};
use napreduce_protocol::{FromCoordinator, JobError, JobPlan, JobReport, LogStream, Request, RerunOf};
use tokio::runtime::{Builder, Runtime};

use super::run::{self, FollowOptions};
use super::session::{Patience, Session, Trouble, exchange, receive};
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
/// use napreduce_cluster::{ClusterClient, ClusterPlace, Patience};
/// use napreduce_protocol::requests::ListJobs;
///
/// let place = ClusterPlace::parse("/var/lib/cluster", None)?;
/// let mut client = ClusterClient::connect(place, Patience::default())?;
/// for job in client.ask(ListJobs { limit: 10 })? {
///     println!("{} {}", job.job, job.name);
/// }
/// # Ok::<(), napreduce_cluster::ClientError>(())
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

    /// Asks the coordinator for something and returns its answer.
    ///
    /// # Errors
    /// When it refuses, or does not answer in time. If a request that is not repeatable may have been carried out or
    /// not, that is [`ClientError::Unanswered`].
    pub fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, ClientError> {
        self.runtime.block_on(self.session.ask(request))
    }

    /// Submits the definition of a job again, with another output if one is given; returns the new job. The
    /// program and the files that it took along come from the coordinator.
    pub fn rerun(&mut self, job: JobId, output: Option<&Path>, reason: &str) -> Result<JobId, ClientError> {
        let of = RerunOf { job, reason: reason.to_owned() };
        self.ask(RerunJob { token: random_token()?, of, output: output.map(Path::to_owned) })
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
            let request = ReadLog { attempt, stream, offset: offset.saturating_add(read.written) };
            let part = exchange(connection, request).await?;
            (read.length, read.has_ended) = (part.length, part.has_ended);
            let mut left = part.bytes;
            while left > 0 {
                let bytes = match receive(connection, PIECE_DEADLINE).await? {
                    FromCoordinator::Chunk(bytes) if !bytes.0.is_empty() => bytes.0,
                    other => return Err(ClientError::nonsense(&other).into()),
                };
                into.write_all(&bytes).map_err(|error| Trouble::Final(ClientError::Output(error)))?;
                read.written += bytes.len() as u64;
                left = left.saturating_sub(bytes.len() as u64);
            }
            Ok(())
        }))?;
        Ok(read)
    }
}
