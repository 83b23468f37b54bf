//! The claim of a run on its output, in a directory or a store.

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
use super::trouble::{ClaimError, Trouble};

/// An output claimed for this run.
#[derive(Debug)]
pub enum OutputClaim {
    Directory(DirectoryClaim),
    Store(BucketClaim),
}

/// Returns the store of an output; `None` if it is a directory.
fn in_store(output: &Path) -> Option<Result<Bucket, Trouble>> {
    StorageScheme::of(output).map(|_| Bucket::of(output).map_err(Trouble::Final))
}

/// Marks an error as the coordinator's, since the submitter's program may support the store.
fn said_by_coordinator(error: JobError, owner: Owner) -> JobError {
    match error {
        JobError::OutputUnusable { path, source } if owner == Owner::Cluster => {
            let source = io::Error::other(format!("the coordinator reported: {source}"));
            JobError::OutputUnusable { path, source }
        }
        other => other,
    }
}

impl OutputClaim {
    /// Claims an output; fails if existing content forbids it.
    pub fn take(disk: &Disk, request: &ClaimRequest<'_>) -> Result<OutputClaim, JobError> {
        match in_store(request.output) {
            None => DirectoryClaim::take(disk, request).map(OutputClaim::Directory),
            Some(bucket) => {
                let bucket = bucket.map_err(|trouble| ClaimError::from(trouble).of(request.output));
                let claim = bucket.and_then(|bucket| BucketClaim::take(bucket, request));
                claim.map(OutputClaim::Store).map_err(|error| said_by_coordinator(error, request.owner))
            }
        }
    }

    /// Resumes a claim of an earlier process, or of this one before the storage was unreachable. Creates
    /// nothing.
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

    /// Returns the data for [`OutputClaim::resume`].
    pub(crate) fn mark(&self) -> ClaimMark {
        match self {
            OutputClaim::Directory(claim) => claim.mark(),
            OutputClaim::Store(claim) => claim.mark(),
        }
    }

    /// Returns whether a check is fast unless the storage is unreachable. A store may be slow, and writers to
    /// it have already waited.
    pub(crate) fn is_soon_looked_at(&self) -> bool {
        matches!(self, OutputClaim::Directory(_))
    }

    /// Checks that the output still exists and belongs to this claim.
    pub(crate) fn verify(&self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.verify(),
            OutputClaim::Store(claim) => claim.verify(),
        }
    }

    /// Removes all files of this run; an older output is unchanged.
    pub fn discard(self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.discard(),
            OutputClaim::Store(claim) => claim.discard(),
        }
    }

    /// Removes the remaining work when the output is in place. The output does not depend on it.
    pub(crate) fn clean_up(self) -> Result<(), Trouble> {
        match self {
            OutputClaim::Directory(claim) => claim.clean_up(),
            OutputClaim::Store(claim) => claim.clean_up(),
        }
    }
}

/// Puts the parts of a successful job into place and replaces an older output. Can be repeated until it
/// succeeds.
pub(crate) fn commit(claim: &mut OutputClaim, manifest: &Manifest) -> Result<(), Trouble> {
    match claim {
        OutputClaim::Directory(claim) => commit_to_directory(claim, manifest),
        OutputClaim::Store(claim) => commit_to_store(claim, manifest),
    }
}

/// The lease that shows other hosts that the holder is alive.
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

    /// Renews the lease; must be called periodically. The next step of the job meets and reports any error.
    pub(crate) fn renew(&self) {
        match self {
            Lease::Directory(lease) => drop(lease.renew()),
            Lease::Store(lease) => drop(lease.renew()),
        }
    }
}
