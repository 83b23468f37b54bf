//! Prepares a cluster worker for a job's first attempt: directories, program, side files. Retries an
//! unreachable coordinator.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use napreduce_engine::{FaultPlace, JobId};
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

/// The files that the tasks of a job need. Keeps the program pinned.
struct JobFiles {
    directories: Vec<PathBuf>,
    program: Option<PinnedBlob>,
    copies: Vec<SideFileCopy>,
}

/// A worker's own copy of a side file.
struct SideFileCopy {
    path: PathBuf,
    /// The stamp of the file when it was copied.
    stamp: Stamp,
}

impl JobFiles {
    /// Returns whether all files are unchanged. Tasks run as this user and could overwrite the copies. If others have
    /// removed a directory, the next attempt makes it again. Blocking.
    fn are_intact(&self) -> bool {
        for directory in &self.directories {
            if !directory.is_dir() {
                return false;
            }
        }
        if let Some(program) = &self.program
            && !program.is_as_verified()
        {
            return false;
        }
        self.copies.iter().all(SideFileCopy::is_intact)
    }
}

impl SideFileCopy {
    fn is_intact(&self) -> bool {
        Stamp::at(&RealDisk, &self.path).is_ok_and(|current| current == self.stamp)
    }
}

/// Prepares everything. On failure the waiting attempts fail, and the next one retries.
pub(super) async fn prepare(
    environment: Arc<WorkerEnvironment>,
    description: Arc<JobDescription>,
) -> Result<Prepared, TaskError> {
    let paths = &environment.paths;
    let job = description.job;
    let files = paths.files(job);
    let directories = vec![
        paths.shuffle(job),
        paths.scratches(job),
        paths.checkpoints(job),
        files.clone(),
    ];
    for directory in &directories {
        make_directory(directory).map_err(|error| not_made(&environment, &error))?;
    }
    let mut program = None;
    let mut pinned_program = None;
    if let Some(blob) = description.program {
        let pinned = fetch_patiently(&environment, blob, "the job's program").await?;
        let path = pinned.path();
        check_architecture(&environment, &path)?;
        program = Some(Executable {
            path,
            name: description.definition.clone().into(),
        });
        pinned_program = Some(pinned);
    }
    let mut copies = Vec::new();
    for file in &description.files {
        copies.push(fetch_side_file(&environment, job, file).await?);
    }
    let job_files = JobFiles {
        directories,
        program: pinned_program,
        copies,
    };
    Ok(Prepared {
        program,
        files,
        is_intact: Box::new(move || job_files.are_intact()),
    })
}

/// Fetches a side file and copies it to the directory of the job's files.
async fn fetch_side_file(
    environment: &WorkerEnvironment,
    job: JobId,
    file: &SideFile,
) -> Result<SideFileCopy, TaskError> {
    check_name(file)?;
    let what = format!("the side file {:?}", file.name);
    let pinned = fetch_patiently(environment, file.blob, &what).await?;
    let path = environment.paths.files(job).join(&file.name);
    let unfinished = environment.paths.job(job).join("side-file.unfinished");
    let to = path.clone();
    let tasks = &environment.configuration.world.tasks;
    let copying = tasks.blocking(move || copy_file(&pinned, &unfinished, &to));
    let copied = match copying.await {
        Ok(copied) => copied,
        Err(panicked) => Err(io::Error::other(panicked)),
    };
    match copied {
        Ok(stamp) => Ok(SideFileCopy { path, stamp }),
        Err(error) => {
            let host = &environment.host;
            let own = path.display();
            Err(TaskError::local(
                format!("host {host} cannot copy {what} to {own}: {error}"),
                &error,
            ))
        }
    }
}

/// Fetches a blob; retries transient errors until the time limit.
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
        let host = &environment.host;
        if !error.is_passing() {
            let message = format!("host {host} cannot fetch {what}: {error}");
            return Err(TaskError::retryable(message).at(place_of(&error)));
        }
        if began.elapsed() + backoff.peek() > environment.configuration.fetch_patience {
            let seconds = began.elapsed().as_secs();
            let message = format!("host {host} could not fetch {what} within {seconds} s: {error}");
            return Err(TaskError::retryable(message).at(place_of(&error)));
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
    let is_one_name = matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    );
    if is_one_name && !file.name.contains(['/', '\0']) {
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
