//! Task processes that were started before their attempt was known, embedded and on a cluster.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use napreduce_tests::{Folder, OwnCluster, Process, joined, program, run, wait_until};

const LINES: usize = 6;

/// Arguments of a job with one map for each of several lines.
fn arguments(folder: &Folder, output: &str) -> Vec<String> {
    folder.write(
        "in",
        (0..LINES)
            .map(|line| format!("{line:099}\n"))
            .collect::<String>(),
    );
    let all = [
        "in",
        "--job",
        "outfits",
        "--output",
        output,
        "--split-size",
        "100",
    ];
    all.map(str::to_owned).to_vec()
}

/// Checks the output of `outfits`; returns how many processes were prestarted, each with a different
/// identity.
fn check(output: Vec<u8>, in_scratch: bool) -> usize {
    let output = String::from_utf8(output).expect("text");
    assert_eq!(output.lines().count(), LINES, "{output}");
    let mut ahead = BTreeSet::new();
    let mut code = BTreeSet::new();
    let mut hashes = BTreeSet::new();
    for (number, line) in output.lines().enumerate() {
        let (_, told) = line.split_once('\t').expect("a key and a value");
        let told: Vec<&str> = told.split(' ').collect();
        let attempt = told[0];
        assert!(attempt.ends_with(&format!("_m_{number:04}.1")), "{line}");
        assert_eq!(told[1], attempt, "what a child finds");
        assert!(
            !in_scratch || told[2] == attempt,
            "it is in its scratch: {line}"
        );
        assert_eq!(
            told[3], "--napreduce-task-process",
            "what a list of processes says"
        );
        if told[4] != "-" {
            ahead.insert(told[4].to_owned());
            code.insert(told[5].to_owned());
        }
        hashes.insert(told[6].to_owned());
    }
    assert!(
        code.len() <= 1,
        "all that were started ahead are forks of one: {code:?}"
    );
    assert_eq!(hashes.len(), LINES, "each begins for itself: {hashes:?}");
    ahead.len()
}

#[test]
fn prestarted_attempts_embedded_have_own_environment() {
    let folder = Folder::new();
    for (first, expected) in [
        ("nothing", LINES),
        ("print", LINES),
        ("begin-a-thread", 0),
        ("end-when-idle", 0),
    ] {
        let mut command = program("testjobs");
        command
            .current_dir(folder.root())
            .args(arguments(&folder, first))
            .env("TESTJOBS_FIRST", first);
        run(command.args(["--slots", "1"])).succeeded();
        assert_eq!(
            check(joined(&folder.path(first)), false),
            expected,
            "{first}"
        );
    }
}

/// Starts a worker with one slot, whose tasks find this value in their environment.
fn start_worker(cluster: &OwnCluster, first: &str) -> Child {
    let mut worker = cluster.nap();
    worker.args([
        "worker",
        "--name",
        first,
        "--map-slots",
        "1",
        "--pass-environment",
        "TESTJOBS_FIRST",
    ]);
    let worker = worker
        .env("TESTJOBS_FIRST", first)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let worker = worker.expect("a worker");
    wait_until("it is in the cluster", || knows(cluster, first));
    worker
}

/// Returns whether a worker of this name is in the cluster.
fn knows(cluster: &OwnCluster, worker: &str) -> bool {
    let workers = cluster.json(&["worker", "list"]);
    workers
        .as_array()
        .is_some_and(|workers| workers.iter().any(|known| known["name"] == worker))
}

/// Returns the worker's processes that wait for an attempt.
fn idle(worker: &Child) -> Vec<Process> {
    Process::children_of(worker.id(), "--napreduce-idle-process")
}

#[test]
fn prestarted_attempts_on_cluster_have_own_environment() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    run(cluster.nap().args(["worker", "drain", "local-a", "--wait"])).succeeded();
    for (first, expected) in [
        ("print", LINES - 1),
        ("begin-a-thread", 0),
        ("end-when-idle", 0),
    ] {
        let mut worker = start_worker(&cluster, first);
        let arguments = arguments(&folder, first);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let job = cluster.submit(&folder, &arguments);
        cluster.wait(&[&job]).succeeded();
        assert_eq!(
            check(joined(&folder.path(first)), true),
            expected,
            "{first}: all but the first"
        );
        assert_eq!(
            idle(&worker).is_empty(),
            expected == 0,
            "{first}: one waits for the next attempt"
        );
        for number in 0..LINES {
            let attempt = format!("{job}_m_{number:04}.1");
            let logs = |more: &[&str]| {
                let arguments = [&["job", "logs", &job, &attempt], more].concat();
                run(cluster.nap().args(arguments)).succeeded().stdout
            };
            let words = |words: &str| {
                if first == "print" {
                    words.to_owned()
                } else {
                    String::new()
                }
            };
            assert_eq!(logs(&[]), words("printed first\n"), "{attempt}");
            assert_eq!(
                logs(&["--stderr"]),
                words("complained first\n"),
                "{attempt}"
            );
        }
        let waiting = idle(&worker);
        worker.kill().expect("killed");
        worker.wait().expect("reaped");
        wait_until("nobody waits for a worker that is gone", || {
            waiting.iter().all(Process::is_gone)
        });
        wait_until("the coordinator has noticed", || !knows(&cluster, first));
    }
}
