//! Prepares a cluster worker for a job's first attempt: directories, program, side files. Retries an
//! unreachable coordinator.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use napreduce_engine::FaultPlace;
use napreduce_local::clock::now;
use napreduce_local::process::Executable;
use napreduce_local::worker::Prepared;
use napreduce_local::world::disk::RealDisk;
use napreduce_protocol::{Backoff, Blob, IoResult, JobDescription, SideFile, TaskError};
use tokio::time::sleep;

use super::environment::WorkerEnvironment;
use super::error::WorkerError;
use super::worker_directory::make_directory;
use crate::blobs::{BlobError, FetchError, PinnedBlob, Stamp, fetch, program_architecture};

/// Pauses between tries to fetch a file.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// Prepares everything. On failure the waiting attempts fail, and the next one retries.
pub(super) async fn prepare(
    environment: Arc<WorkerEnvironment>,
    description: Arc<JobDescription>,
) -> Result<Prepared, TaskError> {
    let paths = &environment.paths;
    let job = description.job;
    let files = paths.files(job);
    let directories = [
        paths.shuffle(job),
        paths.scratches(job),
        paths.checkpoints(job),
        files.clone(),
    ];
    for directory in &directories {
        make_directory(directory).map_err(|error| not_made(&environment, &error))?;
    }
    let (program, pinned) = match description.program {
        Some(blob) => {
            let pinned = fetch_patiently(&environment, blob, "the job's program").await?;
            let program = Executable {
                path: pinned.path(),
                name: description.definition.clone().into(),
            };
            check_architecture(&environment, &program.path)?;
            (Some(program), Some(pinned))
        }
        None => (None, None),
    };
    let mut copies: Vec<(PathBuf, Stamp)> = Vec::new();
    for file in &description.files {
        check_name(file)?;
        let what = format!("the side file {:?}", file.name);
        let pinned = fetch_patiently(&environment, file.blob, &what).await?;
        let own = files.join(&file.name);
        let unfinished = paths.job(job).join("side-file.unfinished");
        let to = own.clone();
        let tasks = &environment.configuration.world.tasks;
        let copied = tasks
            .blocking(move || copy_file(&pinned, &unfinished, &to))
            .await;
        let stamp = copied
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| {
                let host = &environment.host;
                let own = own.display();
                TaskError::local(
                    format!("host {host} cannot copy {what} to {own}: {error}"),
                    &error,
                )
            })?;
        copies.push((own, stamp));
    }
    // Keeps the program pinned. Tasks run as this user and could overwrite the copies. If others have removed a
    // directory, the next attempt makes it again.
    let is_intact = move || {
        directories.iter().all(|directory| directory.is_dir())
            && pinned.as_ref().is_none_or(PinnedBlob::is_as_verified)
            && copies
                .iter()
                .all(|(path, stamp)| Stamp::at(&RealDisk, path).is_ok_and(|now| now == *stamp))
    };
    Ok(Prepared {
        program,
        files,
        is_intact: Box::new(is_intact),
    })
}

async fn fetch_patiently(
    environment: &WorkerEnvironment,
    blob: Blob,
    what: &str,
) -> Result<PinnedBlob, TaskError> {
    let began = now();
    let mut backoff = BACKOFF;
    loop {
        let error = match fetch_once(environment, blob).await {
            Ok(pinned) => return Ok(pinned),
            Err(error) => error,
        };
        let is_passing = error.is_passing();
        if !is_passing
            || began.elapsed() + backoff.peek() > environment.configuration.fetch_patience
        {
            let host = &environment.host;
            let seconds = began.elapsed().as_secs();
            let failed = TaskError::retryable(if is_passing {
                format!("host {host} could not fetch {what} within {seconds} s: {error}")
            } else {
                format!("host {host} cannot fetch {what}: {error}")
            });
            return Err(failed.at(place_of(&error)));
        }
        sleep(backoff.next_pause()).await;
    }
}

fn not_made(environment: &WorkerEnvironment, error: &WorkerError) -> TaskError {
    let message = format!("host {}: {error}", environment.host);
    match error {
        WorkerError::Io { source, .. } => TaskError::local(message, source),
        _ => TaskError::retryable(message),
    }
}

/// Returns which component caused a failed fetch.
fn place_of(error: &FetchError) -> FaultPlace {
    match error {
        FetchError::Blob(BlobError::Io { source, .. }) => TaskError::local("", source).place,
        _ => FaultPlace::ProgramFile,
    }
}

async fn fetch_once(environment: &WorkerEnvironment, blob: Blob) -> Result<PinnedBlob, FetchError> {
    let _one_at_a_time = environment.fetching.lock().await;
    let (address, secret) = environment.configuration.cluster.look_up()?;
    let world = &environment.configuration.world;
    fetch(world, &address, &secret, &environment.blobs, blob).await
}

fn check_architecture(environment: &WorkerEnvironment, program: &Path) -> Result<(), TaskError> {
    let own = std::env::consts::ARCH;
    let host = &environment.host;
    match program_architecture(&RealDisk, program) {
        Ok(architecture) if architecture == own => Ok(()),
        Ok(architecture) => Err(TaskError::retryable(format!(
            "the job's program is built for {architecture}, but host {host} is {own}; submit one that is built for the \
             workers"
        ))
        .at(FaultPlace::ProgramFile)),
        Err(error) => {
            let message = format!("host {host} cannot execute the job's program: {error}");
            Err(TaskError::retryable(message).at(FaultPlace::ProgramFile))
        }
    }
}

/// Checks that a name, which comes from the submitter, does not lead out of the directory.
fn check_name(file: &SideFile) -> Result<(), TaskError> {
    let mut components = Path::new(&file.name).components();
    let one = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    );
    if one && !file.name.contains(['/', '\0']) {
        Ok(())
    } else {
        Err(TaskError::fatal(format!(
            "invalid side file name {:?}; use a name without directories",
            file.name
        )))
    }
}

/// Copies a read-only side file into place atomically, replacing an earlier copy. With a link, a task that
/// writes to the file would change it for every job.
fn copy_file(from: &PinnedBlob, unfinished: &Path, to: &Path) -> io::Result<Stamp> {
    fs::remove_file(unfinished).if_there()?;
    fs::copy(from.path(), unfinished)?;
    fs::rename(unfinished, to)?;
    Stamp::at(&RealDisk, to)
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::Digest;

    use super::*;

    #[test]
    fn side_file_name_with_directories_is_invalid() {
        let check = |name: &str| {
            let blob = Blob {
                digest: Digest([0; 32]),
                bytes: 0,
            };
            check_name(&SideFile {
                name: name.to_owned(),
                blob,
            })
        };
        for name in [
            "",
            ".",
            "..",
            "/",
            "/etc/passwd",
            "../x",
            "a/b",
            "a/",
            "./a",
            "a\0b",
        ] {
            let error = check(name).expect_err("no such name");
            assert!(
                error.message.contains("invalid side file name"),
                "{}",
                error.message
            );
        }
        for name in ["stop words.txt", "...", ".hidden", "a..b"] {
            check(name).expect("a name");
        }
    }
}
