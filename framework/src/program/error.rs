//! The errors of a driver, with their exit status.

use std::fmt;

use napreduce_engine::JobId;
use napreduce_protocol::{JobError, TaskError};

use super::wording::worded;
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
///
/// Its message names the flag of an option, or in a program that runs jobs as values
/// ([`napreduce::job`](crate::job())) the method. The debug form is the message, too, so that a `main` that returns the
/// error prints it.
#[non_exhaustive]
pub enum Error {
    /// The command line or the driver requests something invalid.
    Usage(String),
    /// An input is missing, unreadable or in the wrong format.
    Input(InputError),
    /// The sample for a total order could not be taken.
    Sample(TaskError),
    /// The job was submitted with `--detach`; this ends the driver but is not a failure.
    Detached {
        /// The detached job.
        job: JobId,
    },
    /// The job failed or was killed.
    Job(JobError),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self {
            Error::Usage(message) => message.clone(),
            Error::Input(error) => error.to_string(),
            Error::Sample(error) => format!("cannot sample the input: {error}"),
            Error::Detached { job } => {
                format!("{job} continues on the cluster; wait for it with: nap job wait {job}")
            }
            Error::Job(error) => error.to_string(),
        };
        formatter.write_str(&worded(&message))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The message contains that of the cause, so `source` is the cause of the cause.
impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Input(error) => error.source(),
            Error::Job(error) => error.source(),
            Error::Usage(_) | Error::Sample(_) | Error::Detached { .. } => None,
        }
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Error {
        Error::Input(error)
    }
}

impl From<JobError> for Error {
    fn from(error: JobError) -> Error {
        Error::Job(error)
    }
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
        let left =
            "the job was complete by then, its output is in .out.intermediate-7/counts".to_owned();
        let error = Error::from(JobError::Interrupted { signal: 2, left }).of_intermediate();
        assert_eq!(
            error.to_string(),
            "interrupted by signal 2; intermediate data was removed"
        );
        assert_eq!(error.exit_status(), 130);
    }
}
