//! The coordinator's files of this and earlier versions in `tests/kept` (see the README there) stay readable.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use napreduce_engine::JobId;
use napreduce_history::HistoryFolder;
use napreduce_protocol::JobEnd;
use napreduce_schedulers::SchedulerConfiguration;

use super::repair::copy;
use super::script::Stage;
use crate::coordinator::check_journal;
use crate::journal::{FsyncPolicy, JOURNAL_VERSION};

/// Job 1 ends, job 2 is in the snapshot, and job 3 in the journal after it.
const SCRIPT: &str = "worker w 1
                      submit 1 maps 1 reduces 1
                      finish 1 on w
                      submit 2 maps 2 to second
                      stop coordinator
                      start
                      submit 3 maps 1 to third
                      kill coordinator";

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kept")
}

/// Writes the files of this version.
async fn write(directory: &Path) {
    let mut stage = Stage::new();
    stage.scene.configuration.fsync = FsyncPolicy::Always;
    stage.play(SCRIPT).await;
    if directory.exists() {
        fs::remove_dir_all(directory).expect("removed");
    }
    copy(&stage.scene.path("cluster/coordinator"), directory);
    stage.end().await;
}

/// Reads the files of a version, and continues from them.
async fn read(directory: &Path) {
    let name = directory.display();
    let check = check_journal(directory, SchedulerConfiguration::read)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!((check.damage, check.lost.entries), (None, 0), "{name}");
    let content = check.content.unwrap_or_else(|| panic!("{name}: empty"));
    let jobs: Vec<JobId> = content.jobs.iter().map(|job| job.job).collect();
    assert_eq!(jobs, [JobId(3), JobId(2)], "{name}");
    assert!(content.has_snapshot && content.entries > 0, "{name}");

    let history = HistoryFolder::open(&directory.join("history")).expect("a history");
    let ended = history.read(JobId(1)).expect("readable").expect("job 1");
    assert!(
        matches!(ended.end, JobEnd::Succeeded(_)),
        "{name}: {:?}",
        ended.end
    );
    assert_eq!(ended.detail.attempts.len(), 2, "{name}");
    assert_eq!(ended.cluster.expect("recorded").scheduler, "fifo", "{name}");

    let stage = Stage::new();
    copy(directory, &stage.scene.path("cluster/coordinator"));
    let coordinator = stage.scene.start();
    for job in [1, 2, 3] {
        let known = coordinator.job(JobId(job)).await;
        assert!(known.is_ok(), "{name}: job {job}: {known:?}");
    }
    coordinator.stop().await;
    stage.end().await;
}

#[tokio::test]
async fn kept_files_of_coordinators_are_read() {
    let current = kept().join(format!("coordinator-{JOURNAL_VERSION}"));
    if env::var_os("NAPREDUCE_WRITE_KEPT").is_some() {
        write(&current).await;
    }
    assert!(
        current.exists(),
        "write the files of this version as tests/kept/README.md describes"
    );
    for entry in fs::read_dir(kept()).expect("listed") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("coordinator-") {
            read(&path).await;
        }
    }
}
