//! The index of a job's logs: a JSON line with the version, then one for each non-empty stream. An incomplete
//! line, as a crash may leave, is skipped.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use napreduce_protocol::{IoResult, LogStream, read_regular};
use serde::{Deserialize, Serialize};

const INDEX_VERSION: u32 = 1;
/// Maximum length of an index.
const BYTES_MAX: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
struct Heading {
    version: u32,
}

/// The location of an attempt's output on one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexEntry {
    pub(super) attempt: String,
    pub(super) stream: LogStream,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Prepares the file for appending entries.
pub(super) fn begin(mut file: &File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return append_line(
            file,
            &Heading {
                version: INDEX_VERSION,
            },
        );
    }
    // Ends an incomplete line.
    file.write_all(b"\n")
}

pub(super) fn append(file: &File, entry: &IndexEntry) -> io::Result<()> {
    append_line(file, entry)
}

fn append_line(mut file: &File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Returns the last entry of an attempt's stream; `None` if it printed nothing.
pub(super) fn find(
    path: &Path,
    attempt: &str,
    stream: LogStream,
) -> io::Result<Option<IndexEntry>> {
    let Some(bytes) = read_regular(path, BYTES_MAX).if_there()? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes);
    let heading = text
        .lines()
        .next()
        .and_then(|line| serde_json::from_str::<Heading>(line).ok());
    match heading {
        Some(Heading {
            version: INDEX_VERSION,
        }) => {}
        Some(Heading { version }) => {
            return Err(io::Error::other(format!(
                "unsupported version {version} (expected {INDEX_VERSION})"
            )));
        }
        None => return Err(io::Error::other("it has no version")),
    }
    let lines = text.lines().rev().filter(|line| line.contains(attempt));
    let mut entries = lines.filter_map(|line| serde_json::from_str::<IndexEntry>(line).ok());
    Ok(entries.find(|entry| entry.attempt == attempt && entry.stream == stream))
}
