//! Claim and commit of a job by processes that die, on storage that fails, and the recovery by others.

mod claims;
mod commits;
mod faults;
mod power;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{CounterValues, InputSplit, JobError, PartReport, Split};
use tempfile::TempDir;

use super::backend::{OutputClaim, Resumed};
use super::claim::DirectoryClaim;
use super::storage::script::DiskScript;
use super::{ClaimMark, ClaimRequest, CommittedPart, Disk, Manifest, Owner, Trouble};

const JOB: JobId = JobId(7);
/// The parts of the job.
const PARTS: [(&str, &str); 2] = [("part-r-00000", "first"), ("part-r-00001", "second")];

fn attempt(index: u32, number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JOB,
            kind: TaskKind::Reduce,
            index,
        },
        number,
    }
}

/// A directory that may contain an output directory.
struct Place {
    folder: TempDir,
    /// The input of the job.
    splits: Vec<InputSplit>,
}

/// The parameters of a claim.
#[derive(Debug, Clone, Copy)]
struct Asking {
    overwrite: bool,
    submission: u128,
    owner: Owner,
}

const FIRST: Asking = Asking {
    overwrite: false,
    submission: 1,
    owner: Owner::Cluster,
};
const AGAIN: Asking = Asking {
    overwrite: true,
    ..FIRST
};

impl Place {
    fn new() -> Place {
        // Sync is free in memory, and these tests sync tens of thousands of times.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Place {
            folder: folder.expect("a directory"),
            splits: Vec::new(),
        }
    }

    /// Adds this file to the job's input.
    fn reading(mut self, path: PathBuf) -> Place {
        self.splits.push(InputSplit::from(Split::whole(&path, 1)));
        self
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("some/out")
    }

    /// Returns a disk without faults.
    fn disk(&self) -> Disk {
        DiskScript::disk(&self.out(), None).0
    }

    fn file(&self, name: &str) -> PathBuf {
        self.out().join(name)
    }

    fn request<'a>(&'a self, output: &'a Path, asking: Asking) -> ClaimRequest<'a> {
        let Asking {
            overwrite,
            submission,
            owner,
        } = asking;
        ClaimRequest {
            output,
            job: JOB,
            extension: "",
            overwrite,
            others: &[],
            splits: &self.splits,
            submission,
            owner,
            durable: true,
        }
    }

    fn take(&self, disk: &Disk, asking: Asking) -> Result<Box<DirectoryClaim>, JobError> {
        let out = self.out();
        let request = self.request(&out, asking);
        patiently(
            || DirectoryClaim::take(disk, &request),
            |error| matches!(error, JobError::OutputInUse { .. }),
        )
    }

    fn resume(&self, disk: &Disk, mark: ClaimMark) -> Result<Resumed<DirectoryClaim>, Trouble> {
        let out = self.out();
        // A resumed job has the plan of its claim; most of these jobs overwrite.
        let request = self.request(&out, AGAIN);
        let is_locked = |trouble: &Trouble| matches!(trouble, Trouble::Passing { what, .. } if what.ends_with("holds the lock"));
        patiently(|| DirectoryClaim::resume(disk, &request, mark), is_locked)
    }

    /// Resumes the claim in the next process.
    fn resumed(&self, mark: ClaimMark) -> Box<DirectoryClaim> {
        match self.resume(&Disk::default(), mark) {
            Ok(Resumed::Claimed(claim)) => claim,
            other => panic!("its own claim, not {other:?}"),
        }
    }

    /// Writes an older output and a file that belongs to no job.
    fn fill(&self) {
        fs::create_dir_all(self.out()).expect("made");
        let old = [
            ("part-r-00000", "old 0"),
            ("part-r-00002", "old 2"),
            ("own.bin", "listed"),
            ("part-time-staff.csv", "foreign"),
            ("notes.txt", "foreign"),
            (
                "_SUCCESS",
                r#"{"version": 1, "parts": [{"name": "part-r-00000"}, {"name": "own.bin"}]}"#,
            ),
        ];
        for (name, text) in old {
            fs::write(self.file(name), text).expect("written");
        }
    }

    /// Returns all files with their content; `None` if there is no output directory.
    fn files(&self) -> Option<BTreeMap<String, String>> {
        let entries = fs::read_dir(self.out()).ok()?;
        let entry = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.expect("an entry");
            let text =
                fs::read_to_string(entry.path()).unwrap_or_else(|_| "a directory".to_owned());
            (entry.file_name().into_string().expect("a name"), text)
        };
        Some(entries.map(entry).collect())
    }

    fn names(&self) -> Vec<String> {
        self.files()
            .map(|files| files.into_keys().collect())
            .unwrap_or_default()
    }

    fn assert_committed(&self) {
        let files = self.files().expect("an output directory");
        assert_eq!(self.names(), ["_SUCCESS", "part-r-00000", "part-r-00001"]);
        PARTS
            .iter()
            .for_each(|(name, text)| assert_eq!(files[*name], *text));
        assert!(files["_SUCCESS"].contains("\"job\": \"job_0007\""));
    }
}

/// Writes the parts of the job; the second attempt wrote the first part, after the first attempt had stopped
/// responding.
fn write_parts(claim: &DirectoryClaim) -> Manifest {
    let parts =
        [(attempt(0, 2), PARTS[0].1), (attempt(1, 1), PARTS[1].1)].map(|(attempt, text)| {
            fs::write(claim.paths().promoted(attempt), text).expect("a part");
            let name = claim.paths().part_name(attempt.task);
            let report = PartReport {
                name,
                records: 1,
                bytes: text.len() as u64,
                digest: 1,
            };
            CommittedPart {
                attempt,
                output: None,
                report,
                upload: None,
            }
        });
    fs::write(claim.paths().promoted(attempt(0, 1)), "late and unheard").expect("a part");
    let name = "a test".to_owned();
    let counters = CounterValues::default();
    Manifest {
        job: JOB,
        name,
        counters,
        parts: parts.to_vec(),
    }
}

/// Commits completely.
fn committed(mut claim: Box<DirectoryClaim>, manifest: &Manifest) {
    claim.commit(manifest).expect("a commit");
    claim.clean_up().expect("nothing is in the way");
}
/// Retries for a while: a process that another test is starting holds a copy of every lock until it calls
/// `exec`.
fn patiently<T, E>(act: impl Fn() -> Result<T, E>, is_locked: impl Fn(&E) -> bool) -> Result<T, E> {
    let began = std::time::Instant::now();
    loop {
        match act() {
            Err(error)
                if is_locked(&error) && began.elapsed() < std::time::Duration::from_secs(1) =>
            {
                std::thread::yield_now();
            }
            result => return result,
        }
    }
}
