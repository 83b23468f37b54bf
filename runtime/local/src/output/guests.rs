//! The output of a job whose tasks run on another engine: parts written by its guests join the parts to be
//! committed. Only the job's own files are accepted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{
    CounterValues, JobError, JobPlan, JobReport, NamedPart, PartOutput, StorageScheme,
};

use super::backend::OutputClaim;
use super::claim::DirectoryClaim;
use super::intent::missing;
use super::lease::KeptLease;
use super::manifest::Manifest;
use super::places::{Protected, check_place, files_read};
use super::record::Owner;
use super::request::ClaimRequest;
use super::storage::Disk;
use super::trouble::{ClaimError, Trouble};
use crate::world::World;

/// Maximum time for retrying a commit, and the backoff.
const COMMIT_PATIENCE: Duration = Duration::from_secs(60);
const COMMIT_WAIT: Duration = Duration::from_millis(250);

/// The claimed output directory of a job that another engine runs.
pub struct GuestOutput {
    job: JobId,
    output: PathBuf,
    claim: Box<DirectoryClaim>,
    _lease: KeptLease,
}

impl GuestOutput {
    /// Claims the output of a plan.
    ///
    /// # Errors
    /// Fails if the output is in a store or is not allowed for this job.
    pub fn claim(job: JobId, plan: &JobPlan) -> Result<GuestOutput, JobError> {
        if StorageScheme::from_path(&plan.output).is_some() {
            let why = "jobs on another engine cannot write to an object store; give --output a \
                       directory that all hosts of the engine see";
            return Err(JobError::OutputUnusable {
                path: plan.output.display().to_string(),
                source: std::io::Error::other(why),
            });
        }
        let protected = Protected {
            cluster: Vec::new(),
            inputs: files_read(&plan.splits),
        };
        check_place(&plan.output, &protected)?;
        let submission = World::real()
            .random
            .token()
            .map_err(|error| JobError::io("draw a random number", error))?;
        let request = ClaimRequest {
            output: &plan.output,
            job,
            extension: &plan.part_extension,
            overwrite: plan.overwrite,
            others: &[],
            splits: &plan.splits,
            submission,
            owner: Owner::Program,
            durable: plan.durable,
        };
        let claim = DirectoryClaim::take(&Disk::default(), &request)?;
        let lease = KeptLease::start(&plan.output, claim.mark().token)?;
        Ok(GuestOutput {
            job,
            output: plan.output.clone(),
            claim,
            _lease: lease,
        })
    }

    /// Creates the directory in which guests write their parts; returns its path for tasks.
    pub fn make_parts(&self) -> Result<PathBuf, JobError> {
        let storage = self.claim.storage();
        let guests = self.claim.paths().guests();
        let made = storage.make_directory(&guests).map_err(Trouble::from);
        made.map_err(|trouble| ClaimError::from(trouble).into_job_error(storage.path()))?;
        Ok(storage.path().join(guests))
    }

    /// Removes all files of the job.
    pub fn discard(self) -> Result<(), JobError> {
        let output = &self.output;
        match self.claim.discard() {
            // Nothing is left, or the content belongs to another claim.
            Ok(()) | Err(Trouble::Taken { .. } | Trouble::Final(_)) => Ok(()),
            Err(trouble @ Trouble::Passing { .. }) => Err(JobError::io(
                format!(
                    "remove the remaining files of the job in {}",
                    output.display()
                ),
                std::io::Error::other(trouble.in_words(output)),
            )),
        }
    }

    /// Commits the parts of these attempts, each from where its guest wrote it, as the output of the named
    /// job.
    ///
    /// # Errors
    /// The error reports whether nothing was committed or the commit will be completed by the next run.
    pub fn commit(
        mut self,
        name: &str,
        counters: CounterValues,
        parts: Vec<(AttemptId, PathBuf, PartOutput)>,
        began: Instant,
    ) -> Result<JobReport, JobError> {
        let job = self.job;
        let failed = |reason: String| JobError::Failed {
            job,
            reason: format!("{job} failed: {reason}"),
            failure: None,
        };
        let written = parts.iter().map(|(attempt, _, part)| (*attempt, part));
        let manifest = Manifest::new(job, name, counters, written, self.claim.paths());
        if let Err(trouble) = self.promote_and_commit(&parts, &manifest) {
            let reason = trouble.in_words(&self.output);
            return match trouble {
                Trouble::Final(_) => self.discard().and(Err(failed(reason))),
                // It may be partly committed; the next run completes it.
                _ => Err(failed(format!("its output was not committed: {reason}"))),
            };
        }
        if let Err(trouble) = self.claim.clean_up() {
            let left = trouble.in_words(&self.output);
            print_error(format_args!(
                "warning: the output of {job} is complete, but some temporary files remain: {left}"
            ));
        }
        Ok(manifest.report(began.elapsed(), &self.output))
    }

    fn promote_and_commit(
        &mut self,
        parts: &[(AttemptId, PathBuf, PartOutput)],
        manifest: &Manifest,
    ) -> Result<(), Trouble> {
        let began = Instant::now();
        loop {
            let promoted = parts.iter().try_for_each(|(attempt, written, part)| {
                promote_guest(&self.claim, *attempt, written, part)
            });
            match promoted.and_then(|()| self.claim.commit(manifest)) {
                Err(Trouble::Passing { .. }) if began.elapsed() < COMMIT_PATIENCE => {
                    std::thread::sleep(COMMIT_WAIT)
                }
                settled => return settled,
            }
        }
    }
}

/// Moves a part and the named outputs that belong to it to the parts to be committed. Can be repeated.
fn promote_guest(
    claim: &DirectoryClaim,
    attempt: AttemptId,
    written: &Path,
    output: &PartOutput,
) -> Result<(), Trouble> {
    let storage = claim.storage();
    let paths = claim.paths();
    let guests = paths.guests();
    let name = written
        .file_name()
        .filter(|_| written.parent() == Some(&storage.path().join(&guests)));
    let Some(name) = name else {
        let what = format!(
            "{attempt} reported the part {}, which is outside the directory of this job's guests",
            written.display()
        );
        return Err(Trouble::Final(what));
    };
    if !output.has_sound_names() {
        return Err(Trouble::Final(format!(
            "{attempt} reported outputs with invalid names"
        )));
    }
    let from = guests.join(name);
    let to = paths.committed().join(paths.promoted_name(attempt));
    for NamedPart { name, bytes, .. } in &output.named {
        promote(
            claim,
            &NamedPart::path_next_to(&from, name),
            &NamedPart::path_next_to(&to, name),
            *bytes,
        )?;
    }
    promote(claim, &from, &to, output.bytes)
}

fn promote(claim: &DirectoryClaim, from: &Path, to: &Path, bytes: u64) -> Result<(), Trouble> {
    let storage = claim.storage();
    match storage.find(from)? {
        Some(found) if found.is_file && found.bytes == bytes => {}
        // Moved by an earlier try.
        None if storage
            .find(to)?
            .is_some_and(|found| found.is_file && found.bytes == bytes) =>
        {
            return Ok(());
        }
        found => return Err(missing(storage, from, bytes, found)),
    }
    Ok(storage.rename(from, to)?)
}
