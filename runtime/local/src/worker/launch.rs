//! The environment, directory and logs of an attempt's process.

use std::{fs, io};

use napreduce_engine::AttemptId;
use napreduce_protocol::{IoResult, LaunchWork, TaskError};

use super::environment::{AttemptLogs, Environment, Prepared};
use super::job::{KnownJob, Readiness};
use super::settings::WorkerSettings;
use crate::process::Launch;

/// The launch of an attempt's process.
pub(super) struct AttemptLaunch {
    pub(super) launch: Launch,
    /// Only in a cluster.
    pub(super) logs: Option<Box<dyn AttemptLogs>>,
}

/// Prepares the launch of an attempt's process. In a cluster it starts in its scratch directory and prints to files.
pub(super) fn prepare_launch(
    job: &KnownJob,
    attempt: AttemptId,
    work: &LaunchWork,
    settings: &WorkerSettings,
) -> Result<AttemptLaunch, TaskError> {
    let launch = Launch {
        variables: job.variables(attempt, work),
        ..Launch::default()
    };
    if let Some(environment) = settings.environment()
        && let Readiness::Ready(Some(prepared)) = &job.readiness
    {
        return in_cluster(launch, job, attempt, &**environment, prepared);
    }
    Ok(AttemptLaunch { launch, logs: None })
}

fn in_cluster(
    launch: Launch,
    job: &KnownJob,
    attempt: AttemptId,
    environment: &dyn Environment,
    prepared: &Prepared,
) -> Result<AttemptLaunch, TaskError> {
    let cannot_create = |what: &str, error: io::Error| {
        let message = format!("host {} cannot create {what}: {error}", environment.host());
        TaskError::local(message, &error)
    };
    let scratch = job.scratch(attempt);
    fs::create_dir(&scratch)
        .unless_there()
        .map_err(|error| cannot_create(&scratch.display().to_string(), error))?;
    let (logs, output) = environment
        .open_logs(attempt)
        .map_err(|error| cannot_create(&format!("the logs of {attempt}"), error))?;
    let launch = Launch {
        environment: Some(environment.isolation().environment.clone()),
        program: prepared.program.clone(),
        directory: Some(scratch),
        output: Some(output),
        ..launch
    };
    Ok(AttemptLaunch {
        launch,
        logs: Some(logs),
    })
}
