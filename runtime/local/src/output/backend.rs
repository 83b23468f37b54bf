//! The interface of the kinds of output: a directory, and objects in a store.

use std::fmt;
use std::path::Path;

use napreduce_protocol::{ClaimToken, JobError};

use super::manifest::Manifest;
use super::request::{ClaimMark, ClaimRequest};
use super::trouble::{ClaimError, Trouble};

/// A kind of storage for outputs.
pub(super) trait OutputBackend {
    /// Checks, without changes, whether a run could claim the output now.
    fn check(&self, output: &Path, overwrite: bool) -> Result<(), ClaimError>;

    /// Claims the output; fails if existing content forbids it.
    fn take(&self, request: &ClaimRequest<'_>) -> Result<Box<dyn OutputClaim>, JobError>;

    /// Resumes a claim of an earlier process, or of this one before the storage was unreachable. Creates
    /// nothing.
    fn resume(
        &self,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<dyn OutputClaim>, Trouble>;

    /// Renews the lease of a claim, which shows other hosts that the holder is alive. Changes nothing if the output
    /// does not belong to the claim.
    fn renew(&self, output: &Path, token: ClaimToken) -> Result<(), Trouble>;
}

/// An output claimed for this run.
pub trait OutputClaim: fmt::Debug + Send {
    /// Returns the data for resuming the claim.
    fn mark(&self) -> ClaimMark;

    /// Returns whether a check is fast unless the storage is unreachable. A store may be slow, and writers to
    /// it have already waited.
    fn is_quick_to_check(&self) -> bool;

    /// Checks that the output still exists and belongs to this claim.
    fn verify(&self) -> Result<(), Trouble>;

    /// Returns whether the intent of the commit is recorded.
    fn has_intent(&self) -> bool;

    /// Records the intent of the commit. Nothing of an older output is touched.
    fn begin(&mut self, manifest: &Manifest) -> Result<(), Trouble>;

    /// Carries out the remaining steps of the recorded intent; each can be repeated by any process.
    fn roll_forward(&self) -> Result<(), Trouble>;

    /// Puts the parts of a successful job into place and replaces an older output. If this fails before the
    /// intent is recorded, nothing old was touched; afterwards it must be called again.
    fn commit(&mut self, manifest: &Manifest) -> Result<(), Trouble> {
        self.verify()?;
        if !self.has_intent() {
            self.begin(manifest)?;
        }
        self.roll_forward()
    }

    /// Removes all files of this run; an older output is unchanged.
    fn discard(self: Box<Self>) -> Result<(), Trouble>;

    /// Removes the remaining work when the output is in place. The output does not depend on it.
    fn clean_up(self: Box<Self>) -> Result<(), Trouble>;
}

/// The result of resuming a claim.
#[derive(Debug)]
pub enum Resumed<C: ?Sized> {
    Claimed(Box<C>),
    /// Its commit is complete.
    Settled,
    /// All of its files were removed.
    Gone,
}

impl<C: OutputClaim + 'static> From<Resumed<C>> for Resumed<dyn OutputClaim> {
    fn from(resumed: Resumed<C>) -> Resumed<dyn OutputClaim> {
        match resumed {
            Resumed::Claimed(claim) => Resumed::Claimed(claim),
            Resumed::Settled => Resumed::Settled,
            Resumed::Gone => Resumed::Gone,
        }
    }
}
