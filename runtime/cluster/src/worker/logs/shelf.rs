//! The logs of all jobs of a worker; removes those of the oldest ended jobs beyond a limit.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use napreduce_engine::{AttemptId, JobId};
use napreduce_local::process::TaskOutput;
use napreduce_local::world::Tasks;
use napreduce_protocol::{LogStream, lock};

use super::job::{JobLogs, LogFiles, find_kept, keep_left};
use crate::shuffle::LogExtent;
use crate::worker::paths::WorkerPaths;

/// Limits on the logs of ended jobs.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct LogBounds {
    pub(in crate::worker) jobs_max: usize,
    pub(in crate::worker) bytes_max: u64,
}

/// The logs of jobs.
#[derive(Debug)]
pub(in crate::worker) struct LogShelf {
    tasks: Tasks,
    bounds: LogBounds,
    /// Logs of unfinished jobs.
    open: Mutex<BTreeMap<JobId, Arc<JobLogs>>>,
    /// Logs of ended jobs and their bytes, oldest first.
    kept: Mutex<VecDeque<(String, u64)>>,
}

impl LogShelf {
    /// Opens log files for an attempt; the second result is for its process.
    pub(in crate::worker) fn open(
        &self,
        paths: &WorkerPaths,
        attempt: AttemptId,
        bytes_max: u64,
    ) -> io::Result<(LogFiles, TaskOutput)> {
        let job = attempt.task.job;
        let new = || Arc::new(JobLogs::new(self.tasks.clone(), paths.job_logs(job)));
        let logs = Arc::clone(self.jobs().entry(job).or_insert_with(new));
        logs.open(attempt, bytes_max)
    }

    /// Passes an attempt's output to `read` while its files are locked. Blocking.
    pub(in crate::worker) fn read<T>(
        &self,
        paths: &WorkerPaths,
        attempt: AttemptId,
        stream: LogStream,
        read: impl FnOnce(&LogExtent) -> io::Result<T>,
    ) -> io::Result<T> {
        let open = self.jobs().get(&attempt.task.job).cloned();
        match open {
            Some(logs) => logs.read(attempt, stream, read),
            None => read(&find_kept(
                &paths.job_logs(attempt.task.job),
                attempt,
                stream,
            )?),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<JobLogs>>> {
        lock(&self.open)
    }

    /// Indexes logs of an earlier daemon. Blocking.
    pub(in crate::worker) fn scan(
        tasks: Tasks,
        paths: &WorkerPaths,
        bounds: LogBounds,
    ) -> io::Result<LogShelf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(paths.logs())? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                let modified = entry
                    .metadata()?
                    .modified()
                    .unwrap_or(SystemTime::UNIX_EPOCH);
                // Output that cannot be appended stays in its file.
                if let Err(error) = keep_left(&entry.path()) {
                    tracing::warn!(target: "worker", "logs in {}: {error}", entry.path().display());
                }
                found.push((modified, name, size(&entry.path())));
            }
        }
        found.sort();
        let kept = found
            .into_iter()
            .map(|(_, name, bytes)| (name, bytes))
            .collect();
        let shelf = LogShelf {
            tasks,
            bounds,
            open: Mutex::default(),
            kept: Mutex::new(kept),
        };
        shelf.keep_bounds(paths, &mut shelf.kept());
        Ok(shelf)
    }

    /// Adds an ended job. Blocking.
    pub(in crate::worker) fn add(&self, paths: &WorkerPaths, job: JobId) {
        if let Some(logs) = self.jobs().remove(&job) {
            logs.finish();
        }
        let bytes = size(&paths.job_logs(job));
        let mut kept = self.kept();
        let name = job.to_string();
        kept.retain(|(other, _)| *other != name);
        kept.push_back((name, bytes));
        self.keep_bounds(paths, &mut kept);
    }

    /// Forgets all logs after their removal.
    pub(in crate::worker) fn clear(&self) {
        self.jobs().clear();
        self.kept().clear();
    }

    fn keep_bounds(&self, paths: &WorkerPaths, kept: &mut VecDeque<(String, u64)>) {
        let mut bytes: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        while kept.len() > self.bounds.jobs_max || bytes > self.bounds.bytes_max {
            let Some((name, length)) = kept.pop_front() else {
                break;
            };
            bytes -= length;
            // Leftovers are found by the next daemon.
            let _ = fs::remove_dir_all(paths.logs().join(name));
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(String, u64)>> {
        // After a panic at worst an entry is missing, which the next daemon finds.
        lock(&self.kept)
    }
}

/// Returns the bytes of all visible files below a directory.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
