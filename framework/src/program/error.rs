//! Why a program could not do what its command line asked for, with the exit status that says so.
//!
//! Owns the union of the errors a driver meets. Does not own their texts.

use napreduce_core::JobId;
use napreduce_live::{JobError, TaskError};

use crate::input::InputError;
use crate::job::SettingError;

/// Why a job did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line or the driver asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// An input is missing, unreadable or of the wrong shape.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The sample for a total order could not be taken.
    #[error("cannot sample the input: {0}")]
    Sample(TaskError),
    /// The job was handed to a cluster and left to itself, as asked; no error but the end of a driver.
    #[error("{job} goes on by itself; wait for it with: nap job wait {job}")]
    Detached {
        /// The job.
        job: JobId,
    },
    /// The job failed, or was ended.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl From<SettingError> for Error {
    fn from(error: SettingError) -> Error {
        Error::Usage(error.to_string())
    }
}

impl Error {
    /// 0: detached. 1: the job failed. 2: bad usage or bad input. 128 + n: ended by signal n.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Detached { .. } => 0,
            Error::Usage(_) | Error::Input(_) => 2,
            Error::Sample(_) => 1,
            Error::Job(error) => error.exit_status(),
        }
    }
}
