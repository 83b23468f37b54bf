//! Damaged journals: what a check reports, what a repaired copy contains, and that a coordinator starts from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use napreduce_engine::JobId;
use napreduce_local::world::disk::RealDisk;
use napreduce_schedulers::SchedulerConfiguration;

use super::script::Stage;
use crate::cluster_directory::ClusterDirectory;
use crate::coordinator::{check_journal, repair_journal};
use crate::journal::{EngineRules, FsyncPolicy, Header, JOURNAL_VERSION, Journal};

/// Bytes of a frame before its payload.
const HEAD_BYTES: usize = 20;

/// A fourth file whose snapshot has replaced the first three.
const SNAPSHOT: &str = "snapshot-00000004.json";

fn header() -> Header {
    Header {
        version: JOURNAL_VERSION,
        journal: 99,
        epoch_micros: 0,
        follows: None,
        rules: EngineRules::default(),
    }
}

/// Begins the next file of a journal whose coordinator has ended, without a snapshot.
fn begin_next_file(directory: &Path) {
    let opened = Journal::open(Arc::new(RealDisk), directory, header(), FsyncPolicy::Always);
    let (mut journal, _) = opened.expect("opened");
    journal.begin_compaction().expect("begun");
}

/// Runs coordinators whose journal has three files; job 1 is accepted in the first one, and so on.
async fn three_files() -> Stage {
    let mut stage = Stage::new();
    stage.scene.configuration.fsync = FsyncPolicy::Always;
    stage
        .play("worker w 1 \n submit 1 maps 1 \n kill coordinator")
        .await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    begin_next_file(&directory);
    stage
        .play("start \n submit 2 maps 1 to second \n kill coordinator")
        .await;
    begin_next_file(&directory);
    stage
        .play("start \n submit 3 maps 1 to third \n kill coordinator")
        .await;
    stage
}

/// The content of all files in a directory.
fn content(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(path).expect("read"));
        }
    }
    files
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, target).expect("copied");
        }
    }
}

fn journal_file(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("journal-{number:08}.log"))
}

/// Returns the offset of the frame that accepts the job of a file.
fn accepting_frame(bytes: &[u8]) -> usize {
    let text = b"Accepted";
    let found = bytes.windows(text.len()).position(|part| part == text);
    let before = &bytes[..found.expect("an accepted job")];
    let payload = before.windows(6).rposition(|part| part == b"{\"at\":");
    payload.expect("an entry") - HEAD_BYTES
}

/// A damage, and what is left.
struct Case<'a> {
    name: String,
    damage: Box<dyn Fn(&Path) + 'a>,
    /// The file that the message names.
    file: &'static str,
    kept: &'a [u32],
    lost: &'a [u32],
}

/// Damages a copy of the journal, checks and repairs it, and starts a coordinator from the result.
async fn check_case(stage: &mut Stage, case: &Case<'_>) {
    let name = &case.name;
    let original = stage.scene.path("cluster/coordinator");
    let damaged = stage.scene.path("damaged");
    let next = stage.scene.path("next");
    copy(&original, &damaged);
    (case.damage)(&damaged);
    let before = content(&damaged);
    let check = check_journal(&damaged, SchedulerConfiguration::read)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let damage = check
        .damage
        .clone()
        .unwrap_or_else(|| panic!("{name}: no damage"));
    assert!(damage.contains(case.file), "{name}: {damage}");
    assert!(damage.contains("nap journal repair"), "{name}: {damage}");
    let kept = match &check.content {
        Some(content) => content.jobs.iter().rev().map(|job| job.job.0).collect(),
        None => Vec::new(),
    };
    assert_eq!(kept, case.kept, "{name}");
    let lost: Vec<u32> = check.lost.jobs.iter().map(|job| job.job.0).collect();
    assert_eq!(lost, case.lost, "{name}");

    let configuration = &mut stage.scene.configuration;
    let directory = ClusterDirectory::resolve(Some(next.clone())).expect("a place");
    directory.create().expect("created");
    let copied = directory.coordinator_directory();
    let repaired = repair_journal(&damaged, &copied, SchedulerConfiguration::read)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(repaired, check, "{name}");
    assert_eq!(
        content(&damaged),
        before,
        "{name}: the original is unchanged"
    );
    let again = repair_journal(&damaged, &copied, SchedulerConfiguration::read)
        .expect_err("the copy exists")
        .to_string();
    assert!(again.contains("exists; name a new directory"), "{again}");

    let usual = std::mem::replace(&mut configuration.directory, directory);
    let coordinator = stage.scene.start();
    for job in case.kept {
        coordinator.job(JobId(*job)).await.expect("a kept job");
    }
    for job in case.lost {
        coordinator.job(JobId(*job)).await.expect_err("a lost job");
    }
    coordinator.stop().await;
    stage.scene.configuration.directory = usual;
    fs::remove_dir_all(damaged).expect("removed");
    fs::remove_dir_all(next).expect("removed");
}

#[tokio::test]
async fn damaged_journal_is_checked_repaired_and_started_from() {
    let mut stage = three_files().await;
    let mut cases = Vec::new();
    for (part, at) in [
        ("length", 0),
        ("checksum of the frame before", 4),
        ("settled length", 8),
        ("checksum", 16),
        ("payload", HEAD_BYTES + 10),
    ] {
        cases.push(Case {
            name: format!("flipped bit in the {part}"),
            damage: Box::new(move |directory: &Path| {
                let path = journal_file(directory, 2);
                let mut bytes = fs::read(&path).expect("read");
                let frame = accepting_frame(&bytes);
                bytes[frame + at] ^= 1;
                fs::write(path, bytes).expect("written");
            }),
            file: "journal-00000002.log is damaged at byte",
            kept: &[1],
            lost: &[3],
        });
    }
    cases.push(Case {
        name: "flipped bit in the header".to_owned(),
        damage: Box::new(|directory| {
            let path = journal_file(directory, 2);
            let mut bytes = fs::read(&path).expect("read");
            bytes[12] ^= 1;
            fs::write(path, bytes).expect("written");
        }),
        file: "journal-00000002.log is damaged at byte 0",
        kept: &[1],
        lost: &[2, 3],
    });
    for (name, more) in [("inside a frame", 30), ("between two frames", 0)] {
        cases.push(Case {
            name: format!("file cut {name}"),
            damage: Box::new(move |directory: &Path| {
                let path = journal_file(directory, 2);
                let mut bytes = fs::read(&path).expect("read");
                bytes.truncate(accepting_frame(&bytes) + more);
                fs::write(path, bytes).expect("written");
            }),
            file: "journal-00000002.log is damaged at byte",
            kept: &[1],
            lost: &[3],
        });
    }
    cases.push(Case {
        name: "missing file".to_owned(),
        damage: Box::new(|directory| {
            fs::remove_file(journal_file(directory, 2)).expect("removed");
        }),
        file: "snapshot-00000003.json is missing",
        kept: &[1],
        lost: &[3],
    });
    let foreign = stage.scene.path("foreign");
    drop(
        Journal::open(Arc::new(RealDisk), &foreign, header(), FsyncPolicy::Always).expect("opened"),
    );
    cases.push(Case {
        name: "file of another journal".to_owned(),
        damage: Box::new(move |directory: &Path| {
            fs::copy(journal_file(&foreign, 1), journal_file(directory, 3)).expect("copied");
        }),
        file: "journal-00000003.log is damaged at byte 0: the file belongs to another journal",
        kept: &[1, 2],
        lost: &[],
    });
    for case in cases {
        check_case(&mut stage, &case).await;
    }
    stage.end().await;
}

#[tokio::test]
async fn journal_without_snapshot_is_checked_repaired_and_started_from() {
    let mut stage = three_files().await;
    stage
        .play("start \n stop coordinator \n start \n submit 4 maps 1 to fourth \n kill coordinator")
        .await;
    let cases = [
        Case {
            name: "missing snapshot".to_owned(),
            damage: Box::new(|directory: &Path| {
                fs::remove_file(directory.join(SNAPSHOT)).expect("removed");
            }),
            file: "snapshot-00000004.json is missing",
            kept: &[],
            lost: &[4],
        },
        Case {
            name: "flipped bit in the snapshot".to_owned(),
            damage: Box::new(|directory: &Path| {
                let path = directory.join(SNAPSHOT);
                let mut bytes = fs::read(&path).expect("read");
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                fs::write(path, bytes).expect("written");
            }),
            file: "snapshot-00000004.json is damaged at byte",
            kept: &[],
            lost: &[4],
        },
    ];
    for case in cases {
        check_case(&mut stage, &case).await;
    }
    stage.end().await;
}

#[tokio::test]
async fn journal_in_use_is_not_repaired() {
    let mut stage = Stage::new();
    stage.play("worker w 1 \n submit 1 maps 1").await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    let copy = stage.scene.path("copy");
    let error = repair_journal(&directory, &copy, SchedulerConfiguration::read)
        .expect_err("in use")
        .to_string();
    assert!(
        error.contains("is in use by another coordinator"),
        "{error}"
    );
    stage.play("kill coordinator").await;
    let inside = directory.join("copy");
    let error = repair_journal(&directory, &inside, SchedulerConfiguration::read)
        .expect_err("inside")
        .to_string();
    assert!(error.contains("name one beside it"), "{error}");
    assert!(!copy.exists() && !inside.exists());
    stage.end().await;
}
