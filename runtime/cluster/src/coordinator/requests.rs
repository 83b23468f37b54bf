//! What the connections of clients ask of the coordinator's loop, and how it answers.
//!
//! Owns what passes between a connection's task and the loop beside the messages themselves, which are
//! handled as they came. Does not own blobs, which connections read and write beside the loop.

use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::coordinator::{Accepted, Following};
use napreduce_protocol::{FromCoordinator, JobError, ToCoordinator};
use thiserror::Error;
use tokio::sync::oneshot;

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub(crate) struct Refusal {
    /// The exit status of whoever asked: 1 it failed, 2 it was asked wrongly.
    pub(crate) status: u8,
    pub(crate) reason: String,
}

impl Refusal {
    /// It was asked wrongly: there is no such thing, or it cannot be done with it.
    pub(crate) fn wrong(reason: impl Into<String>) -> Refusal {
        Refusal { status: 2, reason: reason.into() }
    }

    /// It was asked rightly, and failed.
    pub(crate) fn failed(error: impl ToString) -> Refusal {
        Refusal { status: 1, reason: error.to_string() }
    }

    pub(crate) fn of(error: &JobError) -> Refusal {
        Refusal { status: error.exit_status(), reason: error.to_string() }
    }
}

/// Where an answer goes. Whoever asked may be gone by then; then nobody wants to know.
pub(crate) type Reply<T = FromCoordinator> = oneshot::Sender<Result<T, Refusal>>;

/// Who has the logs of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHolder {
    /// The data address of the worker it ran on, or why there is none.
    pub(crate) address: Result<String, String>,
    /// The end of its standard error, where the coordinator has that, too.
    pub(crate) stderr: Option<Arc<str>>,
    /// Whether the attempt has ended.
    pub(crate) has_ended: bool,
}

/// What a connection asks of the loop.
#[derive(Debug)]
pub(crate) enum Request {
    /// A message that takes one answer, as it came.
    Asked(ToCoordinator, Reply),
    Follow {
        job: JobId,
        reply: Reply<Following>,
    },
    /// Where the logs of an attempt can be read.
    LogHolder {
        attempt: AttemptId,
        reply: Reply<LogHolder>,
    },
    /// What was submitted of a job, which may have ended.
    Definition {
        job: JobId,
        reply: Reply<Box<Accepted>>,
    },
    /// The connection that held a chain is closed.
    ReleaseChain {
        chain: u128,
    },
}

pub(super) fn unknown_job(job: JobId) -> Refusal {
    Refusal::wrong(format!("there is no {job}; see: nap job list"))
}

/// Whoever asked may be gone; then nobody wants to know.
pub(super) fn send<T>(reply: Reply<T>, answer: Result<T, Refusal>) {
    let _ = reply.send(answer);
}
