//! The claim of a run on an output in a store: taking it, resuming it after a restart, its lease, and its
//! removal.
//!
//! Writes of `claim.json` are conditional on the version last read, so that only one of two writers succeeds.
//! Objects cannot be locked; a holder shows that it is alive by rewriting the claim periodically, and the age
//! of the object counts.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use napreduce_protocol::{ClaimToken, JobError, PutCondition};

use super::super::backend::{OutputBackend, OutputClaim, Resumed};
use super::super::holder::Holding;
use super::super::layout::JobPaths;
use super::super::manifest::Manifest;
use super::super::record::{ClaimRecord, Owner, Step};
use super::super::request::{ClaimMark, ClaimRequest};
use super::super::trouble::{ClaimError, Trouble};
use super::super::whose::Whose;
use super::commit::{roll_forward, write_intent};
use super::obstacles::{is_occupied, look, make_way};
use super::place::{Bucket, CLAIM, is_remains};
use super::whose::{parse, verify, whose};

/// Conflicts are rare: others write the claim only to take it, and this process only to renew its lease.
const TRIES_MAX: usize = 8;

/// An output claimed for this run.
#[derive(Debug)]
pub struct BucketClaim {
    bucket: Bucket,
    paths: JobPaths,
    record: ClaimRecord,
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

impl BucketClaim {
    /// Claims an output; fails if existing content forbids it.
    pub(super) fn take(
        bucket: Bucket,
        request: &ClaimRequest<'_>,
    ) -> Result<Box<BucketClaim>, JobError> {
        let claim = BucketClaim::put(bucket, request)
            .map_err(|error| error.into_job_error(request.output))?;
        let claim = Box::new(claim);
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
        let world = bucket.world();
        let token = ClaimToken::from(world.random.number()?);
        let holder = world.process.identity()?;
        let record = ClaimRecord::new(
            token,
            request.submission,
            request.job,
            request.owner,
            holder,
            0,
        );
        let holding = Holding::new(&world.process, token);
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
        BucketClaim {
            bucket,
            paths,
            record,
            _holding: holding,
            _work: work,
        }
    }

    /// Prepares a claimed output.
    fn settle_in(&self, request: &ClaimRequest<'_>) -> Result<(), JobError> {
        self.look_again(request)
            .map_err(|error| error.into_job_error(request.output))?;
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
    pub(super) fn resume(
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
        let process = bucket.world().process.clone();
        let holding = Holding::new(&process, token);
        let mut claim = BucketClaim::hold(bucket, request, record, holding);
        let holder = process
            .identity()
            .map_err(|error| Trouble::io("identify this process", &error))?;
        claim.change(|record| record.holder = holder.clone())?;
        Ok(Resumed::Claimed(Box::new(claim)))
    }

    #[cfg(test)]
    pub(super) fn paths(&self) -> &JobPaths {
        &self.paths
    }

    fn change(&mut self, change: impl Fn(&mut ClaimRecord)) -> Result<(), Trouble> {
        self.record = rewrite(&self.bucket, self.record.token, change)?;
        Ok(())
    }

    /// Aborts uploads of parts and removes all objects of claims, commits and checkpoints except the claim.
    fn sweep(&self) -> Result<(), Trouble> {
        self.bucket.abort_uploads()?;
        let names = self.bucket.objects()?.into_iter().map(|(name, _)| name);
        names
            .filter(|name| is_remains(name) && name != CLAIM)
            .try_for_each(|name| self.bucket.remove(&name))
    }
}

impl OutputBackend for Bucket {
    fn check(&self, _: &Path, overwrite: bool) -> Result<(), ClaimError> {
        look(self, overwrite)
    }

    fn take(&self, request: &ClaimRequest<'_>) -> Result<Box<dyn OutputClaim>, JobError> {
        let claim = BucketClaim::take(self.clone(), request);
        Ok(claim.map_err(|error| named_by_coordinator(error, request.owner))?)
    }

    fn resume(
        &self,
        request: &ClaimRequest<'_>,
        mark: ClaimMark,
    ) -> Result<Resumed<dyn OutputClaim>, Trouble> {
        Ok(BucketClaim::resume(self.clone(), request, mark)?.into())
    }

    fn renew(&self, _: &Path, token: ClaimToken) -> Result<(), Trouble> {
        rewrite(self, token, |_| {}).map(drop)
    }
}

impl OutputClaim for BucketClaim {
    fn mark(&self) -> ClaimMark {
        ClaimMark::of_store(self.record.token)
    }

    fn is_quick_to_check(&self) -> bool {
        false
    }

    fn verify(&self) -> Result<(), Trouble> {
        verify(&self.bucket, self.record.token)
    }

    fn has_intent(&self) -> bool {
        self.record.step == Step::Intent
    }

    fn begin(&mut self, manifest: &Manifest) -> Result<(), Trouble> {
        write_intent(&self.bucket, self.record.token, manifest)?;
        self.verify()?;
        self.change(|record| record.step = Step::Intent)
    }

    fn roll_forward(&self) -> Result<(), Trouble> {
        roll_forward(&self.bucket, self.record.token)
    }

    fn discard(self: Box<Self>) -> Result<(), Trouble> {
        match self.verify() {
            // The claim was removed by others.
            Err(Trouble::Final(_)) => Ok(()),
            Err(trouble) => Err(trouble),
            Ok(()) => self.clean_up(),
        }
    }

    /// The claim goes last, since it identifies the rest.
    fn clean_up(self: Box<Self>) -> Result<(), Trouble> {
        self.sweep()?;
        self.verify()?;
        self.bucket.remove(CLAIM)
    }
}

/// Marks an error as the coordinator's, since the submitter's program may support the store.
pub(crate) fn named_by_coordinator(error: JobError, owner: Owner) -> JobError {
    match error {
        JobError::OutputUnusable { path, source } if owner == Owner::Cluster => {
            let source = io::Error::other(format!("the coordinator reported: {source}"));
            JobError::OutputUnusable { path, source }
        }
        other => other,
    }
}

/// Rewrites a claim that must be this run's own; returns the new content.
fn rewrite(
    bucket: &Bucket,
    token: ClaimToken,
    change: impl Fn(&mut ClaimRecord),
) -> Result<ClaimRecord, Trouble> {
    for _ in 0..TRIES_MAX {
        let Some((text, found)) = bucket.get(CLAIM)? else {
            break;
        };
        let mut record = parse(bucket, &text)?;
        if record.token != token {
            return Err(Trouble::Taken {
                by: record.to_string(),
            });
        }
        change(&mut record);
        if bucket
            .put(
                CLAIM,
                &record.text()?,
                PutCondition::Version(&found.version),
            )?
            .is_some()
        {
            return Ok(record);
        }
    }
    verify(bucket, token)?;
    let what = format!(
        "cannot write {}: another process keeps changing it",
        bucket.path_of(CLAIM)
    );
    Err(Trouble::Passing { what, away: false })
}
