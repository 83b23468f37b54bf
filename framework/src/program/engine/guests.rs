//! External engines, with the feature `guests`.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(in crate::program) use napreduce_guests::EngineKind;
use napreduce_guests::{EngineError, EngineFlags, GuestEngine};
pub(in crate::program) use napreduce_guests::{requested, run};
use napreduce_local::ProgressMode;
use napreduce_protocol::{JobPlan, JobReport};

use super::super::error::Error;
use super::super::typed_paths::TypedPaths;
use super::EngineArguments;

pub(super) fn kind(on: &str, arguments: &EngineArguments) -> Result<EngineKind, Error> {
    let flags = EngineFlags {
        on,
        on_conf: &arguments.on_conf,
        on_submit: arguments.on_submit.as_deref(),
        checkpoints: arguments.checkpoints.as_deref(),
        checkpoint_interval: arguments.checkpoint_interval,
    };
    EngineKind::of(&flags).map_err(Error::Usage)
}

/// An engine that runs jobs of this program; stopped when dropped.
pub(in crate::program) struct Engine {
    engine: GuestEngine,
    paths: TypedPaths,
}

impl Engine {
    pub(in crate::program) fn start(
        kind: &EngineKind,
        name: &str,
        attempts_max: u32,
        progress: ProgressMode,
        quiet: bool,
    ) -> Result<Engine, Error> {
        let paths = TypedPaths::from_here()?;
        let engine =
            kind.start(name, attempts_max, progress, quiet)
                .map_err(|error| match error {
                    EngineError::NotFound(why) => Error::Usage(why),
                    EngineError::Job(error) => Error::from(error),
                })?;
        Ok(Engine { engine, paths })
    }

    /// Runs a job to its end. Messages show its paths as typed.
    pub(in crate::program) fn run(
        &mut self,
        mut plan: JobPlan,
        files: &BTreeMap<String, PathBuf>,
    ) -> Result<JobReport, Error> {
        let typed = plan.output.clone();
        let relative = self.paths.make_absolute(&mut plan);
        match self.engine.run(&plan, files) {
            Ok(report) => Ok(JobReport {
                output: typed,
                ..report
            }),
            Err(error) => Err(Error::from(self.paths.as_typed(error, relative))),
        }
    }
}
