//! Faults of a host, a worker name, a worker or the input on a cluster, from the cause to the message.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use napreduce_tests::{Folder, OwnCluster, joined, program, run, wait_until};
use serde_json::Value;

/// A daemon that ends with the test.
struct Daemon(Child);

impl Daemon {
    fn start(mut command: Command, log: &std::path::Path) -> Daemon {
        let log = File::create(log).expect("a log");
        Daemon(
            command
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("a daemon"),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn state_of(workers: &Value, name: &str) -> String {
    let all = workers.as_array().expect("a list");
    let found = all.iter().find(|worker| worker["name"] == name);
    found.map_or_else(String::new, |worker| {
        worker["state"].as_str().unwrap_or_default().to_owned()
    })
}

#[test]
fn deterministic_error_fails_job_without_retry() {
    let folder = Folder::new();
    folder.write("latin", b"fine\nnot \xff fine\n");
    folder.write("damaged.gz", b"\x1f\x8b\x08\x00nothing that gzip made");
    folder.write("long", vec![b'x'; 20 << 20]);
    for (input, memory) in [
        ("latin", "16MiB"),
        ("damaged.gz", "16MiB"),
        ("long", "4MiB"),
    ] {
        let mut command = program("testjobs");
        command
            .current_dir(folder.root())
            .args([input, "--job", "one-key", "--output", "out", "--quiet"]);
        let ended =
            run(command.args(["--task-memory", memory])).failed(1, &["is not retried", input]);
        assert!(!ended.stderr.contains("failed 4 times"), "{}", ended.stderr);
    }
    let mut command = program("testjobs");
    command.current_dir(folder.root()).args([
        "long",
        "--job",
        "known-lines",
        "--output",
        "out",
        "--quiet",
    ]);
    run(&mut command).failed(1, &["is not retried", "unknown side file"]);
}

#[test]
fn worker_without_disk_gets_no_tasks_until_space() {
    let folder = Folder::new();
    folder.write("in", "a b\nb\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut short = cluster.nap();
    short.args(["worker", "--name", "short", "--disk-reserve", "1000000GiB"]);
    let _short = Daemon::start(short, &folder.path("short.log"));
    let mut state = String::new();
    wait_until("a worker that lacks disk", || {
        state = state_of(&cluster.json(&["worker", "list"]), "short");
        state.contains("KiB free at")
    });
    assert!(state.starts_with("excluded, disk"), "{state}");
    let job = cluster.submit(
        &folder,
        &[
            "in",
            "--job",
            "words-of-bytes",
            "--output",
            "out",
            "--reduces",
            "2",
        ],
    );
    cluster.wait(&[&job]).succeeded();
    let history = cluster.json(&["job", "history", &job]);
    let attempts = history[0]["attempts"].as_array().expect("attempts");
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt["worker_name"] != "short"),
        "{history}"
    );
}

/// Starts a worker with four map slots whose directory is a file system for the program of the jobs and 3 MiB, and waits
/// until it has joined. `None` if this system does not let a test mount one.
fn small_worker(folder: &Folder, cluster: &OwnCluster, name: &str) -> Option<Daemon> {
    let disk = format!("{name}-disk");
    let jobs = program("testjobs");
    let program_size = std::fs::metadata(jobs.get_program())
        .expect("a program")
        .len();
    let size = program_size + (3 << 20);
    std::fs::create_dir(folder.path(&disk)).expect("a directory");
    let script =
        format!("mount -t tmpfs -o size={size} tmpfs {disk} || exit 77; exec \"$0\" \"$@\"");
    let nap = program("nap");
    let mut small = Command::new("unshare");
    small
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(nap.get_program());
    small
        .current_dir(folder.root())
        .arg("--dir")
        .arg(cluster.directory());
    let directory = format!("{disk}/worker");
    small.args(["worker", "--name", name, "--directory", &directory]);
    small.args([
        "--map-slots",
        "4",
        "--network-shuffle",
        "--disk-reserve",
        "1KiB",
    ]);
    let log = folder.path(&format!("{name}.log"));
    let mut small = Daemon::start(small, &log);
    let mut ended = None;
    wait_until("the small worker, or its end", || {
        ended = small.0.try_wait().expect("a child");
        ended.is_some() || state_of(&cluster.json(&["worker", "list"]), name) == "up"
    });
    if ended.is_none() {
        return Some(small);
    }
    let printed = std::fs::read_to_string(log).unwrap_or_default();
    assert!(
        printed.contains("unshare") || printed.contains("mount"),
        "{printed}"
    );
    println!("skipped: this system does not let the test mount a file system: {printed}");
    None
}

#[test]
fn job_larger_than_all_disks_fails_alone() {
    let folder = Folder::new();
    let text: String = (0..400_000)
        .map(|number| format!("word{number}\n"))
        .collect();
    folder.write("in", text);
    folder.write("short", "a b\nb\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let Some(_ada) = small_worker(&folder, &cluster, "ada") else {
        return;
    };
    let Some(_bob) = small_worker(&folder, &cluster, "bob") else {
        return;
    };
    // Only the small workers are left.
    run(cluster.nap().args(["worker", "drain", "worker_0001"])).succeeded();
    let arguments = [
        "in",
        "--job",
        "words-without-combiner",
        "--output",
        "large",
        "--reduces",
        "1",
    ];
    let more = ["--conf", "attempts-max=2", "--task-memory", "4MiB"];
    let large = cluster.submit(&folder, &[&arguments[..], &more[..]].concat());
    wait_until("a failure", || {
        let history = cluster.json(&["job", "history", &large]).to_string();
        history.contains("local disk: ")
    });
    let arguments = [
        "short",
        "--job",
        "words-of-bytes",
        "--output",
        "small",
        "--reduces",
        "1",
    ];
    let small = cluster.submit(&folder, &arguments);
    cluster.wait(&[&small]).succeeded();
    assert_eq!(joined(&folder.path("small")), b"a\t1\nb\t2\n");
    cluster.wait(&[&large]).failed(
        1,
        &[
            "for lack of a resource of the host",
            "of the worker's disk, and the largest worker has",
        ],
    );
    let workers = cluster.json(&["worker", "list"]);
    for name in ["ada", "bob"] {
        assert_eq!(state_of(&workers, name), "up", "{workers}");
    }
}

#[test]
fn job_that_exhausts_its_open_files_fails_alone() {
    let folder = Folder::new();
    folder.write("in", "a\n");
    folder.write("short", "a b\nb\n");
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let arguments = [
        "in",
        "--job",
        "open-files",
        "--output",
        "bad",
        "--reduces",
        "1",
    ];
    let more = ["--conf", "attempts-max=2", "--task-memory", "4MiB"];
    let bad = cluster.submit(&folder, &[&arguments[..], &more[..]].concat());
    cluster.wait(&[&bad]).failed(
        1,
        &["for lack of a resource of the host", "Too many open files"],
    );
    let workers = cluster.json(&["worker", "list"]);
    for worker in workers.as_array().expect("a list") {
        assert_eq!(worker["state"], "up", "{workers}");
    }
    let arguments = [
        "short",
        "--job",
        "words-of-bytes",
        "--output",
        "good",
        "--reduces",
        "1",
    ];
    let good = cluster.submit(&folder, &arguments);
    cluster.wait(&[&good]).succeeded();
}

#[test]
fn full_scratch_moves_task_to_other_worker() {
    let folder = Folder::new();
    let text: String = (0..400_000)
        .map(|number| format!("word{number}\n"))
        .collect();
    folder.write("in", text);
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let Some(_small) = small_worker(&folder, &cluster, "small") else {
        return;
    };
    let arguments = [
        "in",
        "--job",
        "words-without-combiner",
        "--output",
        "out",
        "--reduces",
        "1",
    ];
    let more = [
        "--conf",
        "attempts-max=1",
        "--task-memory",
        "4MiB",
        "--split-size",
        "1MiB",
    ];
    let job = cluster.submit(&folder, &[&arguments[..], &more[..]].concat());
    let ended = cluster.wait(&[&job]);
    let history = cluster.json(&["job", "history", &job]).to_string();
    ended.succeeded();
    assert!(history.contains("local disk: "), "{history}");
    assert!(
        !history.contains("cannot fetch the job's program"),
        "{history}"
    );
    assert_eq!(
        joined(&folder.path("out"))
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        400_000
    );
}

#[test]
fn worker_with_name_in_use_is_refused() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let workers = cluster.json(&["worker", "list"]);
    let name = workers[0]["name"].as_str().expect("a name").to_owned();
    let other = folder.path("other");
    let mut second = cluster.nap();
    second
        .args(["worker", "--name", &name, "--directory"])
        .arg(&other);
    run(&mut second).failed(
        2,
        &["is in use by worker_0001", "choose another with --name"],
    );
    let after = cluster.json(&["worker", "list", "--all"]);
    assert_eq!(after[0]["worker"], "worker_0001", "{after}");
    assert_eq!(after[0]["state"], "up", "{after}");
    assert_eq!(after.as_array().map(Vec::len), Some(1), "{after}");
}

#[test]
fn job_that_crashes_workers_fails_alone() {
    let folder = Folder::new();
    folder.write("in", "a b\nb\n");
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let arguments = [
        "in",
        "--job",
        "kills-its-worker",
        "--output",
        "bad",
        "--conf",
        "attempts-max=100",
    ];
    let bad = cluster.submit(&folder, &arguments);
    cluster
        .wait(&[&bad])
        .failed(1, &["the task is assumed to be the cause"]);
    let good = cluster.submit(
        &folder,
        &[
            "in",
            "--job",
            "words-of-bytes",
            "--output",
            "good",
            "--reduces",
            "1",
        ],
    );
    cluster.wait(&[&good]).succeeded();
    assert_eq!(joined(&folder.path("good")), b"a\t1\nb\t2\n");
}
