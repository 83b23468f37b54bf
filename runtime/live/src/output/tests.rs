//! The claim and the commit of a job by a coordinator that dies on the way and is started again.
//!
//! Owns every point at which it can die. Does not own the rest of the output directory, which whole jobs test.

use std::fs;
use std::path::{Path, PathBuf};

use napreduce_core::{AttemptId, JobId, TaskId, TaskKind};
use tempfile::TempDir;

use super::{CommitTry, CommittedPart, Manifest, OutputClaim, commit_job};
use crate::counters::CounterValues;
use crate::report::{JobError, PartReport};

const JOB: JobId = JobId(7);

/// A job of two reduces; the first was done by its second attempt.
struct Committing {
    directory: TempDir,
    claim: OutputClaim,
    manifest: Manifest,
}

fn attempt(index: u32, number: u32) -> AttemptId {
    AttemptId { task: TaskId { job: JOB, kind: TaskKind::Reduce, index }, number }
}

impl Committing {
    fn new() -> Committing {
        let directory = tempfile::tempdir().expect("a directory");
        let claim =
            OutputClaim::take(&directory.path().join("out"), JOB, "", true, 1).expect("a free directory");
        let parts = [(attempt(0, 2), "first"), (attempt(1, 1), "second")].map(|(attempt, text)| {
            fs::write(claim.paths().promoted(attempt), text).expect("a part");
            let name = claim.paths().part_name(attempt.task);
            let report = PartReport { name, records: 1, bytes: text.len() as u64, digest: 1 };
            CommittedPart { attempt, report }
        });
        fs::write(claim.paths().promoted(attempt(0, 1)), "late and unheard").expect("a part");
        let (name, counters) = ("a test".to_owned(), CounterValues::default());
        let manifest = Manifest { job: JOB, name, counters, parts: parts.to_vec() };
        Committing { directory, claim, manifest }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.directory.path().join("out").join(name)
    }

    /// The coordinator is gone and a new one takes up its claim.
    fn restart(mut self) -> Committing {
        let made = self.claim.made().to_vec();
        drop(self.claim);
        let output = self.directory.path().join("out");
        self.claim = OutputClaim::resume(&output, JOB, "", made).expect("its own claim");
        self
    }

    fn commit(&self, commit_try: CommitTry) -> Result<(), JobError> {
        commit_job(&self.claim, &self.manifest, commit_try)
    }

    fn assert_committed(&self) {
        let entries = fs::read_dir(self.out("")).expect("the output directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        assert_eq!(names, ["_SUCCESS", "part-r-00000", "part-r-00001"]);
        let read = |name| fs::read_to_string(self.out(name)).expect("a file");
        assert_eq!((read("part-r-00000").as_str(), read("part-r-00001").as_str()), ("first", "second"));
        assert!(read("_SUCCESS").contains("\"job\": \"job_0007\""));
    }

    /// What the first steps of a commit leave.
    fn begin(&self) {
        fs::write(self.out("_SUCCESS.unfinished"), self.manifest.text().expect("a text")).expect("written");
    }

    fn move_part(&self, index: usize) {
        let part = &self.manifest.parts[index];
        fs::rename(self.claim.paths().promoted(part.attempt), self.out(&part.report.name)).expect("moved");
    }
}

#[test]
fn the_part_of_the_attempt_that_was_done_is_taken() {
    let job = Committing::new();
    job.commit(CommitTry::First).expect("a commit");
    job.assert_committed();
}

#[test]
fn a_commit_is_done_again_after_a_crash_at_any_step() {
    let crashes: [fn(&Committing); 7] = [
        |_| {},
        Committing::begin,
        |job| {
            job.begin();
            job.move_part(0);
        },
        |job| {
            job.begin();
            job.move_part(0);
            job.move_part(1);
        },
        |job| {
            job.begin();
            job.move_part(0);
            job.move_part(1);
            fs::remove_dir_all(job.out("_temporary")).expect("removed");
        },
        |job| {
            job.begin();
            job.move_part(0);
            job.move_part(1);
            fs::rename(job.out("_temporary"), job.out("_temporary.ended")).expect("renamed");
        },
        |job| job.commit(CommitTry::First).expect("a commit"),
    ];
    for crash in crashes {
        let job = Committing::new();
        fs::write(job.out("part-r-00002"), "of an older job").expect("written");
        crash(&job);
        let job = job.restart();
        job.commit(CommitTry::Again).expect("a commit");
        job.assert_committed();
        let job = job.restart();
        job.commit(CommitTry::Again).expect("nothing left to do");
        job.assert_committed();
    }
}

#[test]
fn an_older_part_in_place_is_not_taken_for_one_that_was_moved() {
    for commit_try in [CommitTry::First, CommitTry::Again] {
        let job = Committing::new();
        fs::remove_file(job.claim.paths().promoted(attempt(0, 2))).expect("removed");
        fs::write(job.out("part-r-00000"), "older").expect("written");
        let error = job.commit(commit_try).expect_err("a part is missing").to_string();
        assert!(error.starts_with("cannot move ") && error.contains("part-r-00000.2"), "{error}");
        assert!(!job.out("_SUCCESS.unfinished").exists());
    }
}

#[test]
fn a_part_that_was_moved_and_is_gone_or_changed_is_named() {
    for text in [None, Some("changed")] {
        let job = Committing::new();
        job.begin();
        job.move_part(0);
        match text {
            Some(text) => fs::write(job.out("part-r-00000"), text).expect("written"),
            None => fs::remove_file(job.out("part-r-00000")).expect("removed"),
        }
        let job = job.restart();
        let error = job.commit(CommitTry::Again).expect_err("a part is missing").to_string();
        assert!(
            error.starts_with("cannot find a part of 5 bytes") && error.contains("part-r-00000"),
            "{error}"
        );
        assert!(!job.out("_SUCCESS").exists());
    }
}

#[test]
fn a_claim_that_another_run_has_by_now_is_not_taken_up() {
    let job = Committing::new();
    let output = job.directory.path().join("out");
    let refused = OutputClaim::resume(&output, JOB, "", Vec::new());
    assert!(matches!(refused, Err(JobError::OutputInUse { .. })), "{refused:?}");
}

/// What a coordinator that is killed while it claims a directory may leave there, in the order of its steps; `7` is the
/// token of the submission, `8` that of an older run which ended in the middle.
const CLAIM_STEPS: [&[&str]; 7] = [
    &["_temporary.7"],
    &["_temporary.7/submission-7"],
    &["_temporary/submission-8", "_temporary/job_0001/shuffle", "_temporary.7/submission-7"],
    &["_temporary.7.old/submission-8", "_temporary.7/submission-7"],
    &["_temporary.7.old", "_temporary.7/submission-7"],
    &["_temporary/submission-7"],
    &["_temporary/submission-7", "_temporary/job_0007/shuffle"],
];

/// What one that is killed while it removes everything leaves, after the commit or after a failure.
const ENDED: &[&str] = &["_temporary.ended/job_0007/shuffle"];

/// A step of [`CLAIM_STEPS`] on the disk.
fn killed_while_claiming(output: &Path, entries: &[&str]) {
    for entry in entries {
        let named = |name: &str| {
            let mut name = name.to_owned();
            for (short, token) in [("7", 7_u128), ("8", 8)] {
                name = name
                    .replace(&format!("_temporary.{short}"), &format!("_temporary.{token:032x}"))
                    .replace(&format!("submission-{short}"), &format!("submission-{token:032x}"));
            }
            name
        };
        let path = output.join(named(entry));
        if entry.contains("submission") {
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, "").expect("written");
        } else {
            fs::create_dir_all(path).expect("made");
        }
    }
}

#[test]
fn a_submission_that_comes_again_takes_over_what_its_killed_claim_left() {
    for (step, entries) in CLAIM_STEPS.into_iter().enumerate() {
        let directory = tempfile::tempdir().expect("a directory");
        killed_while_claiming(directory.path(), entries);
        // Where an older run is in the way, it took leave to overwrite to get there.
        let overwrite = entries[0] == CLAIM_STEPS[2][0];
        let claim = OutputClaim::take(directory.path(), JOB, "", overwrite, 7)
            .unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert_eq!(super::claim::list(directory.path()).expect("names"), ["_temporary"], "step {step}");
        assert!(claim.paths().claimant(7).exists() && claim.paths().shuffle().exists(), "step {step}");
        assert!(!claim.paths().claimant(8).exists(), "step {step}");
        let again = OutputClaim::take(directory.path(), JOB, "", true, 7);
        assert!(matches!(again, Err(JobError::OutputInUse { .. })), "step {step}: {again:?}");
    }
}

#[test]
fn a_killed_claim_stands_in_the_way_of_another_submission_until_it_may_overwrite() {
    for (step, entries) in CLAIM_STEPS.into_iter().chain([ENDED]).enumerate() {
        let directory = tempfile::tempdir().expect("a directory");
        killed_while_claiming(directory.path(), entries);
        let refused = OutputClaim::take(directory.path(), JOB, "", false, 9);
        assert!(matches!(refused, Err(JobError::OutputUnfinished { .. })), "step {step}: {refused:?}");
        let claim = OutputClaim::take(directory.path(), JOB, "", true, 9).expect("a claim");
        assert_eq!(super::claim::list(directory.path()).expect("names"), ["_temporary"], "step {step}");
        claim.discard().expect("removed");
        assert_eq!(super::claim::list(directory.path()).expect("names"), [""; 0], "step {step}");
    }
}

#[test]
fn what_only_looks_like_work_in_progress_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let names = ["_temporary.bak", "_temporary.old", "_temporary_7"];
    for name in names {
        fs::create_dir(directory.path().join(name)).expect("made");
    }
    let refused = OutputClaim::take(directory.path(), JOB, "", false, 7);
    assert!(matches!(refused, Err(JobError::OutputExists { .. })), "{refused:?}");
    OutputClaim::take(directory.path(), JOB, "", true, 7).expect("a claim").discard().expect("removed");
    assert!(names.iter().all(|name| directory.path().join(name).exists()));
}

#[test]
fn of_two_that_found_the_directory_free_the_later_one_takes_nothing_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = OutputClaim::take(directory.path(), JOB, "", false, 1).expect("a free directory");
    // It looked before the first one came.
    let refused = super::claim::prepare(first.paths(), 2);
    assert!(matches!(refused, Err(JobError::OutputInUse { .. })), "{refused:?}");
    assert!(first.paths().claimant(1).exists() && first.paths().shuffle().exists());
    assert_eq!(super::claim::list(directory.path()).expect("names"), ["_temporary"]);
}
