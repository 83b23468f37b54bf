//! Isolation of tasks on a real cluster: memory limits, a short environment, unchanged inputs, and time
//! slices for control threads.

use std::fs;

use napreduce_tests::{Folder, GatedJob, OwnCluster, Process, joined, program, run, wait_until};

/// Returns the isolation that a worker reports.
fn isolation(cluster: &OwnCluster) -> String {
    let mut words = String::new();
    wait_until("a worker", || {
        let workers = cluster.json(&["worker", "list"]);
        words = workers[0]["isolation"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        !words.is_empty()
    });
    words
}

/// Runs a job whose only task needs 1,000 MiB but may have 320, together with one that needs none.
fn check_bound(mode: &str, expected: &[&str]) {
    let folder = Folder::new();
    folder.write("hungry", "hungry\n");
    folder.write("modest", "one\ntwo\n");
    let file = format!("[worker]\nisolation = \"{mode}\"\nmemory-factor = 4\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", &file);
    let words = isolation(&cluster);
    assert!(expected.contains(&words.as_str()), "{words}");
    let hungry = [
        "hungry",
        "--job",
        "hungry",
        "--number",
        "1000",
        "--output",
        "out",
        "--task-memory",
        "16MiB",
    ];
    let hungry = cluster.submit(
        &folder,
        &[&hungry[..], &["--conf", "attempts-max=2"]].concat(),
    );
    let modest = [
        "modest", "--job", "hungry", "--number", "1000", "--output", "other",
    ];
    let modest = cluster.submit(&folder, &modest);
    cluster.wait(&[&modest]).succeeded();
    assert_eq!(joined(&folder.path("other")), b"one\t0\ntwo\t0\n");
    let why = "exceeded its memory limit of 320 MiB (4 times its task memory of 16.0 MiB";
    cluster
        .wait(&[&hungry])
        .failed(1, &[why, "--task-memory", "--memory-factor"]);
    let enough = [
        "hungry", "--job", "hungry", "--number", "100", "--output", "enough",
    ];
    cluster
        .wait(&[&cluster.submit(&folder, &enough)])
        .succeeded();
}

#[test]
fn task_over_memory_limit_is_killed_by_cgroup() {
    check_bound("auto", &["cgroup v1", "cgroup v2", "watchdog"]);
}

#[test]
fn task_over_memory_limit_is_killed_by_watchdog() {
    check_bound("watchdog", &["watchdog"]);
}

#[test]
fn task_inherits_no_secrets_or_descriptors() {
    let folder = Folder::new();
    folder.write("in", "x\n");
    let secret = folder.write("secret-of-somebody", "hush");
    let file = fs::File::open(&secret).expect("a file");
    // An open descriptor, as a shell or a service may leave one.
    let inherited = rustix::io::dup(&file).expect("a descriptor");
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).expect("inherited");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let mut worker = cluster.nap();
    worker.args(["worker", "--name", "w", "--pass-environment", "ALSO_THIS"]);
    worker
        .env("AWS_SECRET_ACCESS_KEY", "hush")
        .env("ALSO_THIS", "yes")
        .env("LC_ALL", "C");
    let mut worker = worker
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a worker");
    cluster.wait_for_workers(2);
    // So that the job runs on the worker with this environment.
    run(cluster.nap().args(["worker", "drain", "local-a", "--wait"])).succeeded();
    let job = cluster.submit(&folder, &["in", "--job", "surroundings", "--output", "out"]);
    cluster.wait(&[&job]).succeeded();
    let found = String::from_utf8(joined(&folder.path("out"))).expect("text");
    for expected in [
        "x\tPATH\n",
        "x\tALSO_THIS\n",
        "x\tLC_ALL\n",
        "x\tNAPREDUCE_ATTEMPT_ID\n",
    ] {
        assert!(
            found.contains(expected),
            "{expected:?} is missing in {found}"
        );
    }
    for unwanted in ["AWS_SECRET", "secret-of-somebody", "NAPREDUCE_SECRET"] {
        assert!(!found.contains(unwanted), "{unwanted:?} is in {found}");
    }
    worker.kill().expect("killed");
    worker.wait().expect("reaped");
    drop(inherited);
}

#[test]
fn input_changed_between_attempts_fails_job() {
    let folder = Folder::new();
    for cluster in [false, true] {
        let output = if cluster { "of-cluster" } else { "embedded" };
        folder.write("in", "one\ntwo\n");
        let arguments = ["in", "--job", "spoils-its-input", "--output", output];
        let says = ["in was written to after the job began", "run the job again"];
        if cluster {
            let cluster = OwnCluster::start(&folder, 1, "fifo", "");
            let job = cluster.submit(&folder, &arguments);
            cluster.wait(&[&job]).failed(1, &says);
        } else {
            run(program("testjobs")
                .current_dir(folder.root())
                .args(arguments))
            .failed(1, &says);
        }
        assert!(!folder.has(&format!("{output}/_SUCCESS")));
    }
}

#[test]
fn invalid_limits_are_refused_before_start() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let worker = |arguments: &[&str]| {
        run(cluster
            .nap()
            .args(["worker", "--name", "wrong"])
            .args(arguments))
    };
    worker(&["--memory-factor", "0"]).failed(2, &["--memory-factor"]);
    worker(&["--isolation", "walls"]).failed(2, &["--isolation", "cgroup", "watchdog"]);
    folder.write("cluster/napreduce.toml", "[worker]\nmemory-factor = 0\n");
    let ended = worker(&[]);
    assert!(!ended.status.success());
    assert!(
        ended.stderr.contains("memory-factor 0: must be at least 1"),
        "{}",
        ended.stderr
    );
}

/// Returns the threads of a process, and whether each has a short time slice; `None` if the kernel does not
/// report it.
fn short_slices(process: Process) -> Option<Vec<(String, bool)>> {
    let threads = fs::read_dir(format!("/proc/{}/task", process.number))
        .expect("a process")
        .flatten();
    let thread = |path: std::path::PathBuf| {
        let main = path.ends_with(process.number.to_string());
        let name = fs::read_to_string(path.join("comm")).ok()?;
        let text = fs::read_to_string(path.join("sched")).ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        let name = if main { "main" } else { name.trim_end() };
        Some((name.to_owned(), line.ends_with(" 100000")))
    };
    threads.map(|entry| thread(entry.path())).collect()
}

#[test]
fn control_threads_get_short_time_slices() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated", "slices", 1, 1);
    job.until("m_0000.1", "running");
    let task = cluster.tasks()[0];
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse::<u32>().ok());
    let grants = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
    let (true, Some(threads)) = (grants, short_slices(task)) else {
        return println!("skipped: Linux {release} grants no slices, or shows none");
    };
    assert!(
        threads.contains(&("control".to_owned(), true)),
        "{threads:?}"
    );
    assert!(threads.contains(&("main".to_owned(), false)), "{threads:?}");
    let worker = short_slices(cluster.workers()[0]).expect("as of the task");
    for (name, is_short) in [("main", true), ("attempts", true), ("spawner", false)] {
        assert!(
            worker.contains(&(name.to_owned(), is_short)),
            "{name}: {worker:?}"
        );
    }
    let coordinator = short_slices(cluster.coordinator()).expect("as of the task");
    for name in ["main", "tokio-rt-worker"] {
        assert!(
            coordinator.contains(&(name.to_owned(), true)),
            "{name}: {coordinator:?}"
        );
    }
    job.ends_as_undisturbed();
}
