//! Guests on `guest_runner` that save checkpoints. After an end or a kill, the next attempt restores, and the
//! output equals that of an undisturbed run.

use std::fs;
use std::process::Command;

use napreduce_tests::{
    Folder, NotedJob, assert_nothing_is_left, counter, run, wait_until, without_cluster,
};
use rustix::process::{Pid, Signal, kill_process};

/// A checkpoint interval that no test reaches.
const NEVER: &str = "1h";
const OFTEN: &str = "100ms";
/// Lines of the first map, and groups of the reduce.
const LINES: usize = NotedJob::LINES;
const GROUPS: usize = 2 * LINES;

fn engine() -> String {
    let runner = without_cluster("guest_runner", &Folder::new())
        .get_program()
        .to_owned();
    format!("exec:{}", runner.display())
}

fn start(interval: &str, settings: &[&str]) -> NotedJob {
    let engine = engine();
    let engine = [&["--on", engine.as_str()], settings].concat();
    NotedJob::start(interval, &engine, |_, _| {})
}

/// Starts a job whose attempts after the first wait until they are released.
fn start_held() -> NotedJob {
    NotedJob::start(
        NEVER,
        &["--on", &engine()],
        |command: &mut Command, folder| {
            fs::create_dir(folder.path("hold")).expect("a folder");
            command
                .arg("--on-conf")
                .arg(format!("hold={}", folder.path("hold").display()));
        },
    )
}

fn let_begin(job: &NotedJob, attempt: &str) {
    job.folder.write(&format!("hold/job_0001_{attempt}"), "");
}

/// Returns the number of restores, and of checkpoints that were restored.
fn restores(job: &NotedJob) -> (u64, u64) {
    let out = job.folder.path("out");
    (
        counter(&out, "CHECKPOINT_RESTORES"),
        counter(&out, "CHECKPOINTS"),
    )
}

#[test]
fn terminated_guest_saves_and_resumes_work() {
    let mut job = start(NEVER, &[]);
    for _ in 0..2 {
        job.wait_for_some("m_0000");
        let ended = job.end("m_0000", Signal::TERM);
        job.wait_for_another("m_0000", ended);
    }
    job.open("m_0000");
    job.wait_for_some("r_0000");
    let ended = job.end("r_0000", Signal::TERM);
    job.wait_for_another("r_0000", ended);
    assert_eq!(job.ends_as_undisturbed(), (LINES, GROUPS));
    assert_eq!(restores(&job), (3, 3));
    assert_eq!(counter(&job.folder.path("out"), "NUM_FAILED_MAPS"), 2);
}

#[test]
fn killed_guest_loses_work_since_last_checkpoint() {
    let mut job = start(OFTEN, &[]);
    let mut done = Vec::new();
    for task in ["m_0000", "r_0000"] {
        job.wait_for_some(task);
        let before = job.saved(task, "checkpoint");
        wait_until(&format!("{task} is saved now"), || {
            let saved = job.saved(task, "checkpoint");
            !saved.is_empty() && saved != before
        });
        let killed = job.end(task, Signal::KILL);
        job.wait_for_another(task, killed);
        done.push(
            job.done(task)
                .iter()
                .filter(|process| **process == killed)
                .count(),
        );
        job.open(task);
    }
    let (records, groups) = job.ends_as_undisturbed();
    for (again, done) in [records - LINES, groups - GROUPS].into_iter().zip(done) {
        assert!(again < done, "{again} of {done} were done again");
    }
    let (restores, checkpoints) = restores(&job);
    assert!(
        restores == 2 && checkpoints >= 2,
        "{restores} {checkpoints}"
    );
}

#[test]
fn damaged_checkpoint_is_ignored() {
    let mut job = start_held();
    job.wait_for_some("m_0000");
    job.end("m_0000", Signal::TERM);
    let path = job.wait_for_saved("m_0000", "checkpoint");
    let mut bytes = fs::read(&path).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("it can be damaged");
    let_begin(&job, "m_0000.2");
    wait_until("it is set aside", || {
        !job.saved("m_0000", "checkpoint.damaged").is_empty()
    });
    job.open("m_0000");
    job.wait_for_some("r_0000");
    job.end("r_0000", Signal::TERM);
    // The description is complete, but one of its files is damaged.
    fs::write(job.wait_for_saved("r_0000", "part"), "short").expect("it can be damaged");
    let_begin(&job, "r_0000.2");
    wait_until("it is set aside", || {
        !job.saved("r_0000", "checkpoint.damaged").is_empty()
    });
    let (records, groups) = job.ends_as_undisturbed();
    assert!(records > LINES && groups > GROUPS, "{records} {groups}");
    assert_eq!(restores(&job), (0, 0));
}

#[test]
fn reduce_over_other_map_attempts_discards_checkpoint() {
    let mut job = start(NEVER, &["--on-conf", "remade=7"]);
    job.open("m_0000");
    job.wait_for_some("r_0000");
    let ended = job.end("r_0000", Signal::TERM);
    job.wait_for_checkpoint("r_0000");
    let outdated = job.states("r_0000");
    assert_eq!(outdated.len(), 1);
    job.wait_for_another("r_0000", ended);
    assert!(!outdated[0].exists() && job.states("r_0000").len() == 1);
    let (_, groups) = job.ends_as_undisturbed();
    assert!(groups > GROUPS, "{groups}");
    assert_eq!(restores(&job), (0, 0));
}

#[test]
fn interrupted_job_removes_checkpoints() {
    let mut job = start(OFTEN, &[]);
    job.wait_for_checkpoint("m_0000");
    kill_process(
        Pid::from_raw(job.program.id().cast_signed()).expect("a process"),
        Signal::INT,
    )
    .expect("it runs");
    assert_eq!(job.program.wait().expect("its end").code(), Some(130));
    assert_nothing_is_left(&job.folder, "out");
    job.assert_only_others_are_left();
}

#[test]
fn failed_job_removes_checkpoints() {
    let folder = Folder::new();
    folder.write("in.txt", "good\nbad\n");
    folder.write("saved/napreduce-checkpoints-of-another/kept", "kept");
    let mut command = without_cluster("testjobs", &folder);
    command.args([
        "in.txt",
        "--job",
        "fatal-in-map",
        "--output",
        "out",
        "--on",
        &engine(),
    ]);
    run(command.args(["--checkpoints", "saved"])).failed(1, &["this line is invalid"]);
    assert_eq!(
        fs::read_dir(folder.path("saved"))
            .expect("a folder")
            .count(),
        1
    );
}

#[test]
fn unsaveable_job_and_invalid_checkpoint_place_are_refused() {
    let folder = Folder::new();
    folder.write("in.txt", "one\n");
    fs::create_dir(folder.path("saved")).expect("made");
    for (job, place, says) in [
        (
            "gated-unsaved",
            "saved",
            "the mapper of gated-unsaved does not save its state",
        ),
        (
            "gated",
            "missing",
            "is not a directory; create one that every host of the engine sees",
        ),
        (
            "gated",
            "s3://bucket/saved",
            "build it with the feature s3 of napreduce",
        ),
    ] {
        let mut command = without_cluster("testjobs", &folder);
        command.args([
            "in.txt",
            "--job",
            job,
            "--output",
            "out",
            "--on",
            &engine(),
            "--checkpoints",
            place,
        ]);
        run(&mut command).failed(2, &[says]);
        assert_nothing_is_left(&folder, "out");
    }
    assert_eq!(
        fs::read_dir(folder.path("saved"))
            .expect("a folder")
            .count(),
        0
    );
}
