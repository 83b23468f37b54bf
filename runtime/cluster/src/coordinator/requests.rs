//! Requests from client connections to the coordinator's loop, and their replies. Blobs are transferred
//! outside the loop.

use std::sync::Arc;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::coordinator::{Accepted, Following};
use napreduce_protocol::{FromCoordinator, JobError, ToCoordinator};
use thiserror::Error;
use tokio::sync::oneshot;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub(crate) struct Refusal {
    /// The exit status: 1 for a failure, 2 for a wrong request.
    pub(crate) status: u8,
    pub(crate) reason: String,
}

impl Refusal {
    /// A wrong request: its object does not exist or does not allow it.
    pub(crate) fn wrong(reason: impl Into<String>) -> Refusal {
        Refusal { status: 2, reason: reason.into() }
    }

    /// A valid request that failed.
    pub(crate) fn failed(error: impl ToString) -> Refusal {
        Refusal { status: 1, reason: error.to_string() }
    }

    pub(crate) fn of(error: &JobError) -> Refusal {
        Refusal { status: error.exit_status(), reason: error.to_string() }
    }
}

/// The channel of an answer. A client that is gone drops it.
pub(crate) type Reply<T = FromCoordinator> = oneshot::Sender<Result<T, Refusal>>;

/// The holder of an attempt's logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHolder {
    /// The data address of its worker, or why it is unavailable.
    pub(crate) address: Result<String, String>,
    /// The end of its standard error, if the coordinator has it.
    pub(crate) stderr: Option<Arc<str>>,
    /// Whether the attempt has ended.
    pub(crate) has_ended: bool,
}

/// A request to the loop.
#[derive(Debug)]
pub(crate) enum Request {
    /// A client's message with one answer.
    Asked(ToCoordinator, Reply),
    Follow {
        job: JobId,
        reply: Reply<Following>,
    },
    /// Finds an attempt's logs.
    LogHolder {
        attempt: AttemptId,
        reply: Reply<LogHolder>,
    },
    /// Reads a job's definition, even if the job has ended.
    Definition {
        job: JobId,
        reply: Reply<Box<Accepted>>,
    },
    /// A chain's connection was closed.
    ReleaseChain {
        chain: u128,
    },
}

pub(super) fn unknown_job(job: JobId) -> Refusal {
    Refusal::wrong(format!("there is no {job}; see: nap job list"))
}

/// Fails only if the client is gone.
pub(super) fn send<T>(reply: Reply<T>, answer: Result<T, Refusal>) {
    let _ = reply.send(answer);
}
