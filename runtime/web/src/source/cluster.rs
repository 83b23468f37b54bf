//! A running cluster as a source. Its answers are cached, so that many pages cost no more than one.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_cluster::{ClientError, ClusterClient, ClusterPlace, Patience};
use napreduce_engine::{AttemptId, JobId, Reason, TaskId};
use napreduce_history::read_cluster;
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, Explain, GetJob, GetWindow, KillJob, ListJobs,
    ListQueues, ListTasks, ListWorkers, UndrainWorker,
};
use napreduce_protocol::{
    ClusterWindow, JobDetail, JobSummary, LogStream, QueueListing, Request, TaskSummary,
    WorkerSummary, lock,
};

use super::fresh::Fresh;
use super::{PageSource, SourceError};

/// Short, because a page reports an unreachable cluster and retries by itself.
const PATIENCE: Patience = Patience {
    first: Duration::from_secs(2),
    later: Duration::from_secs(2),
    absent: Duration::from_millis(100),
    answer: Duration::from_secs(2),
    silence: Duration::from_secs(2),
    tell: false,
};
/// The most jobs in a listing.
const JOBS_MAX: u32 = 100_000;
/// Idle connections that are kept.
const IDLE_MAX: usize = 4;
/// Jobs whose details are kept; those of ended jobs do not change.
const DETAILS_MAX: usize = 32;
const ENDED_MAX: usize = 8;

/// A cluster, through its coordinator.
#[derive(Debug)]
pub struct ClusterSource {
    place: ClusterPlace,
    idle: Mutex<Vec<ClusterClient>>,
    jobs: Fresh<Vec<JobSummary>>,
    workers: Fresh<Vec<WorkerSummary>>,
    queues: Fresh<QueueListing>,
    details: Mutex<HashMap<JobId, Arc<Fresh<JobDetail>>>>,
    tasks: Mutex<HashMap<JobId, Arc<Fresh<Vec<TaskSummary>>>>>,
    /// Most recently used last.
    ended: Mutex<Vec<Arc<JobDetail>>>,
}

impl ClusterSource {
    /// Names the cluster; sends no request yet.
    pub fn new(place: ClusterPlace) -> ClusterSource {
        ClusterSource {
            place,
            idle: Mutex::default(),
            jobs: Fresh::default(),
            workers: Fresh::default(),
            queues: Fresh::default(),
            details: Mutex::default(),
            tasks: Mutex::default(),
            ended: Mutex::default(),
        }
    }
    fn ask<T>(
        &self,
        ask: impl FnOnce(&mut ClusterClient) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let idle = lock(&self.idle).pop();
        let mut client = match idle {
            Some(client) => client,
            None => ClusterClient::connect(self.place.clone(), PATIENCE)?,
        };
        let answer = ask(&mut client);
        // After another error the state of the connection is unknown.
        if matches!(answer, Ok(_) | Err(ClientError::Refused { .. })) {
            let mut idle = lock(&self.idle);
            if idle.len() < IDLE_MAX {
                idle.push(client);
            }
        }
        answer
    }

    fn request<R: Request>(&self, request: R) -> Result<R::Answer, ClientError> {
        self.ask(|client| client.ask(request))
    }

    /// Sends an operator's command, which changes what is shown.
    fn order<R: Request>(&self, request: R) -> Result<R::Answer, SourceError> {
        let answer = self.request(request);
        self.invalidate();
        answer.map_err(refused)
    }

    fn invalidate(&self) {
        self.jobs.invalidate();
        self.workers.invalidate();
        self.queues.invalidate();
        lock(&self.details).clear();
        lock(&self.tasks).clear();
    }
}

impl PageSource for ClusterSource {
    fn name(&self) -> String {
        self.place.to_string()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn history(&self) -> Option<&Path> {
        match &self.place {
            ClusterPlace::Directory(directory) => Some(directory.path()),
            ClusterPlace::Address { .. } => None,
        }
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        self.jobs.get(|| {
            self.request(ListJobs { limit: JOBS_MAX })
                .map_err(unanswered)
        })
    }

    fn job(&self, job: JobId) -> Result<Arc<JobDetail>, SourceError> {
        {
            let mut ended = lock(&self.ended);
            if let Some(at) = ended.iter().position(|detail| detail.summary.job == job) {
                let detail = ended.remove(at);
                ended.push(detail.clone());
                return Ok(detail);
            }
        }
        let fresh = slot(&self.details, job);
        let detail = fresh.get(|| self.request(GetJob { job }).map_err(unanswered))?;
        let mut ended = lock(&self.ended);
        let is_kept = ended.iter().any(|known| known.summary.job == job);
        if detail.summary.ended_millis.is_some() && !is_kept {
            ended.push(detail.clone());
            let too_many = ended.len().saturating_sub(ENDED_MAX);
            ended.drain(..too_many);
        }
        Ok(detail)
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        self.workers
            .get(|| self.request(ListWorkers).map_err(unanswered))
    }

    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        self.queues
            .get(|| self.request(ListQueues).map_err(unanswered))
    }

    /// Reads local files directly.
    fn window(&self, from_millis: u64, until_millis: u64) -> Result<ClusterWindow, SourceError> {
        match self.history() {
            Some(directory) => Ok(read_cluster(directory, from_millis, until_millis)),
            None => self
                .request(GetWindow {
                    from_millis,
                    until_millis,
                })
                .map_err(unanswered),
        }
    }

    fn tasks(&self, job: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
        slot(&self.tasks, job).get(|| {
            self.request(ListTasks { job: Some(job) })
                .map_err(unanswered)
        })
    }

    fn explain(&self, job: JobId, task: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
        self.request(Explain { job, task }).map_err(unanswered)
    }

    fn log(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        bytes_max: u64,
    ) -> Result<Vec<u8>, SourceError> {
        let mut piece = Piece {
            bytes: Vec::new(),
            left: bytes_max,
        };
        let asked = self.ask(|client| client.log(attempt, stream, offset, &mut piece).map(drop));
        match asked {
            // The limit was reached; the connection with the rest is dropped.
            Err(ClientError::Output(_)) if piece.left == 0 => Ok(piece.bytes),
            Err(error) => Err(unanswered(error)),
            Ok(()) => Ok(piece.bytes),
        }
    }

    fn kill_job(&self, request: KillJob) -> Result<(), SourceError> {
        self.order(request)
    }

    fn command_job(&self, request: CommandJob) -> Result<(), SourceError> {
        self.order(request)
    }

    fn change_job(&self, request: ChangeJob) -> Result<(), SourceError> {
        self.order(request)
    }

    fn command_task(&self, request: CommandTask) -> Result<Vec<AttemptId>, SourceError> {
        self.order(request)
    }

    fn drain_worker(&self, request: DrainWorker) -> Result<(), SourceError> {
        self.order(request)
    }

    fn undrain_worker(&self, request: UndrainWorker) -> Result<(), SourceError> {
        self.order(request)
    }

    fn rerun(&self, job: JobId, output: Option<&Path>, reason: &str) -> Result<JobId, SourceError> {
        let new = self.ask(|client| client.rerun(job, output, reason));
        self.invalidate();
        new.map_err(refused)
    }
}

/// Converts an error about an order.
fn refused(error: ClientError) -> SourceError {
    match error {
        ClientError::Refused { reason, .. } => SourceError::Refused(reason),
        other => unanswered(other),
    }
}

/// Returns the cache of one job; drops the others if there are too many.
fn slot<T>(slots: &Mutex<HashMap<JobId, Arc<Fresh<T>>>>, job: JobId) -> Arc<Fresh<T>> {
    let mut slots = lock(slots);
    if slots.len() >= DETAILS_MAX && !slots.contains_key(&job) {
        slots.clear();
    }
    slots.entry(job).or_default().clone()
}

/// Converts an error of the client.
fn unanswered(error: ClientError) -> SourceError {
    match error {
        ClientError::Refused { reason, .. } => SourceError::Absent(reason),
        ClientError::UnexpectedAnswer { .. } => SourceError::Broken(error.to_string()),
        _ => SourceError::Unavailable(error.to_string()),
    }
}

/// A buffer that accepts up to `left` bytes.
struct Piece {
    bytes: Vec<u8>,
    left: u64,
}

impl Write for Piece {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.left -= taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piece_accepts_bytes_up_to_its_limit() {
        let mut piece = Piece {
            bytes: Vec::new(),
            left: 5,
        };
        assert!(piece.write_all(b"abc").is_ok());
        let full = piece.write_all(b"defg").expect_err("full");
        assert_eq!(
            (full.kind(), piece.bytes.as_slice(), piece.left),
            (io::ErrorKind::WriteZero, &b"abcde"[..], 0)
        );
    }

    #[test]
    fn job_caches_are_limited() {
        let slots: Mutex<HashMap<JobId, Arc<Fresh<u32>>>> = Mutex::default();
        for number in 0..1_000 {
            slot(&slots, JobId(number));
            assert!(lock(&slots).len() <= DETAILS_MAX);
        }
    }
}
