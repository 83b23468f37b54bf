//! The result of a job: a report if it succeeded, else an error with an exit status.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::{JobId, JobOutcome};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counters::CounterValues;
use crate::task_failure::TaskFailure;

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
    /// Counters of the job and of attempts whose result counts.
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
        /// The task, if one is the reason.
        #[serde(default)]
        failure: Option<Box<TaskFailure>>,
    },
    /// It was killed.
    Killed {
        job: JobId,
        /// The requester and the reason.
        reason: String,
    },
}

impl JobEnd {
    /// The end of a job that did not succeed; one that did has a report.
    pub fn without_report(job: JobId, outcome: JobOutcome) -> Option<JobEnd> {
        match outcome {
            JobOutcome::Succeeded => None,
            JobOutcome::Failed { reason } => Some(JobEnd::Failed {
                job,
                reason,
                failure: None,
            }),
            JobOutcome::Killed { reason } => Some(JobEnd::Killed { job, reason }),
        }
    }

    /// The outcome without the report.
    pub fn outcome(&self) -> JobOutcome {
        match self {
            JobEnd::Succeeded(_) => JobOutcome::Succeeded,
            JobEnd::Failed { reason, .. } => JobOutcome::Failed {
                reason: reason.clone(),
            },
            JobEnd::Killed { reason, .. } => JobOutcome::Killed {
                reason: reason.clone(),
            },
        }
    }

    /// Returns the report, or the error of an unsuccessful job.
    pub fn into_result(self) -> Result<JobReport, JobError> {
        match self {
            JobEnd::Succeeded(report) => Ok(report),
            JobEnd::Failed {
                job,
                reason,
                failure,
            } => Err(JobError::Failed {
                job,
                reason,
                failure,
            }),
            JobEnd::Killed { job, reason } => Err(JobError::Killed { job, reason }),
        }
    }
}

/// Why a job did not succeed.
#[derive(Debug, Error)]
pub enum JobError {
    /// The plan or the settings are inconsistent.
    #[error("{0}")]
    Plan(String),
    /// The output directory is not empty, and overwriting is not allowed.
    #[error("output directory {path}/ exists; pass --overwrite or choose another")]
    OutputExists {
        /// The output directory.
        path: String,
    },
    /// The output directory contains leftovers of a killed run.
    #[error(
        "output directory {path}/ contains _temporary of an unfinished run; if that run has ended, pass \
         --overwrite or remove it"
    )]
    OutputUnfinished {
        /// The output directory.
        path: String,
    },
    /// The output directory cannot be created or read.
    #[error("cannot use {path} as the output directory: {source}")]
    OutputUnusable {
        /// The output directory.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The path is unsuitable as an output directory.
    #[error("{path} cannot be an output directory: {why}")]
    OutputRefused {
        /// The path.
        path: String,
        /// The reason and a remedy.
        why: String,
    },
    /// Another run is writing to the output directory.
    #[error(
        "output directory {path}/ is being written by another run; wait for it or choose another"
    )]
    OutputInUse {
        /// The output directory.
        path: String,
    },
    /// A task failed too often, or fatally, or the output could not be committed.
    #[error("{reason}")]
    Failed {
        job: JobId,
        /// Which tasks failed and why.
        reason: String,
        /// The task, if one is the reason.
        failure: Option<Box<TaskFailure>>,
    },
    /// The job was killed.
    #[error("{job} was killed: {reason}")]
    Killed {
        job: JobId,
        /// The requester and the reason.
        reason: String,
    },
    /// The cluster refused the job, or its result is unknown.
    #[error("{reason}")]
    Cluster {
        /// The cause and a remedy.
        reason: String,
        /// The resulting exit status.
        exit_status: u8,
    },
    /// A signal ended the job.
    #[error("interrupted by signal {signal}; {left}")]
    Interrupted {
        /// The number of the signal.
        signal: i32,
        /// The state of the output directory.
        left: String,
    },
    /// The runtime lacks a resource.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The failed operation and its object.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// An invariant of the runtime is broken: a bug.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

impl JobError {
    /// Returns the exit status: 1 if the job failed, 2 if it could not start as requested, 69 if no
    /// coordinator answers, 128 + n for signal n.
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
        JobError::Io {
            doing: doing.into(),
            source,
        }
    }
}
