//! The error message and exit status of a failed command.

use napreduce_cluster::{ClientError, ClusterDirectoryError, CoordinatorError, WorkerError};
use napreduce_protocol::{JobError, printing::print_error, several_lines};
use napreduce_sim::{LimitError, SimulationError, SwimError, WorkloadError};

use crate::log::LogError;

const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const NO_COORDINATOR: u8 = 69;

/// Errors of commands, in addition to those of other crates.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The error is printed already; carries the exit status.
    #[error("failed")]
    Printed(u8),
    /// The command line or the configuration is invalid.
    #[error("{}", in_words(.0))]
    Usage(anyhow::Error),
}

/// The error of a command that has printed its errors; status 1.
pub fn printed() -> anyhow::Error {
    Failure::Printed(FAILED).into()
}

/// Wraps an error as wrong usage, unless it has a more specific status.
pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    Failure::Usage(error.into()).into()
}

/// The failures of a command that continues after each failure.
#[derive(Debug, Default)]
pub struct Failures {
    /// The highest exit status so far.
    status: u8,
}

impl Failures {
    /// Returns the result of one action, or prints its error. Fails if no coordinator answers, since further
    /// actions would fail as well.
    pub fn check<T, E: Into<anyhow::Error>>(
        &mut self,
        result: Result<T, E>,
    ) -> anyhow::Result<Option<T>> {
        let error = match result {
            Ok(done) => return Ok(Some(done)),
            Err(error) => error.into(),
        };
        if status(&error) == NO_COORDINATOR {
            return Err(error);
        }
        self.status = self.status.max(status(&error));
        print(&error);
        Ok(None)
    }

    /// Counts a failure that is printed already.
    pub fn add_printed(&mut self) {
        self.status = self.status.max(FAILED);
    }

    /// Fails if anything has failed.
    pub fn finish(self) -> anyhow::Result<()> {
        if self.status == 0 {
            Ok(())
        } else {
            Err(Failure::Printed(self.status).into())
        }
    }
}

/// Prints an error, unless it is printed already.
pub fn print(error: &anyhow::Error) {
    if !matches!(error.downcast_ref(), Some(Failure::Printed(_))) {
        print_error(format_args!("nap: {}", several_lines(&in_words(error))));
    }
}

/// Formats an error and its causes, leaving out causes that the text contains already.
pub fn in_words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.contains(&cause) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

/// Returns the exit status of an error.
pub fn status(error: &anyhow::Error) -> u8 {
    let own = match error.downcast_ref() {
        Some(Failure::Printed(status)) => Some(*status),
        Some(Failure::Usage(error)) => Some(status(error))
            .filter(|status| *status != FAILED)
            .or(Some(WRONG_USAGE)),
        None => None,
    };
    let of_client = || error.downcast_ref().map(ClientError::exit_status);
    let of_job = || error.downcast_ref().map(JobError::exit_status);
    let of_directory = || error.downcast_ref().map(ClusterDirectoryError::exit_status);
    let of_worker = || error.downcast_ref().map(WorkerError::exit_status);
    let of_log = || error.downcast_ref::<LogError>().map(|_| WRONG_USAGE);
    let of_workload =
        || error.is::<LimitError>() || error.is::<WorkloadError>() || error.is::<SwimError>();
    let of_run = || {
        error
            .downcast_ref()
            .is_some_and(SimulationError::is_input_error)
    };
    let of_simulation = || (of_workload() || of_run()).then_some(WRONG_USAGE);
    let of_coordinator = || error.downcast_ref().map(CoordinatorError::exit_status);
    own.or_else(of_client)
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
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn in_words_prints_each_cause_once() {
        let cause = || std::io::Error::other("no space left");
        let error = anyhow::Error::new(cause()).context("cannot write out: no space left");
        assert_eq!(in_words(&error), "cannot write out: no space left");
        assert_eq!(
            in_words(&anyhow::Error::new(cause()).context("cannot write out")),
            "cannot write out: no space left"
        );
    }

    #[test]
    fn failures_after_a_success_have_the_highest_status() {
        let mut failures = Failures::default();
        for result in [
            Ok(7),
            Err(usage(anyhow!("no such job"))),
            Err(anyhow!("it failed")),
        ] {
            let expected = result.as_ref().ok().copied();
            assert_eq!(
                failures.check(result).expect("others can be tried"),
                expected
            );
        }
        let error = failures.finish().expect_err("two have failed");
        assert_eq!(status(&error), WRONG_USAGE);
        assert!(Failures::default().finish().is_ok());
    }

    #[test]
    fn usage_error_with_a_status_of_its_own_keeps_it() {
        assert_eq!(status(&usage(anyhow!("--nodes 0"))), WRONG_USAGE);
        assert_eq!(
            status(&usage(Failure::Printed(NO_COORDINATOR))),
            NO_COORDINATOR
        );
        assert_eq!(in_words(&usage(anyhow!("b").context("a"))), "a: b");
    }
}
