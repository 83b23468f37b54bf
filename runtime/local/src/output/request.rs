//! What a claim on an output is asked for with, and by what it is known again.

use std::path::Path;

use napreduce_engine::JobId;
use napreduce_protocol::{ClaimToken, InputSplit};
use serde::{Deserialize, Serialize};

use super::record::Owner;

/// Who wants which directory.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest<'a> {
    pub output: &'a Path,
    pub job: JobId,
    /// Of its part files.
    pub extension: &'a str,
    pub overwrite: bool,
    /// What the job reads, which its commit must not replace.
    pub splits: &'a [InputSplit],
    /// What an earlier try of the same submission left is its own.
    pub submission: u128,
    pub owner: Owner,
    /// Whether claim and commit are on the disk, not only in the page cache, before what follows from them.
    pub durable: bool,
}

/// By what a claim is known again: what a journal keeps of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClaimMark {
    pub(crate) token: ClaimToken,
    /// How many directories it made: the output directory, its parent and so on.
    pub(super) made: u32,
    /// The inode of the output directory. Another one in its place is not it: its storage may not be mounted.
    pub(super) root: u64,
}

impl ClaimMark {
    /// That of an output in a store, which has no directories.
    pub(super) fn of_store(token: ClaimToken) -> ClaimMark {
        ClaimMark { token, ..ClaimMark::default() }
    }
}

/// What became of a claim while nobody looked after it.
#[derive(Debug)]
pub enum Resumed<C> {
    Claimed(Box<C>),
    /// Its commit is complete.
    Settled,
    /// All that belonged to it was removed.
    Gone,
}

impl<C> Resumed<C> {
    pub(super) fn map<D>(self, act: impl FnOnce(C) -> D) -> Resumed<D> {
        match self {
            Resumed::Claimed(claim) => Resumed::Claimed(Box::new(act(*claim))),
            Resumed::Settled => Resumed::Settled,
            Resumed::Gone => Resumed::Gone,
        }
    }
}
