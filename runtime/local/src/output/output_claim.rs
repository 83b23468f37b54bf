//! The claim of a run on its output, wherever that is.
//!
//! Owns the choice between a directory and a store. Does not own what either does (`claim`, `bucket`).

use std::io;
use std::path::Path;

use napreduce_protocol::{JobError, StorageScheme};

use super::bucket::{Bucket, BucketClaim, BucketLease, commit as commit_to_store};
use super::claim::{DirectoryClaim, DirectoryLease};
use super::commit::commit as commit_to_directory;
use super::manifest::Manifest;
use super::record::Owner;
use super::request::{ClaimMark, ClaimRequest, Resumed};
use super::storage::Disk;
use super::trouble::{Trouble, refused};

/// An output that this run alone writes.
#[derive(Debug)]
pub enum OutputClaim {
    Directory(DirectoryClaim),
    Store(BucketClaim),
}

/// The stores of this program, for an output in one.
fn in_store(output: &Path) -> Option<Result<Bucket, Trouble>> {
    StorageScheme::of(output).map(|_| Bucket::of(output).map_err(Trouble::Final))
}

/// Whoever handed the job in may have what the coordinator lacks.
fn said_by_coordinator(error: JobError, owner: Owner) -> JobError {
    match error {
        JobError::OutputUnusable { path, source } if owner == Owner::Cluster => {
            let source = io::Error::other(format!("the coordinator says: {source}"));
            JobError::OutputUnusable { path, source }
        }
        other => other,
    }
}

impl OutputClaim {
    /// Claims an output, unless what is there already forbids it.
    pub fn take(disk: &Disk, request: &ClaimRequest<'_>) -> Result<OutputClaim, JobError> {
        match in_store(request.output) {
            None => DirectoryClaim::take(disk, request).map(OutputClaim::Directory),
            Some(bucket) => {
                let bucket = bucket.map_err(|trouble| refused(request.output, trouble));
                let claim = bucket.and_then(|bucket| BucketClaim::take(bucket, request));
                claim.map(OutputClaim::Store).map_err(|error| said_by_coordinator(error, request.owner))
            }
        }
    }

    /// Takes up again what an earlier process claimed, or this one before the storage was away. Nothing is
    /// made again.
    pub(crate) fn resume(
        disk: &Disk,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<OutputClaim>, Trouble> {
        Ok(match in_store(request.output) {
            None => DirectoryClaim::resume(disk, request, mark)?.map(OutputClaim::Directory),
            Some(bucket) => BucketClaim::resume(bucket?, request, mark)?.map(OutputClaim::Store),
        })
    }

    /// What to remember for [`OutputClaim::resume`].
    pub(crate) fn mark(&self) -> ClaimMark {
        match self {
            OutputClaim::Directory(claim) => claim.mark(),
            OutputClaim::Store(claim) => claim.mark(),
        }
    }

    /// Whether a look at it is over at once, unless its storage is away. A store may take its time; whoever
    /// writes there has waited for it himself.
    pub(crate) fn is_soon_looked_at(&self) -> bool {
        matches!(self, OutputClaim::Directory(_))
    }

    /// Makes sure that the output is still there and this claim's.
    pub(crate) fn verify(&self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.verify(),
            OutputClaim::Store(claim) => claim.verify(),
        }
    }

    /// Removes everything this run has made; an older output stays as it is.
    pub fn discard(self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.discard(),
            OutputClaim::Store(claim) => claim.discard(),
        }
    }

    /// Removes what is left of the work when the output is in place. The output does not depend on it.
    pub(crate) fn clean_up(self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.clean_up(),
            OutputClaim::Store(claim) => claim.clean_up(),
        }
    }
}

/// Puts the parts of a job that succeeded into place; replaces an older output. It may be called again until
/// it succeeds.
pub(crate) fn commit(claim: &mut OutputClaim, manifest: &Manifest) -> Result<(), Trouble> {
    match claim {
        OutputClaim::Directory(claim) => commit_to_directory(claim, manifest),
        OutputClaim::Store(claim) => commit_to_store(claim, manifest),
    }
}

/// Tells other hosts that the holder of a claim lives.
#[derive(Debug, Clone)]
pub(crate) enum Lease {
    Directory(DirectoryLease),
    Store(BucketLease),
}

impl Lease {
    pub(crate) fn of(claim: &OutputClaim) -> Lease {
        match claim {
            OutputClaim::Directory(claim) => Lease::Directory(DirectoryLease::of(claim)),
            OutputClaim::Store(claim) => Lease::Store(BucketLease::of(claim)),
        }
    }

    /// To be called every now and then. What hinders it is met again, and said, by the next step of the job.
    pub(crate) fn renew(&self) {
        match self {
            Lease::Directory(lease) => drop(lease.renew()),
            Lease::Store(lease) => drop(lease.renew()),
        }
    }
}
