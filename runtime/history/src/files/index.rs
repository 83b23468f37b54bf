//! The index of a history: one line of JSON per job, which a starting coordinator reads instead of all heads.
//!
//! The index only caches the heads: each row has a stamp of its head, each line a checksum, and the head of a job
//! without a valid row is read instead. Changes append lines; the file is rewritten when most lines are stale. Nothing
//! is synced, because entries lost in a power failure can be rebuilt from the heads.
//!
//! ```text
//! {"version":3}
//! {"checksum":"1a2b3c4d","job":7,"row":{"summary":{..},"token":"..","stamp":{..}}}
//! {"checksum":"5e6f7a8b","job":3,"row":null}
//! ```
//!
//! A checksum is that of its line without the checksum itself.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use napreduce_engine::JobId;
use napreduce_protocol::{JobSummary, lock, open_regular};
use serde::{Deserialize, Serialize};

use crate::files::head::in_hexadecimal;

/// Version of the rows; an index of another version is rewritten from the heads.
const INDEX_VERSION: u32 = 3;
/// What a line begins with.
const CHECKSUM: &str = "{\"checksum\":\"";
/// A longer index is not read.
const BYTES_MAX: u64 = 1 << 30;
/// Up to this many stale lines do not cause a rewrite.
const STALE_MIN: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexRow {
    pub(crate) summary: JobSummary,
    #[serde(with = "in_hexadecimal")]
    pub(crate) token: u128,
    pub(crate) stamp: Stamp,
}

/// The state of a job's files when its row was written; a row whose stamp differs is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) head_bytes: u64,
    pub(crate) head_modified_nanos: u64,
    /// 0 if there is no recording.
    pub(crate) recording_bytes: u64,
}

impl Stamp {
    /// Returns the size of both files.
    pub(crate) fn bytes(self) -> u64 {
        self.head_bytes.saturating_add(self.recording_bytes)
    }
}

#[derive(Serialize, Deserialize)]
struct Version {
    version: u32,
}

#[derive(Serialize)]
struct LineToWrite<'a> {
    job: JobId,
    row: Option<&'a IndexRow>,
}

#[derive(Deserialize)]
struct Line {
    job: JobId,
    /// `None` for a job that was removed.
    row: Option<IndexRow>,
}

/// The open index file.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    /// `None` after a failed write; the next start rewrites the file.
    file: Option<File>,
    lines: usize,
    rows: usize,
}

/// The contents of an index file.
#[derive(Default)]
struct Loaded {
    rows: BTreeMap<JobId, IndexRow>,
    lines: usize,
    damaged: usize,
}

impl Index {
    /// Opens the index, or rewrites it if it is missing or damaged; returns its rows and warnings.
    pub(crate) fn open(path: &Path) -> (Index, BTreeMap<JobId, IndexRow>, Vec<String>) {
        let mut remarks = Vec::new();
        let loaded = match load(path) {
            Ok(loaded) => loaded,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Loaded::default(),
            Err(error) => {
                remarks.push(format!("rewriting {}: {error}", path.display()));
                Loaded::default()
            }
        };
        if loaded.damaged > 0 {
            let path = path.display();
            remarks.push(format!(
                "rewriting {path}: {} damaged lines",
                loaded.damaged
            ));
        }
        let is_whole =
            loaded.damaged == 0 && loaded.lines > 0 && !is_stale(loaded.lines, loaded.rows.len());
        let file = if is_whole {
            append_to(path)
        } else {
            rewrite(path, &loaded.rows)
        };
        let file = file.map_err(|error| {
            remarks.push(format!(
                "no index of the history: {}: {error}",
                path.display()
            ));
        });
        let lines = if is_whole {
            loaded.lines
        } else {
            loaded.rows.len()
        };
        let open = Mutex::new(Open {
            file: file.ok(),
            lines,
            rows: loaded.rows.len(),
        });
        (
            Index {
                path: path.to_owned(),
                open,
            },
            loaded.rows,
            remarks,
        )
    }

    /// Adds and removes rows. After an error, which is returned once, the index is unused until the next start.
    pub(crate) fn change(
        &self,
        put: &[(JobId, IndexRow)],
        removed: &[JobId],
    ) -> Result<(), String> {
        let mut open = self.lock();
        let Some(file) = &open.file else {
            return Ok(());
        };
        let put_lines = put.iter().map(|(job, row)| LineToWrite {
            job: *job,
            row: Some(row),
        });
        let lines = put_lines.chain(removed.iter().map(|job| LineToWrite {
            job: *job,
            row: None,
        }));
        let written = text_of(lines).and_then(|text| {
            let mut file = file;
            file.write_all(&text)
        });
        open.lines += put.len() + removed.len();
        open.rows = (open.rows + put.len()).saturating_sub(removed.len());
        let written = written.and_then(|()| {
            if is_stale(open.lines, open.rows) {
                let loaded = load(&self.path)?;
                open.file = Some(rewrite(&self.path, &loaded.rows)?);
                (open.lines, open.rows) = (loaded.rows.len(), loaded.rows.len());
            }
            Ok(())
        });
        written.map_err(|error| {
            open.file = None;
            format!(
                "{} will be rewritten at the next start: {error}",
                self.path.display()
            )
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }
}

fn is_stale(lines: usize, rows: usize) -> bool {
    lines > rows.saturating_mul(2).saturating_add(STALE_MIN)
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

/// Replaces the file.
fn rewrite(path: &Path, rows: &BTreeMap<JobId, IndexRow>) -> io::Result<File> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let mut text = serde_json::to_vec(&Version {
        version: INDEX_VERSION,
    })?;
    text.push(b'\n');
    text.extend(text_of(rows.iter().map(|(job, row)| LineToWrite {
        job: *job,
        row: Some(row),
    }))?);
    // Do not write through a link or pipe of this name.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(&unfinished)?;
    let written = file
        .write_all(&text)
        .and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    Ok(file)
}

fn text_of<'a>(lines: impl Iterator<Item = LineToWrite<'a>>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        let json = serde_json::to_vec(&line)?;
        write!(text, "{CHECKSUM}{:08x}\",", crc32c::crc32c(&json))?;
        text.extend(&json[1..]);
        text.push(b'\n');
    }
    Ok(text)
}

fn load(path: &Path) -> io::Result<Loaded> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > BYTES_MAX {
        return Err(io::Error::other(format!("more than {BYTES_MAX} bytes")));
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text)?;
    // A last line without a newline was cut by a power loss, or is being written.
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let version = lines
        .next()
        .and_then(|line| serde_json::from_slice::<Version>(line).ok());
    match version.map(|version| version.version) {
        Some(INDEX_VERSION) => {}
        Some(other) => {
            let what = format!("version {other}; this program reads version {INDEX_VERSION}");
            return Err(io::Error::other(what));
        }
        None => return Err(io::Error::other("the first line has no version")),
    }
    let mut loaded = Loaded {
        lines: 1,
        ..Loaded::default()
    };
    for line in lines {
        loaded.lines += 1;
        match parse(line) {
            Some(Line {
                job,
                row: Some(row),
            }) => {
                loaded.rows.insert(job, row);
            }
            Some(Line { job, row: None }) => {
                loaded.rows.remove(&job);
            }
            None => loaded.damaged += 1,
        }
    }
    Ok(loaded)
}

/// Parses a line after verifying its checksum.
fn parse(line: &[u8]) -> Option<Line> {
    let line = line.strip_suffix(b"\n")?;
    let (checksum, rest) = line
        .strip_prefix(CHECKSUM.as_bytes())?
        .split_at_checked(8)?;
    let rest = rest.strip_prefix(b"\",")?;
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    let json = [b"{", rest].concat();
    if checksum != crc32c::crc32c(&json) {
        return None;
    }
    serde_json::from_slice(&json).ok()
}
