//! The errors of a driver, with their exit status.

use napreduce_engine::JobId;
use napreduce_protocol::{JobError, TaskError};

use crate::input::InputError;
use crate::settings::SettingError;

/// The reason why a job did not complete.
///
/// ```
/// use napreduce::program::Error;
///
/// let error = Error::Usage("--most 0 leaves nothing to write".to_owned());
/// assert_eq!((error.to_string().as_str(), error.exit_status()), ("--most 0 leaves nothing to write", 2));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line or the driver requests something invalid.
    #[error("{0}")]
    Usage(String),
    /// An input is missing, unreadable or in the wrong format.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The sample for a total order could not be taken.
    #[error("cannot sample the input: {0}")]
    Sample(TaskError),
    /// The job was submitted with `--detach`; this ends the driver but is not a failure.
    #[error("{job} continues on the cluster; wait for it with: nap job wait {job}")]
    Detached {
        /// The detached job.
        job: JobId,
    },
    /// The job failed or was killed.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl From<SettingError> for Error {
    fn from(error: SettingError) -> Error {
        Error::Usage(error.to_string())
    }
}

impl Error {
    /// Adapts the error of a job whose output is intermediate: it is removed when the program ends, so the
    /// message must not point to it.
    pub(super) fn of_intermediate(self) -> Error {
        match self {
            Error::Job(JobError::Interrupted { signal, .. }) => {
                let left = "intermediate data was removed".to_owned();
                JobError::Interrupted { signal, left }.into()
            }
            other => other,
        }
    }

    /// 0: detached. 1: the job failed. 2: bad usage or bad input. 69: no coordinator. 128 + n: ended by
    /// signal n.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Detached { .. } => 0,
            Error::Usage(_) | Error::Input(_) => 2,
            Error::Sample(_) => 1,
            Error::Job(error) => error.exit_status(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_chain_omits_removed_output() {
        let left = "the job was complete by then, its output is in .out.intermediate-7/counts".to_owned();
        let error = Error::from(JobError::Interrupted { signal: 2, left }).of_intermediate();
        assert_eq!(error.to_string(), "interrupted by signal 2; intermediate data was removed");
        assert_eq!(error.exit_status(), 130);
    }
}
