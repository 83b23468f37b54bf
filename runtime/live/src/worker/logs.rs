//! What task processes print: files within bounds.
//!
//! Owns the bound of one stream, kept by cutting the file now and then since the processes write it themselves, and the
//! bound of all logs together, kept by removing those of the oldest jobs. Does not own where they are (`paths`).

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use napreduce_core::{AttemptId, JobId};
use napreduce_task::TaskOutput;

use super::paths::WorkerPaths;

/// The two streams of one attempt.
#[derive(Debug)]
pub(super) struct AttemptLogs {
    stdout: BoundedLog,
    stderr: BoundedLog,
}

impl AttemptLogs {
    /// Makes the files of an attempt; the second result is for its process.
    pub(super) fn open(
        paths: &WorkerPaths,
        attempt: AttemptId,
        bytes_max: u64,
    ) -> io::Result<(AttemptLogs, TaskOutput)> {
        let directory = paths.attempt_logs(attempt);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let (stdout, for_stdout) = BoundedLog::open(&directory.join("stdout"), bytes_max)?;
        let (stderr, for_stderr) = BoundedLog::open(&directory.join("stderr"), bytes_max)?;
        Ok((AttemptLogs { stdout, stderr }, TaskOutput { stdout: for_stdout, stderr: for_stderr }))
    }

    /// Cuts what is longer than it may be.
    pub(super) fn keep_bound(&mut self) {
        for log in [&mut self.stdout, &mut self.stderr] {
            // A log that cannot be cut must not end an attempt; the next try may succeed.
            let _ = log.keep_bound();
        }
    }
}

/// One file, which the task process appends to.
#[derive(Debug)]
struct BoundedLog {
    file: File,
    bytes_max: u64,
    was_cut: bool,
}

impl BoundedLog {
    fn open(path: &Path, bytes_max: u64) -> io::Result<(BoundedLog, File)> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let theirs = file.try_clone()?;
        Ok((BoundedLog { file, bytes_max, was_cut: false }, theirs))
    }

    /// The beginning is kept and says that the rest is not. What the process appends meanwhile is cut the next time: it
    /// appends, so there is no hole.
    fn keep_bound(&mut self) -> io::Result<()> {
        let farewell = format!(
            "\n[napreduce: only the first {} bytes of this stream are kept; the rest was dropped]\n",
            self.bytes_max
        );
        let said = if self.was_cut { farewell.len() as u64 } else { 0 };
        if self.file.metadata()?.len() <= self.bytes_max.saturating_add(said) {
            return Ok(());
        }
        self.file.set_len(self.bytes_max)?;
        self.was_cut = true;
        self.file.write_all(farewell.as_bytes())
    }
}

/// How much is kept of all jobs that have ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogBounds {
    pub(super) jobs_max: usize,
    pub(super) bytes_max: u64,
}

/// The logs of jobs that have ended, the oldest in front.
#[derive(Debug)]
pub(super) struct LogShelf {
    bounds: LogBounds,
    kept: Mutex<VecDeque<(String, u64)>>,
}

impl LogShelf {
    /// What an earlier daemon has left. Blocking.
    pub(super) fn scan(paths: &WorkerPaths, bounds: LogBounds) -> io::Result<LogShelf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(paths.logs())? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                let modified = entry.metadata()?.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((modified, name, size(&entry.path())));
            }
        }
        found.sort();
        let kept = found.into_iter().map(|(_, name, bytes)| (name, bytes)).collect();
        let shelf = LogShelf { bounds, kept: Mutex::new(kept) };
        shelf.keep_bounds(paths, &mut shelf.kept());
        Ok(shelf)
    }

    /// A job has ended here. Blocking.
    pub(super) fn add(&self, paths: &WorkerPaths, job: JobId) {
        let bytes = size(&paths.job_logs(job));
        let mut kept = self.kept();
        let name = job.to_string();
        kept.retain(|(other, _)| *other != name);
        kept.push_back((name, bytes));
        self.keep_bounds(paths, &mut kept);
    }

    /// All of them were removed.
    pub(super) fn clear(&self) {
        self.kept().clear();
    }

    fn keep_bounds(&self, paths: &WorkerPaths, kept: &mut VecDeque<(String, u64)>) {
        let mut bytes: u64 = kept.iter().map(|(_, bytes)| bytes).sum();
        while kept.len() > self.bounds.jobs_max || bytes > self.bounds.bytes_max {
            let Some((name, length)) = kept.pop_front() else { break };
            bytes -= length;
            // What cannot be removed now is found by the next daemon.
            let _ = fs::remove_dir_all(paths.logs().join(name));
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<(String, u64)>> {
        // At worst an entry is missing, which the next daemon finds.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of all files below, as far as they can be seen.
fn size(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use napreduce_core::{TaskId, TaskKind};

    use super::*;

    fn attempt(job: u32) -> AttemptId {
        AttemptId { task: TaskId { job: JobId(job), kind: TaskKind::Map, index: 0 }, number: 1 }
    }

    #[test]
    fn a_stream_keeps_its_beginning_and_says_so() {
        let place = tempfile::tempdir().expect("a directory");
        let paths = WorkerPaths::new(place.path());
        let (mut logs, mut output) = AttemptLogs::open(&paths, attempt(1), 10).expect("files");
        let text = || fs::read_to_string(paths.attempt_logs(attempt(1)).join("stdout")).expect("a log");
        output.stdout.write_all(b"0123456789").expect("written");
        logs.keep_bound();
        assert_eq!(text(), "0123456789");
        for _ in 0..3 {
            output.stdout.write_all(b"more").expect("written");
            logs.keep_bound();
            let rest =
                "\n[napreduce: only the first 10 bytes of this stream are kept; the rest was dropped]\n";
            assert_eq!(text(), format!("0123456789{rest}"));
        }
    }

    #[test]
    fn logs_of_the_oldest_jobs_make_room() {
        let place = tempfile::tempdir().expect("a directory");
        let paths = WorkerPaths::new(place.path());
        fs::create_dir(paths.logs()).expect("made");
        let bounds = LogBounds { jobs_max: 3, bytes_max: 25 };
        let names = || {
            let entries = fs::read_dir(paths.logs()).expect("a directory");
            let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
            names.sort();
            names
        };
        let shelf = LogShelf::scan(&paths, bounds).expect("a shelf");
        for (job, bytes) in [(1, 1), (2, 1), (3, 1), (4, 10), (5, 20)] {
            let (_, mut output) = AttemptLogs::open(&paths, attempt(job), 100).expect("files");
            output.stderr.write_all(&vec![b'x'; bytes]).expect("written");
            shelf.add(&paths, JobId(job));
        }
        assert_eq!(names(), ["job_0005"]);
        let (_, _) = AttemptLogs::open(&paths, attempt(6), 100).expect("files");
        LogShelf::scan(&paths, LogBounds { jobs_max: 1, bytes_max: 25 }).expect("a shelf");
        assert_eq!(names(), ["job_0006"]);
    }
}
