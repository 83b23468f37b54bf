//! The environment, directory and logs of an attempt's process.

use std::{fs, io};

use napreduce_engine::AttemptId;
use napreduce_protocol::{IoResult, LaunchWork, TaskError};

use super::environment::AttemptLogs;
use super::job::{KnownJob, Readiness};
use super::settings::WorkerSettings;
use crate::process::Launch;

/// Returns the launch of an attempt's process, and its logs. In a cluster it starts in its scratch directory
/// and prints to files.
pub(super) fn outfit(
    job: &KnownJob,
    attempt: AttemptId,
    work: &LaunchWork,
    settings: &WorkerSettings,
) -> Result<(Launch, Option<Box<dyn AttemptLogs>>), TaskError> {
    let variables = job.variables(attempt, work);
    let (Some((environment, _)), Readiness::Ready(Some(prepared))) =
        (&settings.environment, &job.readiness)
    else {
        return Ok((
            Launch {
                variables,
                ..Launch::default()
            },
            None,
        ));
    };
    let refuse = |what: String, error: io::Error| {
        TaskError::local(
            format!("host {} cannot create {what}: {error}", environment.host()),
            &error,
        )
    };
    let scratch = job.scratch(attempt);
    let made = fs::create_dir(&scratch).unless_there();
    made.map_err(|error| refuse(scratch.display().to_string(), error))?;
    let opened = environment.open_logs(attempt);
    let (logs, output) = opened.map_err(|error| refuse(format!("the logs of {attempt}"), error))?;
    let program = prepared.program.clone();
    let directory = Some(scratch);
    let output = Some(output);
    let environment = Some(environment.isolation().environment.clone());
    Ok((
        Launch {
            variables,
            environment,
            program,
            directory,
            output,
            ..Launch::default()
        },
        Some(logs),
    ))
}
