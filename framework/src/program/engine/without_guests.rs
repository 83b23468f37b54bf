//! External engines in a program built without the feature `guests`: every use is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use napreduce_local::ProgressMode;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobPlan, JobReport};
use napreduce_task::Definitions;

use super::super::error::Error;
use super::EngineArguments;

/// The first argument of processes started by an engine.
const MARKER: &str = "--napreduce-guest";
/// The exit status that tells an engine not to retry (docs/spark.md).
const FATAL: i32 = 65;

/// Uninhabited.
#[derive(Debug)]
pub(in crate::program) enum EngineKind {}

/// Uninhabited.
pub(in crate::program) enum Engine {}

pub(super) fn kind(on: &str, _: &EngineArguments) -> Result<EngineKind, Error> {
    Err(Error::Usage(format!(
        "--on {on} needs the feature `guests` of napreduce; build this program with it"
    )))
}

/// Returns whether an engine has started this process.
pub(in crate::program) fn requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == MARKER)
}

/// Fails with a message that the feature is missing; ends this process.
pub(in crate::program) fn run(_: &dyn Definitions) -> ! {
    print_error(
        "running on another engine needs the feature `guests` of napreduce; build this program with it",
    );
    std::process::exit(FATAL)
}

impl Engine {
    pub(in crate::program) fn start(
        kind: &EngineKind,
        _: &str,
        _: u32,
        _: ProgressMode,
        _: bool,
    ) -> Result<Engine, Error> {
        match *kind {}
    }

    pub(in crate::program) fn run(
        &mut self,
        _: JobPlan,
        _: &BTreeMap<String, PathBuf>,
    ) -> Result<JobReport, Error> {
        match *self {}
    }
}
