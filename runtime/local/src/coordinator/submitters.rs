//! Submissions whose output directory is being claimed, and what accepted jobs need in the store.

use std::any::Any;
use std::collections::BTreeMap;

use napreduce_engine::JobId;
use napreduce_protocol::JobError;
use tokio::sync::oneshot;

use super::followers::Following;

/// Keeps a job's programs and side files in the cluster's store until dropped.
pub type Pins = Box<dyn Any + Send>;

/// Called when a job is journaled, or with the reason for its rejection.
pub type AnswerSubmission = Box<dyn FnOnce(Result<JobId, &JobError>) + Send>;

/// The party that waits for a submission to be accepted.
pub enum Submitter {
    Client(AnswerSubmission),
    Embedding(oneshot::Sender<Result<(JobId, Following), JobError>>),
}

/// Numbers of jobs, submissions in progress by token, and pins of jobs that have not ended.
pub(super) struct Submitters {
    /// The highest job number assigned, journaled or not; without refused ones at the end.
    last_job: u32,
    waiting: BTreeMap<u128, Vec<Submitter>>,
    pins: BTreeMap<JobId, Pins>,
}

impl Submitters {
    pub fn new(last_job: u32) -> Submitters {
        Submitters {
            last_job,
            waiting: BTreeMap::new(),
            pins: BTreeMap::new(),
        }
    }

    /// Assigns a job number.
    pub fn next_job(&mut self) -> JobId {
        self.last_job += 1;
        JobId(self.last_job)
    }

    /// Takes back the number of a refused job unless a later one is assigned.
    pub fn take_back(&mut self, job: JobId) {
        if job == JobId(self.last_job) {
            self.last_job -= 1;
        }
    }

    /// Adds a submitter to a submission, which it begins if it is the first one.
    pub fn add(&mut self, token: u128, submitter: Submitter) {
        self.waiting.entry(token).or_default().push(submitter);
    }

    pub fn is_waiting(&self, token: u128) -> bool {
        self.waiting.contains_key(&token)
    }

    /// Ends a submission and returns its submitters.
    pub fn end(&mut self, token: u128) -> Vec<Submitter> {
        self.waiting.remove(&token).unwrap_or_default()
    }

    /// Returns whether a submission is in progress.
    pub fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn pin(&mut self, job: JobId, pins: Pins) {
        self.pins.insert(job, pins);
    }

    /// Releases the pins of a job that has ended.
    pub fn unpin(&mut self, job: JobId) {
        self.pins.remove(&job);
    }
}
