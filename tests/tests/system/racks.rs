//! Racks on a real cluster: a checkpoint is restored near the place where it was saved.

use std::process::{Child, Stdio};

use napreduce_tests::{Folder, OwnCluster, parts, program, run, wait_until};
use serde_json::Value;

/// Research gives its reduce slot to production. Its saved work then waits for its worker once, and for its
/// rack indefinitely.
const NATJAM: &str = "[worker]\nrack = \"/a\"\n\
                      [scheduler.natjam]\npreemptor-interval = \"100ms\"\n\
                      delay = { declines = 1, rack-declines = 1000000000, heartbeat = \"50ms\" }\n";

/// A worker that is interrupted at the end of the test.
struct Daemon(Child);

impl Daemon {
    fn start(cluster: &OwnCluster, folder: &Folder, name: &str, rack: &str) -> Daemon {
        let mut command = cluster.nap();
        command.args([
            "worker",
            "--name",
            name,
            "--rack",
            rack,
            "--map-slots",
            "1",
            "--reduce-slots",
            "1",
        ]);
        let log = std::fs::File::create(folder.path(&format!("{name}.log"))).expect("a log");
        Daemon(
            command
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("nap worker"),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.0);
        if rustix::process::kill_process(process, rustix::process::Signal::INT).is_ok() {
            let _ = self.0.wait();
        }
    }
}

fn arguments<'a>(name: &'a str, pause: &'a str, output: &'a str) -> Vec<&'a str> {
    vec![
        name,
        "--job",
        "slow",
        "--output",
        output,
        "--number",
        pause,
        "--name",
        name,
        "--reduces",
        "1",
    ]
}

/// Returns the names of the workers on which reduces of a job run.
fn reduces_on(cluster: &OwnCluster, job: &str) -> Vec<String> {
    let workers = cluster.json(&["worker", "list"]);
    let name = |id: &Value| {
        let worker = workers
            .as_array()?
            .iter()
            .find(|worker| worker["worker"] == *id)?;
        Some(worker["name"].as_str()?.to_owned())
    };
    let tasks = cluster.json(&["task", "list", job]);
    let all = tasks.as_array().expect("an array").iter();
    let live = all.flat_map(|task| task["live"].as_array().expect("an array"));
    let runs = |live: &&Value| {
        live["state"] == "running"
            && live["attempt"]
                .as_str()
                .is_some_and(|id| id.contains("_r_"))
    };
    live.filter(runs)
        .filter_map(|live| name(&live["worker"]))
        .collect()
}

#[test]
fn checkpoint_restores_on_same_rack() {
    let folder = Folder::new();
    // Maps pause for each line, and reduces for each word.
    let line = (0..400)
        .map(|index| format!("word{index:03} "))
        .collect::<String>()
        + "\n";
    folder.write("large/1", &line);
    folder.write("small/1", &line);
    let cluster = OwnCluster::start(&folder, 1, "natjam", NATJAM);
    let with = |name, pause, output, queue| {
        [arguments(name, pause, output), vec!["--queue", queue]].concat()
    };
    let large = cluster.submit(&folder, &with("large", "25000", "out-large", "research"));
    wait_until("the reduce of the large job runs", || {
        reduces_on(&cluster, &large).len() == 1
    });
    let first = reduces_on(&cluster, &large);
    let small = cluster.submit(&folder, &with("small", "60000", "out-small", "production"));
    wait_until("the small job has its slot", || {
        reduces_on(&cluster, &small) == first
    });
    // A worker of another rack is idle before a worker of the same rack joins.
    let _far = Daemon::start(&cluster, &folder, "far", "/b");
    cluster.wait_for_workers(2);
    let _near = Daemon::start(&cluster, &folder, "near", "/a");
    wait_until("the reduce goes on", || {
        !reduces_on(&cluster, &large).is_empty()
    });
    assert_eq!(reduces_on(&cluster, &large), ["near"]);
    let listed = run(cluster.nap().args(["worker", "list"]))
        .succeeded()
        .stdout;
    assert!(
        listed.contains("RACK") && listed.contains("/a") && listed.contains("/b"),
        "{listed}"
    );
    run(cluster.nap().args(["job", "kill", &small])).succeeded();
    cluster.wait(&[&large]).succeeded();
    let mut alone = program("testjobs");
    alone
        .current_dir(folder.root())
        .args(arguments("large", "0", "out-alone"))
        .arg("--quiet");
    run(&mut alone).succeeded();
    assert!(
        parts(&folder.path("out-large")) == parts(&folder.path("out-alone")),
        "the same output"
    );
}

#[test]
fn invalid_rack_name_is_refused() {
    let folder = Folder::new();
    let mut command = program("nap");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .arg("--dir")
        .arg(folder.path("cluster"));
    let refused = run(command.args(["worker", "--rack", "row 1"]));
    refused.failed(
        2,
        &["--rack", "invalid rack \"row 1\"", "such as /row-1/rack-3"],
    );
}
