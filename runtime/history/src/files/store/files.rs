//! The two files of a job: names, atomic writes, listing and removal.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::UNIX_EPOCH;

use napreduce_engine::JobId;
use napreduce_protocol::whole_nanos;

use crate::files::head::JobFiles;
use crate::files::index::Stamp;
use crate::files::recording::{
    FORMER_RECORDING, HistoryError, RECORDING, RecordedRows, RecordingError, RecordingWriter,
};

/// The suffix of an incomplete file.
const UNFINISHED: &str = ".unfinished";
const HEAD: &str = ".json";

pub(crate) fn head_name(job: JobId) -> String {
    format!("{job}{HEAD}")
}

pub(crate) fn recording_name(job: JobId) -> String {
    format!("{job}{RECORDING}")
}

/// Lists the jobs that have heads, with the stamps of their files, and removes incomplete files.
pub(super) fn list(directory: &Path) -> io::Result<BTreeMap<JobId, Stamp>> {
    fs::create_dir_all(directory)?;
    let mut heads = BTreeMap::new();
    let mut recordings = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if let Some(job) = job_of(name, HEAD) {
            heads.insert(job, stamp_of(&entry.metadata()?)?);
        } else if let Some(job) = job_of(name, RECORDING).or_else(|| job_of(name, FORMER_RECORDING))
        {
            *recordings.entry(job).or_insert(0) += entry.metadata()?.len();
        } else if job_of(name, &[HEAD, UNFINISHED].concat()).is_some()
            || job_of(name, &[RECORDING, UNFINISHED].concat()).is_some()
        {
            // The job, if it still exists, is written again.
            let _ = fs::remove_file(entry.path());
        }
    }
    for (job, stamp) in &mut heads {
        stamp.recording_bytes = recordings.get(job).copied().unwrap_or(0);
    }
    Ok(heads)
}

/// Parses the name of a head.
pub(crate) fn job_of_head(name: &str) -> Option<JobId> {
    job_of(name, HEAD)
}

/// Parses a file name with this suffix.
fn job_of(name: &str, ending: &str) -> Option<JobId> {
    let number = name.strip_prefix("job_")?.strip_suffix(ending)?;
    let job = JobId(number.parse().ok()?);
    // Reject other spellings of the number.
    (format!("{job}{ending}") == name).then_some(job)
}

/// Writes both files of a job and waits until they are on disk.
pub(super) fn write(
    directory: &Path,
    job: JobId,
    contents: &JobFiles<'_>,
) -> Result<Stamp, HistoryError> {
    let [recording, head] = unfinished(directory, job, contents)?;
    // Sync both at once, so that the client waits for the disk once.
    let (head_synced, recording_synced) = thread::scope(|scope| {
        let recording = scope.spawn(|| recording.sync());
        (head.sync(), recording.join())
    });
    head_synced.and(recording_synced.unwrap_or_else(|panic| resume_unwind(panic)))?;
    let recording_bytes = recording.finish()?.len();
    let stamp = head.finish()?;
    // Both names are on disk before the coordinator drops the job.
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| HistoryError::new(directory, error.into()))?;
    let stamp = stamp_of(&stamp).map_err(|error| HistoryError::new(directory, error.into()))?;
    Ok(Stamp {
        recording_bytes,
        ..stamp
    })
}

/// Writes both files of a simulated job without syncing: the job can be simulated again.
pub(super) fn write_unsynced(
    directory: &Path,
    job: JobId,
    contents: &JobFiles<'_>,
) -> Result<(), HistoryError> {
    for file in unfinished(directory, job, contents)? {
        file.finish()?;
    }
    Ok(())
}

/// Writes both files under temporary names; the caller renames the recording before the head.
fn unfinished(
    directory: &Path,
    job: JobId,
    contents: &JobFiles<'_>,
) -> Result<[Unfinished; 2], HistoryError> {
    let recording = Unfinished::write(directory.join(recording_name(job)), |out| {
        write_rows(out, contents)
    })?;
    let head = Unfinished::write(directory.join(head_name(job)), |out| {
        Ok(out.write_all(&contents.head)?)
    })?;
    Ok([recording, head])
}

/// Returns the stamp of a job without a recording.
fn stamp_of(head: &Metadata) -> io::Result<Stamp> {
    let modified = head
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let head_modified_nanos = whole_nanos(modified);
    Ok(Stamp {
        head_bytes: head.len(),
        head_modified_nanos,
        recording_bytes: 0,
    })
}

/// A file under a temporary name; dropping it removes the file unless it was finished.
struct Unfinished {
    path: PathBuf,
    unfinished: PathBuf,
    file: File,
}

impl Unfinished {
    fn write(
        path: PathBuf,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<(), RecordingError>,
    ) -> Result<Unfinished, HistoryError> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(UNFINISHED);
        let unfinished = PathBuf::from(unfinished);
        let written = || {
            let mut out = BufWriter::new(File::create(&unfinished)?);
            write(&mut out)?;
            Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?)
        };
        match written() {
            Ok(file) => Ok(Unfinished {
                path,
                unfinished,
                file,
            }),
            Err(source) => {
                // On a full disk the leftover would take space from other files.
                let _ = fs::remove_file(&unfinished);
                Err(HistoryError::new(&path, source))
            }
        }
    }

    fn sync(&self) -> Result<(), HistoryError> {
        self.file
            .sync_data()
            .map_err(|error| HistoryError::new(&self.path, error.into()))
    }

    /// Renames the file to its final name and returns its metadata.
    fn finish(self) -> Result<Metadata, HistoryError> {
        let finished = fs::rename(&self.unfinished, &self.path).and_then(|()| self.file.metadata());
        finished.map_err(|error| HistoryError::new(&self.path, error.into()))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Fails after a rename, as it should.
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn write_rows(out: &mut BufWriter<File>, contents: &JobFiles<'_>) -> Result<(), RecordingError> {
    let mut recording = RecordingWriter::new(out);
    recording.add("attempt", &contents.detail.attempts)?;
    recording.add("preemption", &contents.detail.preemptions)?;
    recording.add("resume", &contents.detail.resumes)?;
    recording.add("restore", &contents.detail.restores)?;
    recording.add("log", contents.logs)?;
    recording.add("event", &contents.detail.events)?;
    recording.add("part", contents.parts)?;
    recording.add("counter", &contents.counters)?;
    recording.add("reason", contents.reason.as_slice())?;
    recording.finish()?;
    Ok(())
}

/// Reads the rows of a job; failures become warnings.
pub(crate) fn read_rows(path: &Path) -> RecordedRows {
    let error = match RecordedRows::open(path) {
        Ok(rows) => return rows,
        Err(error) => error,
    };
    let name = path
        .file_name()
        .and_then(OsStr::to_str)
        .and_then(|name| name.strip_suffix(RECORDING));
    let former = name.map(|name| format!("{name}{FORMER_RECORDING}"));
    let remark = match former.filter(|former| path.with_file_name(former).is_file()) {
        Some(former) => format!("{former}: {}", RecordingError::Former),
        None => error.to_string(),
    };
    RecordedRows {
        remarks: vec![remark],
        ..RecordedRows::default()
    }
}

/// Removes the files of a job; missing files are not an error.
pub(super) fn remove(directory: &Path, job: JobId) -> Result<(), HistoryError> {
    for name in [
        format!("{job}{FORMER_RECORDING}"),
        recording_name(job),
        head_name(job),
    ] {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(HistoryError::new(&path, error.into()));
            }
            _ => {}
        }
    }
    Ok(())
}
