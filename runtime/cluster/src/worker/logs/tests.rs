//! Tests of the logs of attempts: their content, their files, and what remains after each way a worker can
//! end.

use std::fs;
use std::io::Write;

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};
use napreduce_local::process::TaskOutput;
use napreduce_local::worker::AttemptLogs;
use napreduce_local::world::World;
use napreduce_protocol::LogStream::{self, Stderr, Stdout};
use tempfile::TempDir;

use super::job::LogFiles;
use super::{LogBounds, LogShelf};
use crate::worker::paths::WorkerPaths;

const PLENTY: LogBounds = LogBounds {
    jobs_max: 100,
    bytes_max: 1 << 20,
};

/// The directory of a worker, and its logs.
struct Scene {
    _place: TempDir,
    paths: WorkerPaths,
    shelf: LogShelf,
}

fn attempt(job: u32, number: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(job),
            kind: TaskKind::Map,
            index: 0,
        },
        number,
    }
}

impl Scene {
    fn new() -> Scene {
        let place = tempfile::tempdir().expect("a directory");
        let paths = WorkerPaths::new(place.path());
        fs::create_dir(paths.logs()).expect("made");
        let shelf = LogShelf::scan(World::real().tasks, &paths, PLENTY).expect("a shelf");
        Scene {
            _place: place,
            paths,
            shelf,
        }
    }

    /// Reopens the logs, as the next daemon does.
    fn next_daemon(&mut self) {
        self.shelf = LogShelf::scan(World::real().tasks, &self.paths, PLENTY).expect("a shelf");
    }

    fn open(&self, attempt: AttemptId, bytes_max: u64) -> (LogFiles, TaskOutput) {
        self.shelf
            .open(&self.paths, attempt, bytes_max)
            .expect("files")
    }

    /// Runs an attempt that prints something and ends.
    async fn prints(&self, attempt: AttemptId, stdout: &[u8], stderr: &[u8]) {
        let (logs, mut output) = self.open(attempt, 1_000);
        output.stdout.write_all(stdout).expect("written");
        output.stderr.write_all(stderr).expect("written");
        logs.close().await;
    }

    /// Reads the log in pieces of three bytes.
    fn text(&self, attempt: AttemptId, stream: LogStream) -> Vec<u8> {
        let mut text = Vec::new();
        loop {
            let from = text.len() as u64;
            let read = self
                .shelf
                .read(&self.paths, attempt, stream, |extent| extent.read(from, 3));
            let (length, piece) = read.expect("read");
            text.extend(piece);
            if text.len() as u64 >= length {
                return text;
            }
        }
    }

    fn files_in(&self, directory: &str) -> usize {
        fs::read_dir(self.paths.logs().join(directory)).map_or(0, Iterator::count)
    }
}

#[tokio::test]
async fn log_is_readable_during_and_after_attempt() {
    let mut scene = Scene::new();
    scene.prints(attempt(1, 1), b"one\n", b"").await;
    scene.prints(attempt(1, 2), b"", b"").await;
    scene
        .prints(
            attempt(1, 3),
            b"three, without an end",
            b"==> job_0001_m_0000.1 stdout <==\nno\n",
        )
        .await;
    scene.prints(attempt(1, 33), b"\xff\n\n", b"err").await;
    let (_logs, mut output) = scene.open(attempt(1, 4), 1_000);
    output.stderr.write_all(b"so far").expect("written");
    assert_eq!(scene.text(attempt(1, 4), Stderr), b"so far");
    for again in 0..2 {
        for (number, stdout, stderr) in [
            (1, &b"one\n"[..], &b""[..]),
            (2, b"", b""),
            (
                3,
                b"three, without an end",
                b"==> job_0001_m_0000.1 stdout <==\nno\n",
            ),
            (33, b"\xff\n\n", b"err"),
            (4, b"", b"so far"),
        ] {
            let read = (
                scene.text(attempt(1, number), Stdout),
                scene.text(attempt(1, number), Stderr),
            );
            assert_eq!(
                read,
                (stdout.to_vec(), stderr.to_vec()),
                "of {number}, {again}"
            );
        }
        // The worker was killed before this attempt ended.
        scene.next_daemon();
    }
    assert_eq!(scene.files_in("job_0001"), 2, "a log and its index");
}

#[tokio::test]
async fn silent_attempts_share_log_files() {
    let scene = Scene::new();
    for number in 1..50 {
        scene.prints(attempt(1, number), b"", b"").await;
    }
    assert_eq!(
        (
            scene.files_in("job_0001"),
            scene.files_in("job_0001/running")
        ),
        (1, 3)
    );
    let (logs, _) = scene.open(attempt(1, 50), 10);
    scene.shelf.add(&scene.paths, JobId(1));
    assert_eq!(scene.files_in("job_0001/running"), 3, "one prints still");
    logs.close().await;
    assert_eq!(scene.files_in("job_0001"), 0);
}

#[tokio::test]
async fn end_of_stderr_names_omitted_bytes() {
    let scene = Scene::new();
    let (logs, mut output) = scene.open(attempt(1, 1), 1 << 20);
    assert_eq!(logs.end_of_stderr(), None);
    output.stderr.write_all(b"short \xff").expect("written");
    assert_eq!(logs.end_of_stderr().as_deref(), Some("short \u{fffd}"));
    output
        .stderr
        .write_all(&b"a line\n".repeat(10_000))
        .expect("written");
    let tail = logs.end_of_stderr().expect("some");
    let (first, last) = tail.split_once('\n').expect("several lines");
    assert_eq!(
        first,
        "[napreduce: the first 4471 bytes of this stream are omitted]"
    );
    assert!(last.len() == 64 << 10 && last.ends_with("a line\na line\n"));
    logs.close().await;
}

#[tokio::test]
async fn oversized_stream_keeps_its_beginning() {
    let scene = Scene::new();
    let (mut logs, mut output) = scene.open(attempt(1, 1), 10);
    output.stdout.write_all(b"0123456789").expect("written");
    logs.keep_bound();
    assert_eq!(scene.text(attempt(1, 1), Stdout), b"0123456789");
    let rest =
        "\n[napreduce: only the first 10 bytes of this stream are kept; the rest was dropped]\n";
    let cut = format!("0123456789{rest}").into_bytes();
    for _ in 0..3 {
        output.stdout.write_all(b"more").expect("written");
        logs.keep_bound();
        assert_eq!(scene.text(attempt(1, 1), Stdout), cut);
    }
    output.stdout.write_all(b"and more").expect("written");
    logs.close().await;
    assert_eq!(scene.text(attempt(1, 1), Stdout), cut);
    scene
        .prints(attempt(1, 2), b"the next begins anew", b"")
        .await;
    assert_eq!(scene.text(attempt(1, 2), Stdout), b"the next begins anew");
}

/// The index is truncated at every byte: its remaining entries are still correct, and entries added later are
/// found.
#[tokio::test]
async fn truncated_index_lists_complete_entries() {
    let mut scene = Scene::new();
    for number in 1..3 {
        scene
            .prints(attempt(1, number), format!("of {number}").as_bytes(), b"")
            .await;
    }
    let index = scene.paths.job_logs(JobId(1)).join("attempts.index");
    let whole = fs::read(&index).expect("an index");
    let heading = whole.iter().position(|byte| *byte == b'\n').expect("lines") + 1;
    for cut in heading..whole.len() {
        fs::write(&index, &whole[..cut]).expect("written");
        scene.next_daemon();
        scene.prints(attempt(1, 9), b"later", b"").await;
        for number in 1..3 {
            let text = scene.text(attempt(1, number), Stdout);
            assert!(
                text.is_empty() || text == format!("of {number}").into_bytes(),
                "cut at {cut}: {text:?}"
            );
        }
        assert_eq!(scene.text(attempt(1, 9), Stdout), b"later", "cut at {cut}");
    }
    for (text, expected) in [
        ("{\"version\":7}\n", "version 7"),
        ("what?\n", "has no version"),
    ] {
        fs::write(&index, text).expect("written");
        scene.next_daemon();
        let read = scene
            .shelf
            .read(&scene.paths, attempt(1, 1), Stdout, |extent| {
                extent.read(0, 1)
            });
        let error = read.expect_err("it cannot be understood").to_string();
        assert!(
            error.contains(expected) && error.contains("attempts.index"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn unsaved_log_is_read_in_place() {
    let mut scene = Scene::new();
    let obstacle = scene.paths.job_logs(JobId(1)).join("attempts.log");
    fs::create_dir_all(&obstacle).expect("made");
    scene.prints(attempt(1, 1), b"kept all the same", b"").await;
    scene.prints(attempt(1, 2), b"", b"this, too").await;
    assert_eq!(scene.text(attempt(1, 1), Stdout), b"kept all the same");
    assert_eq!(scene.text(attempt(1, 2), Stderr), b"this, too");
    scene.next_daemon();
    fs::remove_dir(&obstacle).expect("removed");
    scene.next_daemon();
    assert_eq!(scene.text(attempt(1, 1), Stdout), b"kept all the same");
    assert_eq!(scene.text(attempt(1, 2), Stderr), b"this, too");
}

#[tokio::test]
async fn logs_of_oldest_jobs_are_removed() {
    let mut scene = Scene::new();
    let names = |scene: &Scene| {
        let entries = fs::read_dir(scene.paths.logs()).expect("a directory");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    scene.shelf = LogShelf::scan(
        World::real().tasks,
        &scene.paths,
        LogBounds {
            jobs_max: 3,
            bytes_max: 500,
        },
    )
    .expect("a shelf");
    for (job, bytes) in [(1, 1), (2, 1), (3, 1), (4, 200), (5, 300)] {
        scene.prints(attempt(job, 1), b"", &vec![b'x'; bytes]).await;
        scene.shelf.add(&scene.paths, JobId(job));
    }
    assert_eq!(names(&scene), ["job_0005"]);
    let read = scene
        .shelf
        .read(&scene.paths, attempt(4, 1), Stderr, |extent| {
            extent.read(0, 1)
        });
    assert!(
        read.expect_err("it was removed")
            .to_string()
            .contains("no log of job_0004_m_0000.1")
    );
    scene.prints(attempt(6, 1), b"x", b"").await;
    LogShelf::scan(
        World::real().tasks,
        &scene.paths,
        LogBounds {
            jobs_max: 1,
            bytes_max: 500,
        },
    )
    .expect("a shelf");
    assert_eq!(names(&scene), ["job_0006"]);
}
