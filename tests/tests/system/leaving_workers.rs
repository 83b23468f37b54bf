//! Workers that are terminated externally: SIGTERM to a daemon, to every process of an allocation, or to process
//! 1 of a pod, and a time limit. Their tasks resume on other workers.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use napreduce_tests::{
    Folder, GatedJob, OwnCluster, Process, counter, is_ignored, program, run, skipped, wait_until,
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A worker that was started without `nap up` and is not restarted.
struct Worker {
    started: Child,
    /// The daemon, which is not the started process if that one holds a namespace.
    daemon: Process,
}

impl Worker {
    /// Starts the worker `other` with this many slots of each kind, and waits until it has joined the
    /// cluster.
    fn start(folder: &Folder, cluster: &OwnCluster, slots: &str, options: &[&str]) -> Worker {
        Worker::start_by(
            cluster.nap(),
            folder,
            cluster,
            &[&["--map-slots", slots], options].concat(),
        )
    }

    fn start_by(
        mut nap: Command,
        folder: &Folder,
        cluster: &OwnCluster,
        options: &[&str],
    ) -> Worker {
        let log = File::create(folder.path("other.log")).expect("a log");
        nap.args(["worker", "--name", "other", "--reduce-slots", "1"])
            .args(options);
        nap.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let started = nap.spawn().expect("a worker");
        cluster.wait_for_workers(2);
        let daemon = Process::of(started.id()).expect("it runs");
        let daemon = Process::children_of(started.id(), "worker")
            .first()
            .copied()
            .unwrap_or(daemon);
        Worker { started, daemon }
    }

    fn tasks(&self) -> Vec<Process> {
        Process::tasks_of(self.daemon.number.unsigned_abs())
    }

    /// Waits for its end.
    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end of the worker", || {
            status = self.started.try_wait().expect("a child of this test");
            status.is_some()
        });
        status.expect("it has just come")
    }
}

impl Drop for Worker {
    /// Kills the worker if the test has failed.
    fn drop(&mut self) {
        let _ = self.started.kill();
        let _ = self.started.wait();
    }
}

/// Submits a job with a map for each of two slots, or three, and waits until they run; returns those on
/// `other`.
fn running<'test>(
    folder: &'test Folder,
    cluster: &'test OwnCluster,
    definition: &'static str,
    maps: usize,
) -> (GatedJob<'test>, Vec<String>) {
    let job = GatedJob::submit(folder, cluster, definition, "long", 1, maps);
    let listed = cluster.json(&["worker", "list"]);
    let mut workers = listed.as_array().expect("an array").iter();
    let other = &workers
        .find(|worker| worker["name"] == "other")
        .expect("it is there")["worker"];
    let all = (0..maps).map(|index| format!("m_{index:04}"));
    let there = all
        .filter(|map| job.until(&format!("{map}.1"), "running")["worker"] == *other)
        .collect();
    (job, there)
}

/// Lets the tasks on the remaining worker end, so that those of `other` get a slot, and waits until they have
/// resumed.
fn go_on_elsewhere(job: &GatedJob<'_>, maps: usize, there: &[String]) {
    for index in 0..maps {
        let map = format!("m_{index:04}");
        if !there.contains(&map) {
            job.open(&map);
        }
    }
    for map in there {
        job.until(&format!("{map}.2"), "running");
        job.open(map);
    }
}

/// Fails unless the job lost less than one percent of its work.
fn lost_next_to_nothing(job: &GatedJob<'_>) {
    let of = |name| counter(&job.output(), name);
    let lost = of("WORK_LOST_MILLIS");
    let work = of("MILLIS_MAPS") + of("MILLIS_REDUCES");
    assert!(lost * 100 < work, "{lost} ms of {work} ms are lost");
}

/// Returns the listed time and reason of the worker's end.
fn reason(cluster: &OwnCluster) -> String {
    let listed = cluster.json(&["worker", "list", "--all"]);
    let mut workers = listed.as_array().expect("an array").iter();
    let gone = workers
        .find(|worker| worker["name"] == "other")
        .expect("it was there");
    assert_eq!(gone["state"], "left", "{gone}");
    gone["reason"].as_str().expect("a reason").to_owned()
}

#[test]
fn worker_on_sigterm_checkpoints_tasks_and_leaves() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut other = Worker::start(&folder, &cluster, "1", &[]);
    let (job, there) = running(&folder, &cluster, "gated", 2);
    assert_eq!(there.len(), 1);
    assert!(other.daemon.signal(Signal::TERM));
    assert_eq!(other.end().code(), Some(0));
    assert!(
        reason(&cluster).contains("it is ended: SIGTERM"),
        "{}",
        reason(&cluster)
    );
    go_on_elsewhere(&job, 2, &there);
    job.ends_as_undisturbed();
    for (name, times) in [
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
        ("NUM_KILLED_MAPS", 0),
    ] {
        assert_eq!(counter(&job.output(), name), times, "{name}");
    }
    lost_next_to_nothing(&job);
    let preemption = &job.history()["preemptions"][0];
    assert_eq!(
        (&preemption["by"], &preemption["end"]),
        (&"engine".into(), &"checkpointed".into())
    );
}

#[test]
fn map_output_outlives_worker_on_sigterm() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut other = Worker::start(&folder, &cluster, "1", &[]);
    let (job, there) = running(&folder, &cluster, "gated", 2);
    job.open(&there[0]);
    wait_until("the end of its map", || job.live(&there[0]).is_null());
    assert!(other.daemon.signal(Signal::TERM));
    assert_eq!(other.end().code(), Some(0));
    let moved = format!(
        "the output of {}.1 was copied off its worker",
        job.task(&there[0])
    );
    let history = job.history();
    let events = history["events"].as_array().expect("an array");
    assert!(
        events.iter().any(|event| event["text"] == moved.as_str()),
        "{history}"
    );
    job.ends_as_undisturbed();
    for (name, times) in [
        ("TOTAL_LAUNCHED_MAPS", 2),
        ("NUM_KILLED_MAPS", 0),
        ("WORK_LOST_MILLIS", 0),
    ] {
        assert_eq!(counter(&job.output(), name), times, "{name}");
    }
}

/// As Slurm does when it preempts an allocation.
#[test]
fn sigterm_to_whole_allocation_saves_tasks() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut other = Worker::start(&folder, &cluster, "2", &[]);
    let (job, there) = running(&folder, &cluster, "gated", 3);
    assert_eq!(there.len(), 2);
    job.command("suspend", &there[0]);
    job.until(&format!("{}.1", there[0]), "suspended");
    let tasks = other.tasks();
    assert_eq!(tasks.iter().filter(|task| task.is_stopped()).count(), 1);
    // Tasks first, before the worker orders checkpoints.
    for process in tasks.iter().chain([&other.daemon]) {
        assert!(process.signal(Signal::CONT) && process.signal(Signal::TERM));
    }
    assert_eq!(other.end().code(), Some(0));
    wait_until("the end of its tasks", || {
        tasks.iter().all(Process::is_gone)
    });
    job.command("resume", &there[0]);
    go_on_elsewhere(&job, 3, &there);
    job.ends_as_undisturbed();
    assert_eq!(counter(&job.output(), "CHECKPOINT_RESTORES"), 2);
    lost_next_to_nothing(&job);
}

#[test]
fn sigterm_to_task_keeps_it_suspended() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let other = Worker::start(&folder, &cluster, "2", &[]);
    let (job, there) = running(&folder, &cluster, "gated", 3);
    job.command("suspend", &there[0]);
    job.until(&format!("{}.1", there[0]), "suspended");
    let tasks = other.tasks();
    for task in &tasks {
        assert!(task.catches(Signal::TERM));
        assert!(task.signal(Signal::TERM) && task.signal(Signal::CONT));
    }
    wait_until("another stop", || {
        tasks.iter().filter(|task| task.is_stopped()).count() == 1
    });
    assert_eq!(job.live(&there[0])["state"], "suspended");
    job.command("resume", &there[0]);
    job.ends_as_undisturbed();
    for (name, times) in [
        ("CHECKPOINTS", 0),
        ("NUM_KILLED_MAPS", 0),
        ("WORK_LOST_MILLIS", 0),
    ] {
        assert_eq!(counter(&job.output(), name), times, "{name}");
    }
}

#[test]
fn unsaveable_task_is_killed_after_half_grace() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut other = Worker::start(&folder, &cluster, "1", &["--grace", "2s"]);
    let (job, there) = running(&folder, &cluster, "gated-unsaved", 2);
    let began = Instant::now();
    assert!(other.daemon.signal(Signal::TERM));
    assert_eq!(other.end().code(), Some(0));
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1), "killed after {took:?}");
    go_on_elsewhere(&job, 2, &there);
    job.ends_as_undisturbed();
    assert_eq!(counter(&job.output(), "NUM_KILLED_MAPS"), 1);
}

#[test]
fn worker_told_to_leave_returns_tasks_at_once() {
    for (options, signal) in [
        (&["--on-terminate", "leave"][..], Signal::TERM),
        (&[], Signal::INT),
    ] {
        let folder = Folder::new();
        let cluster = OwnCluster::start(&folder, 1, "fifo", "");
        let mut other = Worker::start(&folder, &cluster, "1", options);
        let (job, there) = running(&folder, &cluster, "gated", 2);
        assert!(other.daemon.signal(signal));
        assert_eq!(other.end().code(), Some(0));
        go_on_elsewhere(&job, 2, &there);
        job.ends_as_undisturbed();
        assert_eq!(counter(&job.output(), "NUM_KILLED_MAPS"), 1);
        assert_eq!(counter(&job.output(), "CHECKPOINTS"), 0);
    }
}

#[test]
fn worker_with_time_limit_drains_before_it() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "long", 1, 2);
    job.until("m_0000.1", "running");
    let began = Instant::now();
    let mut other = Worker::start(
        &folder,
        &cluster,
        "1",
        &["--time-limit", "17s", "--grace", "5s"],
    );
    job.until("m_0001.1", "running");
    let there = ["m_0001".to_owned()];
    assert_eq!(other.end().code(), Some(0));
    assert!(
        began.elapsed() >= Duration::from_secs(10),
        "it left after {:?}",
        began.elapsed()
    );
    assert!(
        reason(&cluster).contains("its time limit is near"),
        "{}",
        reason(&cluster)
    );
    go_on_elsewhere(&job, 2, &there);
    job.ends_as_undisturbed();
    assert_eq!(counter(&job.output(), "CHECKPOINT_RESTORES"), 1);
    lost_next_to_nothing(&job);
}

#[test]
fn nap_up_on_sigterm_saves_work_but_not_on_interrupt() {
    for (signal, saved) in [(Signal::TERM, 1), (Signal::INT, 0)] {
        if is_ignored(signal) {
            println!("partly skipped: {signal:?} is ignored here");
            continue;
        }
        let folder = Folder::new();
        let cluster = OwnCluster::start(&folder, 1, "fifo", "");
        let job = GatedJob::submit(&folder, &cluster, "gated", "long", 1, 1);
        job.until("m_0000.1", "running");
        cluster.end_and_start_again(signal, 1);
        job.until("m_0000.2", "running");
        job.ends_as_undisturbed();
        assert_eq!(counter(&job.output(), "CHECKPOINT_RESTORES"), saved);
        assert_eq!(counter(&job.output(), "NUM_KILLED_MAPS"), 1 - saved);
    }
}

/// Returns why no pid namespace can be created, if so.
fn no_namespace() -> Option<String> {
    let tried = Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", "true"])
        .output();
    match tried {
        Ok(tried) if tried.status.success() => None,
        Ok(tried) => Some(String::from_utf8_lossy(&tried.stderr).trim().to_owned()),
        Err(error) => Some(format!("cannot run unshare: {error}; install util-linux")),
    }
}

#[test]
fn evicted_pod_saves_its_work() {
    if let Some(why) = no_namespace() {
        return skipped("pod", &format!("{why}; run this test as root"));
    }
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    // As in a container, the worker is process 1 and sees only its own descendants.
    let mut pod = Command::new("unshare");
    pod.args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(program("nap").get_program());
    pod.env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .arg("--dir")
        .arg(cluster.directory());
    let mut other = Worker::start_by(pod, &folder, &cluster, &["--map-slots", "1"]);
    assert_ne!(
        Process::of(other.started.id()),
        Some(other.daemon),
        "there is somebody else around it"
    );
    let (job, there) = running(&folder, &cluster, "gated", 2);
    assert_eq!(there.len(), 1);
    let tasks = other.tasks();
    assert_eq!(tasks.len(), 1);
    assert!(other.daemon.signal(Signal::TERM));
    assert_eq!(other.end().code(), Some(0));
    assert!(tasks.iter().all(Process::is_gone), "{tasks:?}");
    go_on_elsewhere(&job, 2, &there);
    job.ends_as_undisturbed();
    assert_eq!(counter(&job.output(), "CHECKPOINT_RESTORES"), 1);
    lost_next_to_nothing(&job);
}

#[test]
fn nap_down_ends_every_process_and_jobs_continue_with_the_next_nap_up() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "long", 1, 2);
    for map in ["m_0000.1", "m_0001.1"] {
        job.until(map, "running");
    }
    let mut processes = vec![cluster.coordinator()];
    processes.extend(cluster.workers());
    processes.extend(cluster.tasks());
    assert_eq!(processes.len(), 5);
    let ended = run(cluster.nap().args(["down", "--format", "json"])).succeeded();
    assert!(processes.iter().all(Process::is_gone), "{}", ended.stderr);
    let ended: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(ended["workers"], json!(["local-a", "local-b"]));
    assert_eq!(
        ended["unfinished"],
        json!([{ "job": "job_0001", "name": "long" }])
    );
    run(cluster.nap().arg("down")).failed(69, &["no nap up is running for"]);
    cluster.start_again(2);
    job.until("m_0000.2", "running");
    // Its tasks were checkpointed, so that they lose next to nothing.
    job.ends_as_undisturbed();
    assert_eq!(counter(&job.output(), "CHECKPOINT_RESTORES"), 2);
    lost_next_to_nothing(&job);
    let ended = run(cluster.nap().args(["down", "--now"])).succeeded();
    assert!(ended.stdout.starts_with("ended after "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("unfinished"), "{}", ended.stdout);
    cluster.start_again(2);
}
