//! How a command that failed ends: its last words and its exit status.
//!
//! Owns which error means which status. Does not own the statuses of single errors (live runtime).

use napreduce_live::{ClientError, ClusterDirectoryError, CoordinatorError, JobError, WorkerError};
use napreduce_sim::{LimitError, SimulationError, SwimError, WorkloadError};

use crate::log::LogError;

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;

/// What ends a command with status 1 although there is nothing more to say.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was said already.
    #[error("failed")]
    Said,
}

/// An error and what led to it, each said once: some say what led to them themselves.
pub fn in_words(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.contains(&cause) {
        true => said,
        false if said.is_empty() => cause,
        false => format!("{said}: {cause}"),
    })
}

/// The exit status that an error means.
pub fn status(error: &anyhow::Error) -> u8 {
    let of_client = error.downcast_ref().map(ClientError::exit_status);
    let of_job = || error.downcast_ref().map(JobError::exit_status);
    let of_directory = || error.downcast_ref().map(ClusterDirectoryError::exit_status);
    let of_worker = || error.downcast_ref().map(WorkerError::exit_status);
    let of_log = || error.downcast_ref::<LogError>().map(|_| WRONG_USAGE);
    let of_workload = || error.is::<LimitError>() || error.is::<WorkloadError>() || error.is::<SwimError>();
    let of_run = || error.downcast_ref().is_some_and(SimulationError::is_of_input);
    let of_simulation = || (of_workload() || of_run()).then_some(WRONG_USAGE);
    let of_coordinator = || error.downcast_ref().map(CoordinatorError::exit_status);
    of_client
        .or_else(of_job)
        .or_else(of_directory)
        .or_else(of_worker)
        .or_else(of_coordinator)
        .or_else(of_log)
        .or_else(of_simulation)
        .unwrap_or(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_an_error_is_said_once() {
        let cause = || std::io::Error::other("no space left");
        let told = anyhow::Error::new(cause()).context("cannot write out: no space left");
        assert_eq!(in_words(&told), "cannot write out: no space left");
        assert_eq!(
            in_words(&anyhow::Error::new(cause()).context("cannot write out")),
            "cannot write out: no space left"
        );
    }
}
