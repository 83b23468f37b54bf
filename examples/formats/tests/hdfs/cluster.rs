//! Cluster jobs: tasks read and write HDFS, and the coordinator renames the parts.

use std::path::PathBuf;

use napreduce_tests::{Folder, OwnCluster, counter, joined, program, run};
use serde_json::Value;

use super::inputs::text;
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::Files;

/// The configuration of daemons whose tasks use HDFS.
const PASSED: &str = "[worker]\npass-environment = [\"HADOOP_*\"]\n";

/// A `nap` with support for stores; the default one has none.
fn nap_with_stores() -> PathBuf {
    program("nap-with-stores").get_program().into()
}

/// Starts a cluster of two workers that uses `address` as the NameNode.
pub fn start(files: &Files, folder: &Folder, address: &str) -> OwnCluster {
    OwnCluster::start_program(
        &nap_with_stores(),
        folder,
        2,
        "fifo",
        PASSED,
        &files.environment(address),
    )
}

/// Submits the job.
pub fn submit(scene: &Scene, cluster: &OwnCluster) -> String {
    let mut command = scene.command(&scene.files.address, &scene.out());
    let ended = run(command
        .arg("--cluster")
        .arg(cluster.directory())
        .arg("--detach"))
    .succeeded();
    ended.stdout.trim().to_owned()
}

#[test]
fn cluster_output_equals_local_output() {
    let Some(scene) = Scene::new("of-cluster") else {
        return;
    };
    let cluster = start(&scene.files, &scene.folder, &scene.files.address);
    let job = submit(&scene, &cluster);
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
    let mut again = scene.command(&scene.files.address, &scene.out());
    run(again.arg("--cluster").arg(cluster.directory())).failed(2, &["exists; pass --overwrite"]);
}

#[test]
fn suspended_and_killed_writers_do_not_change_output() {
    let Some(scene) = Scene::new("preempted") else {
        return;
    };
    let proxy = Proxy::on(Kind::SEND, &scene.files.address, &[Trick::Hold]);
    let cluster = start(&scene.files, &scene.folder, &proxy.address);
    let job = submit(&scene, &cluster);
    proxy.wait_until_held();
    let suspended = running_reduce(&cluster, &job);
    run(cluster.nap().args(["task", "suspend", &suspended])).succeeded();
    run(cluster.nap().args(["task", "resume", &suspended])).succeeded();
    for task in cluster.tasks() {
        // A task may have ended by itself.
        task.signal(rustix::process::Signal::KILL);
    }
    proxy.drop_held();
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
}

#[test]
fn checkpoint_is_restored_on_another_worker() {
    let Some(scene) = Scene::new("saved") else {
        return;
    };
    scene.files.put(
        "in.txt",
        std::fs::read(scene.folder.path("in.txt")).expect("a file"),
    );
    let proxy = Proxy::on(Kind::READ, &scene.files.address, &[Trick::Hold]);
    let cluster = start(&scene.files, &scene.folder, &proxy.address);
    let mut submit = scene.program(env!("CARGO_BIN_EXE_stored-words"), &scene.files.address);
    submit.args([
        &scene.files.uri("in.txt"),
        "--output",
        &scene.out(),
        "--reduces",
        "3",
        "--detach",
    ]);
    let job = run(submit.arg("--cluster").arg(cluster.directory()))
        .succeeded()
        .stdout
        .trim()
        .to_owned();
    proxy.wait_until_held();
    cluster.move_first_map(&job, || proxy.release());
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
    for (name, times) in [
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
        ("NUM_KILLED_MAPS", 0),
    ] {
        assert_eq!(scene.counter(name), times, "{name}");
    }
}

/// Returns a running reduce.
fn running_reduce(cluster: &OwnCluster, job: &str) -> String {
    let listed = cluster.json(&["task", "list", job]);
    let is_it = |task: &&Value| {
        task["live"][0]["state"] == "running"
            && task["task"].as_str().is_some_and(|id| id.contains("_r_"))
    };
    let reduce = listed.as_array().and_then(|tasks| tasks.iter().find(is_it));
    let reduce = reduce.unwrap_or_else(|| panic!("a reduce runs: {listed}"));
    reduce["task"]
        .as_str()
        .expect("it was looked at")
        .to_owned()
}

#[test]
fn coordinator_without_hdfs_names_missing_feature() {
    let Some(scene) = Scene::new("lacking") else {
        return;
    };
    nap_with_stores();
    let address = scene.files.address.clone();
    let plain = OwnCluster::start_with(
        &scene.folder,
        1,
        "fifo",
        PASSED,
        &scene.files.environment(&address),
    );
    let mut command = scene.command(&address, &scene.out());
    let says = [
        "the coordinator reported: hdfs://books/lacking/out is in HDFS",
        "build it with the feature hdfs",
    ];
    run(command.arg("--cluster").arg(plain.directory())).failed(2, &says);
    assert_eq!(scene.files.keys(), Vec::<String>::new());
}

#[test]
fn cluster_tasks_restore_inside_hdfs_file() {
    let Some(files) = Files::create("inputs-of-cluster") else {
        return;
    };
    let folder = Folder::new();
    files.put("a.txt", text(100_000));
    folder.write("a.txt", text(100_000));
    let local = ["a.txt", "--output", "expected", "--reduces", "1"];
    let mut command = files.program(env!("CARGO_BIN_EXE_stored-words"), &files.address);
    run(command.current_dir(folder.root()).args(local)).succeeded();
    let proxy = Proxy::on(Kind::READ, &files.address, &[Trick::Hold]);
    let cluster = start(&files, &folder, &proxy.address);
    let mut submit = files.program(env!("CARGO_BIN_EXE_stored-words"), &files.address);
    submit
        .current_dir(folder.root())
        .arg("--cluster")
        .arg(cluster.directory());
    let job = [
        &files.uri("a.txt"),
        "--output",
        "out",
        "--reduces",
        "1",
        "--task-memory",
        "16MiB",
        "--detach",
    ];
    let job = run(submit.args(job)).succeeded().stdout.trim().to_owned();
    proxy.wait_until_held();
    let map = format!("{job}_m_0000");
    run(cluster.nap().args(["task", "suspend", &map])).succeeded();
    run(cluster.nap().args(["task", "resume", &map])).succeeded();
    run(cluster
        .nap()
        .args(["task", "checkpoint", &map, "--no-wait"]))
    .succeeded();
    proxy.release();
    cluster.wait(&[&job]).succeeded();
    assert!(joined(&folder.path("out")) == joined(&folder.path("expected")));
    let out = folder.path("out");
    assert_eq!(counter(&out, "MAP_INPUT_RECORDS"), 100_000);
    assert_eq!(
        (counter(&out, "SUSPENDS"), counter(&out, "CHECKPOINTS")),
        (1, 1)
    );
}
