//! Why a job of the suite cannot be run.
//!
//! Owns that error, in names: which jobs there are belongs to the suite, which speaks of all errors itself.

use std::path::PathBuf;

/// A job of the suite cannot be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuiteJobError {
    #[error("no job {name:?}; choose from {known}")]
    Unknown {
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Its binary is not where it should be.
    #[error(
        "no {job} binary at {path}; build it with `cargo build --release -p {package}`, \
         or name the folder that holds it with --bin-dir"
    )]
    Missing {
        job: &'static str,
        path: PathBuf,
        /// The package that has it.
        package: &'static str,
    },
}
