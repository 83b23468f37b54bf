//! The logs of one job on one worker. Attempts reuse a few slot files; when an attempt ends, its output is
//! appended to the job's log.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_engine::AttemptId;
use napreduce_local::process::TaskOutput;
use napreduce_local::worker::AttemptLogs;
use napreduce_local::world::Tasks;
use napreduce_protocol::{IoResult, LogStream, lock, read_regular};

use super::bounded::BoundedLog;
use super::index::{self, IndexEntry};
use crate::shuffle::LogExtent;

/// Maximum length of the file with an attempt's name.
const NAME_FILE_BYTES_MAX: u64 = 4 << 10;
/// Maximum bytes of a failed attempt's stderr that are sent to the coordinator.
const TOLD_BYTES_MAX: u64 = 64 << 10;
/// Fixed size of an attempt's name in its file.
const NAME_BYTES: usize = 64;

/// Logs of a job's attempts.
#[derive(Debug)]
pub(super) struct JobLogs {
    tasks: Tasks,
    directory: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Opened when the first attempt has printed something.
    kept: Option<Kept>,
    idle: Vec<Slot>,
    /// Slots created so far.
    made: u32,
    /// The slot of each running attempt.
    running: BTreeMap<AttemptId, u32>,
    /// Whether the job has ended.
    over: bool,
}

/// Log files reused by one attempt after another.
#[derive(Debug)]
struct Slot {
    number: u32,
    name: File,
    stdout: File,
    stderr: File,
}

impl JobLogs {
    pub(super) fn new(tasks: Tasks, directory: PathBuf) -> JobLogs {
        JobLogs {
            tasks,
            directory,
            state: Mutex::default(),
        }
    }

    /// Opens the files of an attempt; the second result is for its process.
    pub(super) fn open(
        self: &Arc<JobLogs>,
        attempt: AttemptId,
        bytes_max: u64,
    ) -> io::Result<(LogFiles, TaskOutput)> {
        let mut state = self.state();
        let slot = match state.idle.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.make(state.made)?;
                state.made += 1;
                slot
            }
        };
        let output = TaskOutput {
            stdout: slot.stdout.try_clone()?,
            stderr: slot.stderr.try_clone()?,
        };
        let mut name = attempt.to_string().into_bytes();
        name.resize(NAME_BYTES, b' ');
        name[NAME_BYTES - 1] = b'\n';
        slot.name.write_all_at(&name, 0)?;
        state.running.insert(attempt, slot.number);
        let [stdout, stderr] =
            [slot.stdout, slot.stderr].map(|file| BoundedLog::new(file, bytes_max));
        let logs = LogFiles {
            job: Arc::clone(self),
            attempt,
            number: slot.number,
            name: slot.name,
            stdout,
            stderr,
        };
        Ok((logs, output))
    }

    fn make(&self, number: u32) -> io::Result<Slot> {
        let running = running_in(&self.directory);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&running)?;
        let stream = |stream| {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600)
                .open(stream_path(&running, number, stream))
        };
        let stdout = stream(LogStream::Stdout)?;
        let stderr = stream(LogStream::Stderr)?;
        let name = running.join(format!("{number}.attempt"));
        let name = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(name)?;
        Ok(Slot {
            number,
            name,
            stdout,
            stderr,
        })
    }

    /// Passes an attempt's output so far to `read`; the files are not moved meanwhile.
    pub(super) fn read<T>(
        &self,
        attempt: AttemptId,
        stream: LogStream,
        read: impl FnOnce(&LogExtent) -> io::Result<T>,
    ) -> io::Result<T> {
        let state = self.state();
        let extent = match state.running.get(&attempt) {
            Some(number) => {
                let path = stream_path(&running_in(&self.directory), *number, stream);
                LogExtent {
                    path,
                    offset: 0,
                    bytes: None,
                }
            }
            None => find_kept(&self.directory, attempt, stream)?,
        };
        read(&extent)
    }

    /// Marks the job as ended; its last attempts may end later.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.over = true;
        self.tidy_up(&mut state);
    }

    fn tidy_up(&self, state: &mut State) {
        if state.over && state.running.is_empty() {
            state.idle.clear();
            // Files that cannot be removed are empty, and are removed with the job's logs.
            let _ = fs::remove_dir_all(running_in(&self.directory));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic at worst a slot is not reused.
        lock(&self.state)
    }
}

/// The two streams of a running attempt.
#[derive(Debug)]
pub(in crate::worker) struct LogFiles {
    job: Arc<JobLogs>,
    attempt: AttemptId,
    number: u32,
    name: File,
    stdout: BoundedLog,
    stderr: BoundedLog,
}

impl AttemptLogs for LogFiles {
    /// Truncates logs that exceed their limit.
    fn keep_bound(&mut self) {
        for log in [&mut self.stdout, &mut self.stderr] {
            // A failed truncation must not end an attempt; the next try may succeed.
            let _ = log.keep_bound();
        }
    }

    /// Returns the end of its stderr, if any, which the coordinator stores in case this worker leaves. If the
    /// text is truncated, its first line gives the omitted length.
    fn end_of_stderr(&self) -> Option<String> {
        // Unreadable output is still on this worker.
        let (last, before) = self
            .stderr
            .last(TOLD_BYTES_MAX)
            .ok()
            .filter(|(last, _)| !last.is_empty())?;
        let last = String::from_utf8_lossy(&last);
        Some(match before {
            0 => last.into_owned(),
            before => {
                format!("[napreduce: the first {before} bytes of this stream are omitted]\n{last}")
            }
        })
    }

    fn close(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin((*self).close())
    }
}

impl LogFiles {
    /// Closes the files of an ended attempt and appends its output to the job's log.
    pub(super) async fn close(mut self) {
        self.keep_bound();
        let silent = [&self.stdout, &self.stderr]
            .into_iter()
            .all(|log| log.bytes().is_ok_and(|bytes| bytes == 0));
        if silent {
            return self.make_room(Ok(()));
        }
        // Off the loop's thread. A panic has been printed and leaves the files in place.
        let tasks = self.job.tasks.clone();
        let keeping = tasks.blocking(move || {
            let kept = self.keep();
            self.make_room(kept);
        });
        let _ = keeping.await;
    }

    /// Appends the output to the job's log and empties the files.
    fn keep(&self) -> io::Result<()> {
        let running = running_in(&self.job.directory);
        let mut state = self.job.state();
        let kept = match &mut state.kept {
            Some(kept) => kept,
            none => none.insert(Kept::open(&self.job.directory)?),
        };
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            kept.keep(
                &self.attempt.to_string(),
                stream,
                &stream_path(&running, self.number, stream),
            )?;
        }
        for log in [&self.stdout, &self.stderr] {
            log.set_empty()?;
        }
        Ok(())
    }

    /// Releases the files for the next attempt, or leaves them untouched if their content could not be kept.
    fn make_room(self, kept: io::Result<()>) {
        let LogFiles {
            job,
            attempt,
            number,
            name,
            stdout,
            stderr,
        } = self;
        if let Err(error) = kept {
            let directory = job.directory.display();
            tracing::warn!(target: "worker", %attempt, "its output stays in {directory}/running/{number}.*: {error}");
            return;
        }
        let mut state = job.state();
        state.running.remove(&attempt);
        let [stdout, stderr] = [stdout, stderr].map(|log| log.file);
        state.idle.push(Slot {
            number,
            name,
            stdout,
            stderr,
        });
        job.tidy_up(&mut state);
    }
}

/// Output of ended attempts.
#[derive(Debug)]
struct Kept {
    log: File,
    index: File,
    end: u64,
}

impl Kept {
    fn open(directory: &Path) -> io::Result<Kept> {
        let open = |path| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)
        };
        let log = open(log_path(directory))?;
        let index = open(index_path(directory))?;
        index::begin(&index)?;
        let end = log.metadata()?.len();
        Ok(Kept { log, index, end })
    }

    /// Appends a file's content under a heading. The index entry is written last, so a partial copy is never
    /// listed.
    fn keep(&mut self, attempt: &str, stream: LogStream, from: &Path) -> io::Result<()> {
        let mut from = File::open(from)?;
        if from.metadata()?.len() == 0 {
            return Ok(());
        }
        let heading = format!("==> {attempt} {stream} <==\n");
        let offset = self.end + heading.len() as u64;
        let copied = (&self.log)
            .write_all(heading.as_bytes())
            .and_then(|()| io::copy(&mut from, &mut &self.log));
        let bytes = match copied {
            Ok(bytes) => bytes,
            Err(error) => {
                // On a full disk, remove the partial copy if possible.
                self.log.set_len(self.end)?;
                return Err(error);
            }
        };
        (&self.log).write_all(b"\n")?;
        self.end = self.log.seek(SeekFrom::End(0))?;
        index::append(
            &self.index,
            &IndexEntry {
                attempt: attempt.to_owned(),
                stream,
                offset,
                bytes,
            },
        )
    }
}

/// Finds an ended attempt's output; empty if it printed nothing or never ran here.
pub(super) fn find_kept(
    directory: &Path,
    attempt: AttemptId,
    stream: LogStream,
) -> io::Result<LogExtent> {
    // Without the job's directory this worker cannot claim that nothing was printed.
    fs::metadata(directory).map_err(|error| {
        io::Error::new(error.kind(), format!("this worker has no log of {attempt}"))
    })?;
    let path = index_path(directory);
    let entry = index::find(&path, &attempt.to_string(), stream).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot read {}: {error}", path.display()),
        )
    })?;
    let (offset, bytes) = entry.map_or((0, 0), |entry| (entry.offset, entry.bytes));
    Ok(LogExtent {
        path: log_path(directory),
        offset,
        bytes: Some(bytes),
    })
}

/// Appends output that an earlier daemon left in slot files. Blocking.
pub(super) fn keep_left(directory: &Path) -> io::Result<()> {
    let running = running_in(directory);
    let Some(entries) = fs::read_dir(&running).if_there()? else {
        return Ok(());
    };
    let mut kept = Kept::open(directory)?;
    for entry in entries {
        let path = entry?.path();
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse::<u32>().ok());
        let (Some(number), Some("attempt")) = (number, path.extension().and_then(|it| it.to_str()))
        else {
            continue;
        };
        let attempt = read_regular(&path, NAME_FILE_BYTES_MAX)?;
        let attempt = String::from_utf8_lossy(&attempt);
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            kept.keep(
                attempt.trim_end(),
                stream,
                &stream_path(&running, number, stream),
            )?;
        }
    }
    fs::remove_dir_all(&running)
}

fn running_in(directory: &Path) -> PathBuf {
    directory.join("running")
}

fn log_path(directory: &Path) -> PathBuf {
    directory.join("attempts.log")
}

fn index_path(directory: &Path) -> PathBuf {
    directory.join("attempts.index")
}

fn stream_path(running: &Path, number: u32, stream: LogStream) -> PathBuf {
    running.join(format!("{number}.{stream}"))
}
