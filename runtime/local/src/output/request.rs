//! The parameters of a claim on an output, and the identity by which it is resumed.

use std::path::Path;

use napreduce_engine::JobId;
use napreduce_protocol::{ClaimToken, InputSplit};
use serde::{Deserialize, Serialize};

use super::record::Owner;

/// The parameters of a claim.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest<'a> {
    pub output: &'a Path,
    pub job: JobId,
    /// The extension of part files.
    pub extension: &'a str,
    pub overwrite: bool,
    /// The claims of other jobs of the same coordinator. They are in use, even if the process that wrote them is dead and
    /// this one has not resumed them yet.
    pub others: &'a [ClaimToken],
    /// The job's inputs, which the commit must not replace.
    pub splits: &'a [InputSplit],
    /// Identifies the submission; a retry recognizes the files of an earlier try by it.
    pub submission: u128,
    pub owner: Owner,
    /// Whether claim and commit are synced to disk before dependent steps.
    pub durable: bool,
}

/// The journaled identity of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClaimMark {
    pub(crate) token: ClaimToken,
    /// Number of directories created: the output directory, its parent and so on.
    pub(super) made: u32,
    /// The inode of the output directory. A different inode can mean that its storage is not mounted.
    pub(super) root: u64,
}

impl ClaimMark {
    /// Returns the mark of a claim in a store, which has no directories.
    pub(super) fn of_store(token: ClaimToken) -> ClaimMark {
        ClaimMark {
            token,
            ..ClaimMark::default()
        }
    }
}
