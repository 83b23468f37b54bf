//! The client for programs that are asynchronous themselves.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::world::World;
use napreduce_protocol::requests::{ReadLog, RerunJob};
use napreduce_protocol::{
    FromCoordinator, JobEnd, JobPlan, JobProgress, LogStream, Request, RerunOf,
};

use super::run::until_end;
use super::session::{Patience, Session, TryError, exchange, receive};
use super::submission::{Parcel, SubmitOptions, random_token};
use super::{ClientError, ClusterPlace};

/// Limit on the wait for the next chunk of a log, which the coordinator reads from another host.
const CHUNK_DEADLINE: Duration = Duration::from_secs(60);

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

/// A connection to the coordinator of a cluster, which reconnects when it breaks. If the future of a call is dropped,
/// the connection is closed, and the request may have been carried out.
#[derive(Debug)]
pub struct AsyncClient {
    pub(super) session: Session,
}

impl AsyncClient {
    /// Connects to a coordinator, within the patience's limits.
    ///
    /// # Errors
    /// Fails if no coordinator answers or lets this client in.
    pub async fn connect(
        world: World,
        place: ClusterPlace,
        patience: Patience,
    ) -> Result<AsyncClient, ClientError> {
        let mut session = Session::new(world, place, patience);
        session.connect().await?;
        Ok(AsyncClient { session })
    }

    /// Submits a job; uploads its program and files unless the coordinator has them. Inputs and output must
    /// be absolute paths on storage shared by all workers.
    ///
    /// # Errors
    /// Fails if the plan is invalid, a file cannot be read, or the coordinator refuses the job.
    pub async fn submit(
        &mut self,
        plan: JobPlan,
        options: &SubmitOptions,
    ) -> Result<JobId, ClientError> {
        let world = self.session.world();
        let token = random_token(&world)?;
        let options = options.clone();
        let packing = world.tasks.blocking(move || {
            let never_cancelled = AtomicBool::new(false);
            Parcel::pack(plan, &options, token, &never_cancelled)
        });
        let packed = packing.await.map_err(|error| ClientError::Io {
            doing: "read the program",
            source: error.into(),
        })?;
        let parcel = packed?;
        // Read only by callers that interrupt a submission.
        let handed_in = Cell::new(false);
        parcel.send(&mut self.session, &handed_in).await
    }

    /// Follows a job to its end, and shows its progress.
    ///
    /// # Errors
    /// Fails if the coordinator does not know the job, or does not answer for long.
    pub async fn follow(
        &mut self,
        job: JobId,
        show: impl FnMut(&JobProgress),
    ) -> Result<JobEnd, ClientError> {
        until_end(&mut self.session, job, show).await
    }

    /// Sends a request to the coordinator and returns its answer.
    ///
    /// # Errors
    /// Fails if the coordinator refuses or does not answer in time. Returns [`ClientError::Unanswered`] if a
    /// request that is not repeatable may have been carried out.
    pub async fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, ClientError> {
        self.session.ask(request).await
    }

    /// Submits the definition of a job again, optionally with another output; returns the new job. The
    /// coordinator supplies the program and side files.
    ///
    /// # Errors
    /// As [`AsyncClient::ask`].
    pub async fn rerun(
        &mut self,
        job: JobId,
        output: Option<&Path>,
        reason: &str,
    ) -> Result<JobId, ClientError> {
        let of = RerunOf {
            job,
            reason: reason.to_owned(),
        };
        let token = random_token(&self.session.world())?;
        self.ask(RerunJob {
            token,
            of,
            output: output.map(Path::to_owned),
        })
        .await
    }

    /// Writes the current log of an attempt from `offset` on and returns its state. Resumes after a broken
    /// connection. An offset beyond the end returns the length alone.
    ///
    /// # Errors
    /// Fails if there is no such log, its worker cannot be reached, or `into` cannot be written.
    pub async fn log(
        &mut self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        into: &mut dyn Write,
    ) -> Result<LogRead, ClientError> {
        let mut read = LogRead::default();
        let reading = self.session.retry(async |connection| {
            let request = ReadLog {
                attempt,
                stream,
                offset: offset.saturating_add(read.written),
            };
            let part = exchange(connection, request).await?;
            read.length = part.length;
            read.has_ended = part.has_ended;
            let mut left = part.bytes;
            while left > 0 {
                // An empty chunk would make no progress.
                let bytes = match receive(connection, CHUNK_DEADLINE).await? {
                    FromCoordinator::Chunk(bytes) if !bytes.0.is_empty() => bytes.0,
                    other => return Err(ClientError::unexpected(&other).into()),
                };
                into.write_all(&bytes)
                    .map_err(|error| TryError::Final(ClientError::Output(error)))?;
                read.written += bytes.len() as u64;
                left = left.saturating_sub(bytes.len() as u64);
            }
            Ok(())
        });
        reading.await?;
        Ok(read)
    }
}
