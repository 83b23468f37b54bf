//! What the process of an attempt is started with: its environment, its directory, its logs.
//!
//! Owns making what a process of a cluster finds. Does not own starting it (`attempt`).

use std::{fs, io};

use napreduce_core::AttemptId;
use napreduce_protocol::{LaunchWork, TaskError};
use napreduce_task::Launch;

use super::daemon::WorkerSettings;
use super::job::{KnownJob, Readiness};
use super::logs::AttemptLogs;

/// What the process of an attempt is started with. In a cluster it starts in its scratch directory, and prints to files.
pub(super) fn outfit(
    job: &KnownJob,
    attempt: AttemptId,
    work: &LaunchWork,
    settings: &WorkerSettings,
) -> Result<(Launch, Option<AttemptLogs>), TaskError> {
    let environment = job.environment(attempt, work);
    let (Some((station, _)), Readiness::Ready(Some(prepared))) = (&settings.station, &job.readiness) else {
        return Ok((Launch { environment, ..Launch::default() }, None));
    };
    let refuse = |what: String, error: io::Error| {
        TaskError::local(format!("host {} cannot make {what}: {error}", station.host), &error)
    };
    let scratch = job.scratch(attempt);
    match fs::create_dir(&scratch) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(refuse(scratch.display().to_string(), error));
        }
        _ => {}
    }
    let opened = AttemptLogs::open(&station.paths, attempt, station.log_bytes_max);
    let (logs, output) = opened.map_err(|error| refuse(format!("the logs of {attempt}"), error))?;
    let (program, directory) = (prepared.program.clone(), Some(scratch));
    let output = Some(output);
    Ok((Launch { environment, program, directory, output, ..Launch::default() }, Some(logs)))
}
