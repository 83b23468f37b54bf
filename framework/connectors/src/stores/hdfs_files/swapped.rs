//! A small file with compare-and-swap: it is replaced only if it has an expected version, or created only if
//! it does not exist. Of concurrent writers one succeeds.
//!
//! It is built from renames, which the NameNode serializes.
//!
//! ```text
//! claim.json/7        content of version 7; never rewritten
//! claim.json/at-7     marker: version 7 is current
//! ```
//!
//! The file is a directory. Creation renames a prepared directory to this name, which fails if the name
//! exists. A replacement of version 7 first writes `claim.json/8` completely; then it renames `at-7` to
//! `at-8`, which only one writer can do. There is always exactly one marker and no lock, so a killed writer
//! does not block others: its file is either current or ignored, and is removed with the directory.

use napreduce_protocol::PutCondition;

use super::layout::{MARK, Places};
use super::small::{draw, read_small, remove, write_small};
use crate::stores::hdfs::{CHANGED, Hdfs, MISSING, ask};
use crate::stores::requests::Failure;

/// Tries to read a version that is replaced meanwhile.
const LOOKS_MAX: usize = 16;

/// One version of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) version: String,
    pub(super) bytes: Vec<u8>,
    /// Seconds since 1970, by the clock of the NameNode.
    pub(super) modified: i64,
}

/// Returns the current version; `None` if the file does not exist.
pub(super) async fn current(hdfs: &Hdfs, versions: &str) -> Result<Option<Current>, Failure> {
    for _ in 0..LOOKS_MAX {
        let Some(version) = mark(hdfs, versions).await? else {
            return Ok(None);
        };
        match read_small(hdfs, &format!("{versions}/{version}")).await {
            Ok((bytes, status)) => {
                let modified = (status.modification_time / 1000) as i64;
                return Ok(Some(Current {
                    version,
                    bytes,
                    modified,
                }));
            }
            Err(failure) if failure == MISSING => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Broken(
        "other writers keep changing the file".to_owned(),
    ))
}

/// Returns the current version number.
async fn mark(hdfs: &Hdfs, versions: &str) -> Result<Option<String>, Failure> {
    let Some(entries) = hdfs.entries(versions).await? else {
        return Ok(None);
    };
    let names = entries
        .iter()
        .filter_map(|entry| entry.path.rsplit('/').next());
    let marked = names
        .filter_map(|name| name.strip_prefix(MARK))
        .next()
        .map(str::to_owned);
    marked
        .map(Some)
        .ok_or_else(|| Failure::Odd("a directory without a marker".to_owned()))
}

/// One change. It can be retried until its outcome is known, and is applied at most once.
#[derive(Debug)]
pub(super) struct Swap {
    versions: String,
    /// The path at which the first version is prepared.
    writing: String,
    /// The version that the change creates.
    version: String,
    expected: Option<String>,
    bytes: Vec<u8>,
}

impl Swap {
    /// Returns `None` for a file without versions.
    pub(super) fn new(places: &Places, bytes: &[u8], condition: PutCondition<'_>) -> Option<Swap> {
        let expected = match condition {
            PutCondition::Always => return None,
            PutCondition::Absent => None,
            PutCondition::Version(version) => Some(version.to_owned()),
        };
        let versions = places.versions()?;
        let version = draw();
        Some(Swap {
            versions,
            writing: places.writing(&version),
            version,
            expected,
            bytes: bytes.to_vec(),
        })
    }

    /// Tries the change once. Returns the new version, or `None` if the condition is not met.
    pub(super) async fn run(&self, hdfs: &Hdfs) -> Result<Option<String>, Failure> {
        let outcome = match &self.expected {
            None => self.first(hdfs).await,
            Some(expected) => self.next(hdfs, expected).await,
        };
        let is_known = matches!(outcome, Ok(true));
        // The existing directory may be the result of this change.
        if is_known || mark(hdfs, &self.versions).await?.as_ref() == Some(&self.version) {
            return Ok(Some(self.version.clone()));
        }
        outcome.map(|_| None)
    }

    /// Creates the file if it does not exist.
    async fn first(&self, hdfs: &Hdfs) -> Result<bool, Failure> {
        let version = &self.version;
        let from = &self.writing;
        write_small(hdfs, &format!("{from}/{version}"), &self.bytes, true).await?;
        write_small(hdfs, &format!("{from}/{MARK}{version}"), b"", true).await?;
        match ask(hdfs.client.rename(from, &self.versions, false)).await {
            Ok(()) => Ok(true),
            Err(failure) if failure == CHANGED => {
                remove(hdfs, from).await?;
                Ok(false)
            }
            // The end of a claim removes prepared files.
            Err(failure) if failure == MISSING => {
                Err(Failure::Broken("the file was removed meanwhile".to_owned()))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Replaces the expected version.
    async fn next(&self, hdfs: &Hdfs, expected: &str) -> Result<bool, Failure> {
        let versions = &self.versions;
        let version = &self.version;
        let file = format!("{versions}/{version}");
        match write_small(hdfs, &file, &self.bytes, false).await {
            Ok(_) => {}
            Err(failure) if failure == MISSING => return Ok(false),
            Err(failure) => return Err(failure),
        }
        let from = format!("{versions}/{MARK}{expected}");
        let to = format!("{versions}/{MARK}{version}");
        match ask(hdfs.client.rename(&from, &to, false)).await {
            Ok(()) => {
                // A leftover file is harmless.
                let _ = remove(hdfs, &format!("{versions}/{expected}")).await;
                Ok(true)
            }
            Err(failure) if failure == MISSING || failure == CHANGED => {
                if mark(hdfs, versions).await?.as_ref() != Some(version) {
                    remove(hdfs, &file).await?;
                }
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }
}
