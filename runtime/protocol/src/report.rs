//! How a job ended, as its submitter learns it.
//!
//! Owns the report of a job that succeeded and the errors of one that did not, with their exit statuses. Does
//! not own how either is printed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::{JobId, JobOutcome};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counters::CounterValues;

/// One file of the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    /// Its name inside the output directory, such as `part-r-00000`.
    pub name: String,
    /// Records in it.
    pub records: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// xxh3-64 of its bytes.
    pub digest: u64,
}

/// A job that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReport {
    pub job: JobId,
    pub name: String,
    /// Counters of the attempts whose result counts, and of the job as a whole.
    pub counters: CounterValues,
    /// From submission to the end of the commit.
    pub wall: Duration,
    /// Part files in order.
    pub parts: Vec<PartReport>,
    /// The output directory.
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
}

/// How a job of a cluster ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEnd {
    /// Its output is complete.
    Succeeded(JobReport),
    /// A task failed too often, or fatally, or the output could not be committed.
    Failed {
        job: JobId,
        /// Which tasks failed and why.
        reason: String,
    },
    /// Somebody ended it.
    Killed {
        job: JobId,
        /// Who and why.
        reason: String,
    },
}

impl JobEnd {
    /// The end of a job that did not succeed; one that did has a report.
    pub fn without_report(job: JobId, outcome: JobOutcome) -> Option<JobEnd> {
        match outcome {
            JobOutcome::Succeeded => None,
            JobOutcome::Failed { reason } => Some(JobEnd::Failed { job, reason }),
            JobOutcome::Killed { reason } => Some(JobEnd::Killed { job, reason }),
        }
    }

    /// What it comes to, without the report.
    pub fn outcome(&self) -> JobOutcome {
        match self {
            JobEnd::Succeeded(_) => JobOutcome::Succeeded,
            JobEnd::Failed { reason, .. } => JobOutcome::Failed { reason: reason.clone() },
            JobEnd::Killed { reason, .. } => JobOutcome::Killed { reason: reason.clone() },
        }
    }

    /// The report, or why there is none.
    pub fn into_result(self) -> Result<JobReport, JobError> {
        match self {
            JobEnd::Succeeded(report) => Ok(report),
            JobEnd::Failed { job, reason } => Err(JobError::Failed { job, reason }),
            JobEnd::Killed { job, reason } => Err(JobError::Killed { job, reason }),
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, Error)]
pub enum JobError {
    /// The plan or the settings contradict themselves.
    #[error("{0}")]
    Plan(String),
    /// The output directory holds something and nobody said that it may be replaced.
    #[error("output directory {path}/ exists; pass --overwrite or choose another")]
    OutputExists {
        /// The output directory.
        path: String,
    },
    /// The output directory holds the remains of a run that was killed.
    #[error(
        "output directory {path}/ holds _temporary of a run that did not end; if that run is gone pass --overwrite \
         or remove it"
    )]
    OutputUnfinished {
        /// The output directory.
        path: String,
    },
    /// The output directory cannot be made or read.
    #[error("cannot use {path} as the output directory: {source}")]
    OutputUnusable {
        /// The output directory.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// It must never be an output directory.
    #[error("{path} cannot be an output directory: {why}")]
    OutputRefused {
        /// What was named.
        path: String,
        /// Why not, and what to name.
        why: String,
    },
    /// Another run writes into the output directory at this moment.
    #[error("output directory {path}/ is being written by another run; wait for it or choose another")]
    OutputInUse {
        /// The output directory.
        path: String,
    },
    /// A task failed too often, or fatally.
    #[error("{reason}")]
    Failed {
        job: JobId,
        /// Which tasks failed and why.
        reason: String,
    },
    /// Somebody ended the job.
    #[error("{job} was killed: {reason}")]
    Killed {
        job: JobId,
        /// Who and why.
        reason: String,
    },
    /// The cluster did not take the job, or could not be asked what became of it.
    #[error("{reason}")]
    Cluster {
        /// What happened, and what to do.
        reason: String,
        /// The exit status that it leads to.
        exit_status: u8,
    },
    /// A signal ended the job.
    #[error("interrupted by signal {signal}; {left}")]
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// What the output directory holds now.
        left: String,
    },
    /// Something the runtime itself needs could not be had.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, to what.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime broke one of its own rules; a bug.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

impl JobError {
    /// The exit status a program reports: 1 the job failed, 2 it could not start as asked, 69 no coordinator
    /// answers, 128 + n signal n ended it.
    pub fn exit_status(&self) -> u8 {
        match self {
            JobError::Failed { .. }
            | JobError::Killed { .. }
            | JobError::Io { .. }
            | JobError::Internal(_) => 1,
            JobError::Cluster { exit_status, .. } => *exit_status,
            JobError::Plan(_)
            | JobError::OutputUnusable { .. }
            | JobError::OutputRefused { .. }
            | JobError::OutputExists { .. }
            | JobError::OutputUnfinished { .. }
            | JobError::OutputInUse { .. } => 2,
            JobError::Interrupted { signal, .. } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }

    pub fn io(doing: impl Into<String>, source: io::Error) -> JobError {
        JobError::Io { doing: doing.into(), source }
    }
}
