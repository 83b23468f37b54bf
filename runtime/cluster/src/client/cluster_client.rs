//! The blocking client: `ask` for requests with one answer, a method for each longer exchange.

use std::io::Write;
use std::path::Path;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::JobLink;
use napreduce_local::world::World;
use napreduce_protocol::{JobError, JobPlan, JobReport, LogStream, Request};
use tokio::runtime::{Builder, Runtime};

use super::async_client::{AsyncClient, LogRead};
use super::run::{self, FollowOptions};
use super::session::Patience;
use super::submission::SubmitOptions;
use super::{ClientError, ClusterPlace, started};

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
    client: AsyncClient,
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
        let connecting = AsyncClient::connect(World::real(), place, patience);
        let client = runtime.block_on(connecting)?;
        Ok(ClusterClient { client, runtime })
    }

    /// Submits a job; uploads its program and files unless the coordinator has them. Inputs and output must
    /// be absolute paths on storage shared by all workers.
    pub fn submit(&mut self, plan: JobPlan, options: &SubmitOptions) -> Result<JobId, ClientError> {
        self.runtime.block_on(self.client.submit(plan, options))
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
            .block_on(run::run(&mut self.client.session, plan, submit, follow))
    }

    /// Follows a submitted job to its end, as `run` does.
    pub fn follow(&mut self, job: JobId, options: &FollowOptions) -> Result<JobReport, JobError> {
        self.runtime
            .block_on(run::follow(&mut self.client.session, job, options))
    }

    /// Follows a submitted job for its [`StartedJob`](napreduce_local::StartedJob).
    pub(super) fn follow_linked(
        &mut self,
        job: JobId,
        link: JobLink,
    ) -> Result<JobReport, JobError> {
        self.runtime
            .block_on(started::follow_linked(&mut self.client.session, job, link))
    }

    /// Sends a request to the coordinator and returns its answer.
    ///
    /// # Errors
    /// Fails if the coordinator refuses or does not answer in time. Returns [`ClientError::Unanswered`] if a
    /// request that is not repeatable may have been carried out.
    pub fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, ClientError> {
        self.runtime.block_on(self.client.ask(request))
    }

    /// Submits the definition of a job again, optionally with another output; returns the new job. The
    /// coordinator supplies the program and side files.
    pub fn rerun(
        &mut self,
        job: JobId,
        output: Option<&Path>,
        reason: &str,
    ) -> Result<JobId, ClientError> {
        let resubmitting = self.client.rerun(job, output, reason);
        self.runtime.block_on(resubmitting)
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
        let reading = self.client.log(attempt, stream, offset, into);
        self.runtime.block_on(reading)
    }
}
