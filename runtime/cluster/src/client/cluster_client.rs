//! The blocking client: `ask` for requests with one answer, a method for each longer exchange.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::JobLink;
use napreduce_local::world::World;
use napreduce_protocol::requests::{ReadLog, RerunJob};
use napreduce_protocol::{
    FromCoordinator, JobError, JobPlan, JobReport, LogStream, Request, RerunOf,
};
use tokio::runtime::{Builder, Runtime};

use super::run::{self, FollowOptions};
use super::session::{Patience, Session, TryError, exchange, receive};
use super::submission::{Parcel, SubmitOptions, random_token};
use super::{ClientError, ClusterPlace, started};

/// Longer than for other answers, since log pieces come from another host.
const PIECE_DEADLINE: Duration = Duration::from_secs(60);

/// The state of a log that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogRead {
    /// Number of bytes written, starting at the requested offset.
    pub written: u64,
    /// Length of the whole log when it was read.
    pub length: u64,
    /// Whether the attempt had ended, so that the log is complete.
    pub has_ended: bool,
}

/// A connection to the coordinator of a cluster, which reconnects when it breaks. Must not be used inside an
/// async runtime.
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
            .map_err(|source| ClientError::Io {
                doing: "start the runtime",
                source,
            })?;
        let mut session = Session::new(World::real(), place, patience);
        runtime.block_on(session.connect())?;
        Ok(ClusterClient { session, runtime })
    }

    /// Submits a job; uploads its program and files unless the coordinator has them. Inputs and output must
    /// be absolute paths on storage shared by all workers.
    pub fn submit(&mut self, plan: JobPlan, options: &SubmitOptions) -> Result<JobId, ClientError> {
        let token = random_token(&self.session.world())?;
        let parcel = Parcel::pack(plan, options, token, &AtomicBool::new(false))?;
        self.runtime
            .block_on(parcel.send(&mut self.session, &Cell::new(false)))
    }

    /// Submits a job and follows it to its end. The options determine the effect of SIGINT, SIGTERM and
    /// SIGHUP; a second signal ends the program at once.
    pub fn run(
        &mut self,
        plan: JobPlan,
        submit: &SubmitOptions,
        follow: &FollowOptions,
    ) -> Result<JobReport, JobError> {
        self.runtime
            .block_on(run::run(&mut self.session, plan, submit, follow))
    }

    /// Follows a submitted job to its end, as `run` does.
    pub fn follow(&mut self, job: JobId, options: &FollowOptions) -> Result<JobReport, JobError> {
        self.runtime
            .block_on(run::follow(&mut self.session, job, options))
    }

    /// Follows a submitted job for its [`StartedJob`](napreduce_local::StartedJob).
    pub(super) fn follow_linked(
        &mut self,
        job: JobId,
        link: JobLink,
    ) -> Result<JobReport, JobError> {
        self.runtime
            .block_on(started::follow_linked(&mut self.session, job, link))
    }

    /// Sends a request to the coordinator and returns its answer.
    ///
    /// # Errors
    /// Fails if the coordinator refuses or does not answer in time. Returns [`ClientError::Unanswered`] if a
    /// request that is not repeatable may have been carried out.
    pub fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, ClientError> {
        self.runtime.block_on(self.session.ask(request))
    }

    /// Submits the definition of a job again, optionally with another output; returns the new job. The
    /// coordinator supplies the program and side files.
    pub fn rerun(
        &mut self,
        job: JobId,
        output: Option<&Path>,
        reason: &str,
    ) -> Result<JobId, ClientError> {
        let of = RerunOf {
            job,
            reason: reason.to_owned(),
        };
        self.ask(RerunJob {
            token: random_token(&self.session.world())?,
            of,
            output: output.map(Path::to_owned),
        })
    }

    /// Writes the current log of an attempt from `offset` on and returns its state. Resumes after a broken
    /// connection. An offset beyond the end returns the length alone.
    pub fn log(
        &mut self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        into: &mut dyn Write,
    ) -> Result<LogRead, ClientError> {
        let mut read = LogRead::default();
        self.runtime
            .block_on(self.session.retry(async |connection| {
                let request = ReadLog {
                    attempt,
                    stream,
                    offset: offset.saturating_add(read.written),
                };
                let part = exchange(connection, request).await?;
                (read.length, read.has_ended) = (part.length, part.has_ended);
                let mut left = part.bytes;
                while left > 0 {
                    let bytes = match receive(connection, PIECE_DEADLINE).await? {
                        FromCoordinator::Chunk(bytes) if !bytes.0.is_empty() => bytes.0,
                        other => return Err(ClientError::unexpected(&other).into()),
                    };
                    into.write_all(&bytes)
                        .map_err(|error| TryError::Final(ClientError::Output(error)))?;
                    read.written += bytes.len() as u64;
                    left = left.saturating_sub(bytes.len() as u64);
                }
                Ok(())
            }))?;
        Ok(read)
    }
}
