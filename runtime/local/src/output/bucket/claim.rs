//! The claim of a run on an output in a store.
//!
//! Owns taking it, taking it up again after a restart, its lease, and what is removed when the job does not
//! succeed. Does not own what stands in its way (`obstacles`) nor how parts become objects (`commit`).
//!
//! Whoever writes `claim.json` says which version of it he has seen, so that of two only one does. Since an
//! object cannot be locked, its age says whether a holder on another host lives: he writes it again and
//! again, as it is.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use napreduce_protocol::{ClaimToken, JobError, PutCondition};
use napreduce_task::ProcessIdentity;

use super::super::holder::Holding;
use super::super::layout::{JobPaths, SUCCESS};
use super::super::manifest::Written;
use super::super::record::{ClaimRecord, Owner, Step};
use super::super::request::{ClaimMark, ClaimRequest, Resumed};
use super::super::trouble::{Trouble, refused};
use super::super::whose::Whose;
use super::obstacles::{is_occupied, make_way};
use super::place::{Bucket, CLAIM, is_remains};

/// Somebody else writes the claim only when it was taken, and this process only when it renews its lease.
const TRIES_MAX: usize = 8;

/// An output that this run alone writes.
#[derive(Debug)]
pub struct BucketClaim {
    pub(super) bucket: Bucket,
    paths: JobPaths,
    pub(super) record: ClaimRecord,
    _holding: Holding,
    _work: LocalWork,
}

/// What tasks of an embedded job write beside its output; removed when it is dropped.
#[derive(Debug)]
struct LocalWork(Option<PathBuf>);

impl Drop for LocalWork {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way.
        self.0.take().map(fs::remove_dir_all);
    }
}

/// Reads the claim again, and where there is none, what that means.
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
    /// Claims an output, unless what is there already forbids it.
    pub(crate) fn take(bucket: Bucket, request: &ClaimRequest<'_>) -> Result<BucketClaim, JobError> {
        let failed = |source| JobError::OutputUnusable { path: request.output.display().to_string(), source };
        let token = ClaimToken::draw().map_err(failed)?;
        let holder = ProcessIdentity::this().map_err(failed)?;
        let record = ClaimRecord::new(token, request.submission, request.job, request.owner, holder, 0);
        let holding = Holding::new(token);
        make_way(&bucket, request, &record)?;
        let claim = BucketClaim::hold(bucket, request, record, holding);
        match claim.settle_in(request) {
            Ok(()) => Ok(claim),
            Err(error) => {
                // What remains of it was not what went wrong.
                let _ = claim.discard();
                Err(error)
            }
        }
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

    /// The output may have come between the look at it and the claim.
    fn settle_in(&self, request: &ClaimRequest<'_>) -> Result<(), JobError> {
        let path = || request.output.display().to_string().trim_end_matches('/').to_owned();
        let in_store = |trouble| refused(request.output, trouble);
        if !request.overwrite && is_occupied(&self.bucket).map_err(in_store)? {
            return Err(JobError::OutputExists { path: path() });
        }
        // Nobody else writes parts here now.
        self.sweep().map_err(in_store)?;
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

    /// Takes up again what an earlier process claimed, or this one before the store was away.
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
        let holder =
            ProcessIdentity::this().map_err(|error| Trouble::io("find out about this process", &error))?;
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

    /// Makes sure that the output is still this claim's.
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

    /// Removes everything this run has made; an older output stays as it is.
    pub(crate) fn discard(self) -> Result<(), Trouble> {
        match self.verify() {
            // Somebody has removed it.
            Err(Trouble::Final(_)) => Ok(()),
            Err(trouble) => Err(trouble),
            Ok(()) => self.clean_up(),
        }
    }

    /// Removes what is left of the work when the output is in place. The output does not depend on it. The
    /// claim goes last: without it nobody knows whose the rest is.
    pub(crate) fn clean_up(self) -> Result<(), Trouble> {
        self.sweep()?;
        self.verify()?;
        self.bucket.remove(CLAIM)
    }

    /// Drops uploads of parts, and removes what claims have left but this one.
    fn sweep(&self) -> Result<(), Trouble> {
        self.bucket.abort_uploads()?;
        let names = self.bucket.objects()?.into_iter().map(|(name, _)| name);
        names.filter(|name| is_remains(name) && name != CLAIM).try_for_each(|name| self.bucket.remove(&name))
    }
}

/// The holder reads its token again before each step that cannot be taken back.
pub(super) fn verify(bucket: &Bucket, token: ClaimToken) -> Result<(), Trouble> {
    match whose(bucket, token)? {
        Whose::Own(_) => Ok(()),
        Whose::Settled | Whose::Gone => {
            Err(Trouble::Final(format!("{} was removed while the job ran", bucket.shown(CLAIM))))
        }
    }
}

/// Writes a claim again that must be one's own; what it says then.
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
        let text = record.text().map_err(|error| Trouble::io("write a claim", &error))?;
        if bucket.put(CLAIM, &text, PutCondition::Version(&found.version))?.is_some() {
            return Ok(record);
        }
    }
    verify(bucket, token)?;
    let what = format!("cannot write {}: somebody else writes it, too", bucket.shown(CLAIM));
    Err(Trouble::Passing { what, away: false })
}

/// Tells other hosts that the holder of a claim lives.
#[derive(Debug, Clone)]
pub(crate) struct BucketLease {
    bucket: Bucket,
    token: ClaimToken,
}

impl BucketLease {
    pub(crate) fn of(claim: &BucketClaim) -> BucketLease {
        BucketLease { bucket: claim.bucket.clone(), token: claim.record.token }
    }

    /// To be called every now and then.
    pub(crate) fn renew(&self) -> Result<(), Trouble> {
        rewrite(&self.bucket, self.token, |_| {}).map(drop)
    }
}
