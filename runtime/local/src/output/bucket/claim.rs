//! The claim of a run on an output in a store: taking it, resuming it after a restart, its lease, and its
//! removal.
//!
//! Writes of `claim.json` are conditional on the version last read, so that only one of two writers succeeds.
//! Objects cannot be locked; a holder shows that it is alive by rewriting the claim periodically, and the age
//! of the object counts.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use napreduce_protocol::{ClaimToken, JobError, PutCondition};

use super::super::holder::Holding;
use super::super::layout::{JobPaths, SUCCESS};
use super::super::manifest::Written;
use super::super::record::{ClaimRecord, Owner, Step};
use super::super::request::{ClaimMark, ClaimRequest, Resumed};
use super::super::trouble::{ClaimError, Trouble};
use super::super::whose::Whose;
use super::obstacles::{is_occupied, make_way};
use super::place::{Bucket, CLAIM, is_remains};
use crate::process::ProcessIdentity;

/// Conflicts are rare: others write the claim only to take it, and this process only to renew its lease.
const TRIES_MAX: usize = 8;

/// An output claimed for this run.
#[derive(Debug)]
pub struct BucketClaim {
    pub(super) bucket: Bucket,
    paths: JobPaths,
    pub(super) record: ClaimRecord,
    _holding: Holding,
    _work: LocalWork,
}

/// Local work of an embedded job whose output is in a store; removed on drop.
#[derive(Debug)]
struct LocalWork(Option<PathBuf>);

impl Drop for LocalWork {
    fn drop(&mut self) {
        // A failed removal is harmless.
        self.0.take().map(fs::remove_dir_all);
    }
}

/// Reads the claim again and interprets a missing one.
pub(super) fn whose(bucket: &Bucket, token: ClaimToken) -> Result<Whose, Trouble> {
    if let Some((text, _)) = bucket.get(CLAIM)? {
        let record = parse(bucket, &text)?;
        return match record.token == token {
            true => Ok(Whose::Own(record)),
            false => Err(Trouble::Taken { by: record.to_string() }),
        };
    }
    match bucket.get(SUCCESS)?.map(|(text, _)| Written::parse(&text)) {
        None => Ok(Whose::Gone),
        Some(written) if written.claim == Some(token) => Ok(Whose::Settled),
        Some(written) => Err(Trouble::Taken { by: written.writer() }),
    }
}

fn parse(bucket: &Bucket, text: &[u8]) -> Result<ClaimRecord, Trouble> {
    let path = bucket.shown(CLAIM);
    ClaimRecord::parse(text, Path::new(&path)).map_err(|error| Trouble::Final(error.to_string()))
}

impl BucketClaim {
    /// Claims an output; fails if existing content forbids it.
    pub(crate) fn take(bucket: Bucket, request: &ClaimRequest<'_>) -> Result<BucketClaim, JobError> {
        let claim = BucketClaim::put(bucket, request).map_err(|error| error.of(request.output))?;
        match claim.settle_in(request) {
            Ok(()) => Ok(claim),
            Err(error) => {
                // Report the original error, not this one.
                let _ = claim.discard();
                Err(error)
            }
        }
    }

    fn put(bucket: Bucket, request: &ClaimRequest<'_>) -> Result<BucketClaim, ClaimError> {
        let (token, holder) = (ClaimToken::draw()?, ProcessIdentity::this()?);
        let record = ClaimRecord::new(token, request.submission, request.job, request.owner, holder, 0);
        let holding = Holding::new(token);
        make_way(&bucket, request, &record)?;
        Ok(BucketClaim::hold(bucket, request, record, holding))
    }

    fn hold(
        bucket: Bucket,
        request: &ClaimRequest<'_>,
        record: ClaimRecord,
        holding: Holding,
    ) -> BucketClaim {
        let paths = JobPaths::new(request.output, request.job, record.token, request.extension);
        let work = LocalWork((request.owner == Owner::Program).then(|| paths.local_work()));
        BucketClaim { bucket, paths, record, _holding: holding, _work: work }
    }

    /// Prepares a claimed output.
    fn settle_in(&self, request: &ClaimRequest<'_>) -> Result<(), JobError> {
        self.look_again(request).map_err(|error| error.of(request.output))?;
        if request.owner == Owner::Program {
            let work = self.paths.local_work();
            let made = DirBuilder::new()
                .mode(0o700)
                .create(&work)
                .and_then(|()| fs::create_dir(work.join("shuffle")));
            made.map_err(|error| JobError::io(format!("create {}", work.display()), error))?;
        }
        Ok(())
    }

    /// Checks again for content that appeared between the first check and the claim. No other run writes
    /// parts now.
    fn look_again(&self, request: &ClaimRequest<'_>) -> Result<(), ClaimError> {
        if !request.overwrite && is_occupied(&self.bucket)? {
            return Err(ClaimError::Exists);
        }
        Ok(self.sweep()?)
    }

    /// Resumes a claim of an earlier process, or of this one before the store was unreachable.
    pub(crate) fn resume(
        bucket: Bucket,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<BucketClaim>, Trouble> {
        let token = mark.token;
        let record = match whose(&bucket, token)? {
            Whose::Own(record) => record,
            Whose::Settled => return Ok(Resumed::Settled),
            Whose::Gone => return Ok(Resumed::Gone),
        };
        let mut claim = BucketClaim::hold(bucket, request, record, Holding::new(token));
        let holder = ProcessIdentity::this().map_err(|error| Trouble::io("identify this process", &error))?;
        claim.change(|record| record.holder = holder.clone())?;
        Ok(Resumed::Claimed(Box::new(claim)))
    }

    pub(crate) fn mark(&self) -> ClaimMark {
        ClaimMark::of_store(self.record.token)
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> &JobPaths {
        &self.paths
    }

    /// Checks that the output still belongs to this claim.
    pub(crate) fn verify(&self) -> Result<(), Trouble> {
        verify(&self.bucket, self.record.token)
    }

    /// Records the intent to commit.
    pub(super) fn advance(&mut self) -> Result<(), Trouble> {
        self.change(|record| record.step = Step::Intent)
    }

    fn change(&mut self, change: impl Fn(&mut ClaimRecord)) -> Result<(), Trouble> {
        self.record = rewrite(&self.bucket, self.record.token, change)?;
        Ok(())
    }

    /// Removes all objects of this run; an older output is unchanged.
    pub(crate) fn discard(self) -> Result<(), Trouble> {
        match self.verify() {
            // The claim was removed by others.
            Err(Trouble::Final(_)) => Ok(()),
            Err(trouble) => Err(trouble),
            Ok(()) => self.clean_up(),
        }
    }

    /// Removes the remaining work when the output is in place. The output does not depend on it. The claim
    /// goes last, since it identifies the rest.
    pub(crate) fn clean_up(self) -> Result<(), Trouble> {
        self.sweep()?;
        self.verify()?;
        self.bucket.remove(CLAIM)
    }

    /// Aborts uploads of parts and removes all objects of claims, commits and checkpoints except the claim.
    fn sweep(&self) -> Result<(), Trouble> {
        self.bucket.abort_uploads()?;
        let names = self.bucket.objects()?.into_iter().map(|(name, _)| name);
        names.filter(|name| is_remains(name) && name != CLAIM).try_for_each(|name| self.bucket.remove(&name))
    }
}

/// Checks that the claim still belongs to this run; called before each irreversible step.
pub(super) fn verify(bucket: &Bucket, token: ClaimToken) -> Result<(), Trouble> {
    match whose(bucket, token)? {
        Whose::Own(_) => Ok(()),
        Whose::Settled | Whose::Gone => {
            Err(Trouble::Final(format!("{} was removed while the job ran", bucket.shown(CLAIM))))
        }
    }
}

/// Rewrites a claim that must be this run's own; returns the new content.
fn rewrite(
    bucket: &Bucket,
    token: ClaimToken,
    change: impl Fn(&mut ClaimRecord),
) -> Result<ClaimRecord, Trouble> {
    for _ in 0..TRIES_MAX {
        let Some((text, found)) = bucket.get(CLAIM)? else { break };
        let mut record = parse(bucket, &text)?;
        if record.token != token {
            return Err(Trouble::Taken { by: record.to_string() });
        }
        change(&mut record);
        if bucket.put(CLAIM, &record.text()?, PutCondition::Version(&found.version))?.is_some() {
            return Ok(record);
        }
    }
    verify(bucket, token)?;
    let what = format!("cannot write {}: another process keeps changing it", bucket.shown(CLAIM));
    Err(Trouble::Passing { what, away: false })
}

/// The lease that shows other hosts that the holder is alive.
#[derive(Debug, Clone)]
pub(crate) struct BucketLease {
    bucket: Bucket,
    token: ClaimToken,
}

impl BucketLease {
    pub(crate) fn of(claim: &BucketClaim) -> BucketLease {
        BucketLease { bucket: claim.bucket.clone(), token: claim.record.token }
    }

    /// Renews the lease; must be called periodically.
    pub(crate) fn renew(&self) -> Result<(), Trouble> {
        rewrite(&self.bucket, self.token, |_| {}).map(drop)
    }
}
