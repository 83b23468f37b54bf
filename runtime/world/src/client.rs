//! A client that submits one job, follows it, and checks its end.

use std::path::PathBuf;
use std::time::Duration;

use napreduce_cluster::{AsyncClient, ClientError, ClusterPlace, Patience, SubmitOptions};
use napreduce_engine::{JobId, TaskId};
use napreduce_local::world::World;
use napreduce_protocol::requests::ListJobs;
use napreduce_protocol::{Counter, JobEnd, JobReport};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep, timeout_at};

use crate::facts::Facts;
use crate::log::Log;
use crate::plan::Moment;
use crate::reactions::{Reached, Subject};
use crate::workload::SimJob;

/// Power losses of workers' hosts after which a task may fail.
const CRASHES_MIN: u32 = 3;
/// Pause before another try to submit.
const RETRY_PAUSE: Duration = Duration::from_secs(5);
/// More jobs than a run has.
const JOBS_MAX: u32 = 100;

/// Returns the limits of a client that waits for a coordinator as long as a run lasts.
pub fn patience() -> Patience {
    let day = Duration::from_secs(24 * 3600);
    Patience {
        first: day,
        later: day,
        absent: day,
        tell: false,
        ..Patience::default()
    }
}

/// A client with its job.
pub struct SimClient {
    pub job: SimJob,
    pub world: World,
    pub place: ClusterPlace,
    /// The file of the job's program.
    pub program: PathBuf,
    pub facts: Facts,
    pub log: Log,
    /// Whether calls to the coordinator's disk may fail.
    pub fails_disk: bool,
    /// When the faults stop.
    pub until: Instant,
    /// When the job must have ended.
    pub by: Instant,
    /// Whether another job wants the same output directory.
    pub shares_output: bool,
    pub moments: UnboundedSender<Reached>,
}

impl SimClient {
    /// Submits the job and follows it to its end.
    pub async fn run(self) {
        sleep(self.job.submitted).await;
        let mut accepted = None;
        let ended = timeout_at(self.by, self.run_job(&mut accepted)).await;
        if accepted.is_some_and(|at| self.facts.may_be_forgotten(at)) {
            self.facts.note_forgotten_job(self.job.parameters.number);
            return self.log.event(self.name(), "may be forgotten");
        }
        let Ok(answer) = ended else {
            return self.log.violation(self.name(), "does not end");
        };
        match answer {
            Ok((job, end)) => self.check(job, end),
            // Another job has the output directory, or has left something there.
            Err(ClientError::Refused { reason, .. }) if self.shares_output => {
                let what = format_args!("is refused: {reason}");
                self.log.event(self.name(), what);
            }
            Err(error) => {
                let what = format_args!("fails: {error}");
                self.log.violation(self.name(), what);
            }
        }
    }

    fn name(&self) -> &str {
        &self.job.plan.name
    }

    /// Submits the job, notes when it was accepted, and follows it.
    async fn run_job(
        &self,
        accepted: &mut Option<Instant>,
    ) -> Result<(JobId, JobEnd), ClientError> {
        let place = self.place.clone();
        let mut client = AsyncClient::connect(self.world.clone(), place, patience()).await?;
        let job = self.submit(&mut client).await?;
        *accepted = Some(Instant::now());
        self.log.event(self.name(), format_args!("is {job}"));
        let end = client.follow(job, |_| {}).await?;
        Ok((job, end))
    }

    /// Submits the job. After a try without an answer, it looks for the job before it tries again.
    async fn submit(&self, client: &mut AsyncClient) -> Result<JobId, ClientError> {
        let options = SubmitOptions {
            user: self.job.user.clone(),
            program: Some(self.program.clone()),
            ..SubmitOptions::default()
        };
        let submission = Reached {
            moment: Moment::Submission,
            subject: Subject::Client(self.job.parameters.number),
        };
        loop {
            // Sending fails after the faults, when the reactions have ended.
            let _ = self.moments.send(submission);
            let error = match client.submit(self.job.plan.clone(), &options).await {
                Ok(job) => return Ok(job),
                Err(error @ ClientError::Refused { .. }) if !self.may_be_refused() => {
                    return Err(error);
                }
                Err(error) => error,
            };
            self.log
                .event(self.name(), format_args!("is not submitted: {error}"));
            sleep(RETRY_PAUSE).await;
            let jobs = client.ask(ListJobs { limit: JOBS_MAX }).await?;
            if let Some(known) = jobs.iter().find(|job| job.name == self.name()) {
                return Ok(known.job);
            }
        }
    }

    /// Returns whether a refusal is explained: a coordinator whose disk fails cannot store the program.
    fn may_be_refused(&self) -> bool {
        self.fails_disk && Instant::now() < self.until
    }

    fn check(&self, job: JobId, end: JobEnd) {
        match &end {
            JobEnd::Succeeded(report) => {
                self.log.event(self.name(), "succeeded");
                if self.facts.was_kill_answered(job) {
                    self.log
                        .violation(self.name(), "succeeded although it was killed");
                }
                self.facts.note_success(self.job.parameters.number);
                self.check_counters(job, report);
            }
            JobEnd::Failed { reason, .. } => {
                self.log
                    .event(self.name(), format_args!("failed: {reason}"));
                let is_explained = self.facts.most_troubles(job) >= self.job.plan.attempts_max
                    || self.facts.crashes() >= CRASHES_MIN;
                if !is_explained {
                    self.log
                        .violation(self.name(), "failed without enough trouble");
                }
            }
            JobEnd::Killed { reason, .. } => {
                self.log
                    .event(self.name(), format_args!("was killed: {reason}"));
                if !self.facts.is_killed(job) {
                    self.log.violation(self.name(), "was killed by nobody");
                }
            }
        }
    }

    /// Checks that the counters are those of an undisturbed run.
    fn check_counters(&self, job: JobId, report: &JobReport) {
        let task = |kind, index| TaskId { job, kind, index };
        let expected = self.job.parameters.bytes(task);
        let counted = report.counters.of(Counter::MapOutputMaterializedBytes);
        if counted != expected {
            let what = format!("{counted} bytes are counted, but {expected} were written");
            self.log.violation(self.name(), what);
        }
    }
}
