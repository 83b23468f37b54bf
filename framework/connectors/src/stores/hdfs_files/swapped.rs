//! A small file that is written only if it is of a certain version, or not there: of several who try
//! it, one does.
//!
//! It is made of renames, which the NameNode carries out one after the other.
//!
//! ```text
//! claim.json/7        what version 7 says; never written again
//! claim.json/at-7     that version 7 is the one that counts
//! ```
//!
//! It is a directory, which comes into its place by a rename that refuses to replace another: that is the
//! condition that there is none. What comes after version 7 is first written as a whole beside it,
//! `claim.json/8`; then `at-7` is renamed to `at-8`, which only one can do since only one finds `at-7`: that
//! is the condition that it is of version 7. There is exactly one mark at any moment, so nobody waits for a
//! holder that died, and there is no lock that it could have left: what it has written without being heard of
//! is either what counts or a file that nobody looks at, and goes with the directory.

use napreduce_protocol::PutCondition;

use super::layout::{MARK, Places};
use super::small::{draw, read_small, remove, write_small};
use crate::stores::hdfs::{CHANGED, Hdfs, MISSING, ask};
use crate::stores::requests::Failure;

/// A version that is gone when it is read has been replaced meanwhile.
const LOOKS_MAX: usize = 16;

/// A version of such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Current {
    pub(super) version: String,
    pub(super) bytes: Vec<u8>,
    /// In seconds since 1970, by the clock of the NameNode.
    pub(super) modified: i64,
}

/// The version that counts; `None` if there is no such file.
pub(super) async fn current(hdfs: &Hdfs, versions: &str) -> Result<Option<Current>, Failure> {
    for _ in 0..LOOKS_MAX {
        let Some(version) = mark(hdfs, versions).await? else { return Ok(None) };
        match read_small(hdfs, &format!("{versions}/{version}")).await {
            Ok((bytes, status)) => {
                let modified = (status.modification_time / 1000) as i64;
                return Ok(Some(Current { version, bytes, modified }));
            }
            Err(failure) if failure == MISSING => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Broken("others write it all the time".to_owned()))
}

/// Which version counts.
async fn mark(hdfs: &Hdfs, versions: &str) -> Result<Option<String>, Failure> {
    let Some(entries) = hdfs.entries(versions).await? else { return Ok(None) };
    let names = entries.iter().filter_map(|entry| entry.path.rsplit('/').next());
    let marked = names.filter_map(|name| name.strip_prefix(MARK)).next().map(str::to_owned);
    marked.map(Some).ok_or_else(|| Failure::Odd("a directory without a mark".to_owned()))
}

/// One change, which may be asked for again and again until its outcome is known: it is carried out once.
#[derive(Debug)]
pub(super) struct Swap {
    versions: String,
    /// Where the first version is made.
    writing: String,
    /// The version that this makes.
    version: String,
    expected: Option<String>,
    bytes: Vec<u8>,
}

impl Swap {
    /// `None` of a file that is not swapped.
    pub(super) fn new(places: &Places, bytes: &[u8], condition: PutCondition<'_>) -> Option<Swap> {
        let expected = match condition {
            PutCondition::Always => return None,
            PutCondition::Absent => None,
            PutCondition::Version(version) => Some(version.to_owned()),
        };
        let (versions, version) = (places.versions()?, draw());
        Some(Swap { versions, writing: places.writing(&version), version, expected, bytes: bytes.to_vec() })
    }

    /// Tries it once: the version that it made; `None` when the condition is not met.
    pub(super) async fn run(&self, hdfs: &Hdfs) -> Result<Option<String>, Failure> {
        let outcome = match &self.expected {
            None => self.first(hdfs).await,
            Some(expected) => self.next(hdfs, expected).await,
        };
        let is_known = matches!(outcome, Ok(true));
        // It may have been this very change that is in the way of this one.
        if is_known || mark(hdfs, &self.versions).await?.as_ref() == Some(&self.version) {
            return Ok(Some(self.version.clone()));
        }
        outcome.map(|_| None)
    }

    /// Whether there was none.
    async fn first(&self, hdfs: &Hdfs) -> Result<bool, Failure> {
        let (version, from) = (&self.version, &self.writing);
        write_small(hdfs, &format!("{from}/{version}"), &self.bytes, true).await?;
        write_small(hdfs, &format!("{from}/{MARK}{version}"), b"", true).await?;
        match ask(hdfs.client.rename(from, &self.versions, false)).await {
            Ok(()) => Ok(true),
            Err(failure) if failure == CHANGED => {
                remove(hdfs, from).await?;
                Ok(false)
            }
            // Whoever ended a claim has removed what was on its way.
            Err(failure) if failure == MISSING => Err(Failure::Broken("it was removed meanwhile".to_owned())),
            Err(failure) => Err(failure),
        }
    }

    /// Whether it was of this version.
    async fn next(&self, hdfs: &Hdfs, expected: &str) -> Result<bool, Failure> {
        let (versions, version) = (&self.versions, &self.version);
        let file = format!("{versions}/{version}");
        match write_small(hdfs, &file, &self.bytes, false).await {
            Ok(_) => {}
            Err(failure) if failure == MISSING => return Ok(false),
            Err(failure) => return Err(failure),
        }
        let (from, to) = (format!("{versions}/{MARK}{expected}"), format!("{versions}/{MARK}{version}"));
        match ask(hdfs.client.rename(&from, &to, false)).await {
            Ok(()) => {
                // What stays is in nobody's way.
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
