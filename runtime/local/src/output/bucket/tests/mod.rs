//! Claim and commit of a job in an object store, by processes that die at any call, and the recovery by
//! others.

mod claims;
mod commits;
mod memory;

use std::collections::BTreeMap;
use std::path::Path;

use memory::{MemoryStores, Process};
use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_protocol::{CounterValues, JobError, PartReport};

use super::super::backend::{OutputClaim, Resumed};
use super::super::manifest::{CommittedPart, Manifest};
use super::super::record::Owner;
use super::super::request::{ClaimMark, ClaimRequest};
use super::super::trouble::Trouble;
use super::claim::BucketClaim;
use super::place::Bucket;
use crate::world::World;

const JOB: JobId = JobId(7);
const OUT: &str = "s3://b/out";
/// The parts of the job.
const PARTS: [(&str, &str); 2] = [("part-r-00000", "first"), ("part-r-00001", "second")];

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

fn request(asking: Asking) -> ClaimRequest<'static> {
    let Asking {
        overwrite,
        submission,
        owner,
    } = asking;
    ClaimRequest {
        output: Path::new(OUT),
        job: JOB,
        extension: "",
        overwrite,
        others: &[],
        splits: &[],
        submission,
        owner,
        durable: true,
    }
}

fn bucket(process: &'static Process) -> Bucket {
    Bucket::in_stores(&World::real(), process, OUT)
}

fn take(process: &'static Process, asking: Asking) -> Result<Box<BucketClaim>, JobError> {
    BucketClaim::take(bucket(process), &request(asking))
}

fn resume(process: &'static Process, mark: ClaimMark) -> Result<Resumed<BucketClaim>, Trouble> {
    BucketClaim::resume(bucket(process), &request(FIRST), mark)
}

/// The uploads of the job's tasks: two attempts wrote the second part, and one was granted the commit.
fn send_parts(stores: &MemoryStores) -> Manifest {
    let mut parts = Vec::new();
    for (index, (name, text)) in (0..).zip(PARTS) {
        let task = TaskId {
            job: JOB,
            kind: TaskKind::Reduce,
            index,
        };
        let upload = Some(stores.upload(name, text));
        let report = PartReport {
            name: name.to_owned(),
            records: 1,
            bytes: text.len() as u64,
            digest: 1,
        };
        let attempt = AttemptId { task, number: 2 };
        parts.push(CommittedPart {
            attempt,
            output: None,
            report,
            upload,
        });
    }
    stores.upload("part-r-00001", "late and not granted");
    stores.upload("errors-r-00000", "not granted");
    Manifest {
        job: JOB,
        name: "a test".to_owned(),
        counters: CounterValues::default(),
        parts,
    }
}

/// Commits completely.
fn committed(mut claim: Box<BucketClaim>, manifest: &Manifest) -> Result<(), Trouble> {
    claim.commit(manifest)?;
    claim.clean_up()
}

/// Writes an older output and a file that belongs to no job.
fn fill(stores: &MemoryStores) {
    let old = [
        ("part-r-00000", "old 0"),
        ("part-r-00002", "old 2"),
        ("own.bin", "listed"),
        ("part-time-staff.csv", "foreign"),
        ("deep/notes.txt", "foreign"),
        (
            "_SUCCESS",
            r#"{"version": 1, "parts": [{"name": "part-r-00000"}, {"name": "own.bin"}]}"#,
        ),
    ];
    old.iter().for_each(|(name, text)| stores.set(name, text));
}

/// Files that every job must leave unchanged.
const FOREIGN: [(&str, &str); 2] = [
    ("deep/notes.txt", "foreign"),
    ("part-time-staff.csv", "foreign"),
];

#[track_caller]
fn assert_committed(stores: &MemoryStores, foreign: &[(&str, &str)]) {
    let mut files = stores.files();
    let success = files.remove("_SUCCESS").expect("it is complete");
    let expected: BTreeMap<String, String> = PARTS
        .iter()
        .chain(foreign)
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    assert_eq!(files, expected);
    assert_eq!(stores.uploads_left(), Vec::<String>::new());
    for (name, _) in PARTS {
        let etag = stores.version(name);
        assert!(
            success.contains(&format!("\"etag\": \"{}\"", etag.trim_matches('"'))),
            "{success}"
        );
    }
    assert_eq!(
        stores.completed(),
        PARTS.len(),
        "no part is completed twice"
    );
}
