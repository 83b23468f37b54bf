//! Cluster jobs: tasks upload parts, and the coordinator completes the uploads.

use std::path::PathBuf;

use napreduce_tests::{OwnCluster, program, run, wait_until};
use serde_json::Value;

use super::proxy::{Kind, Proxy, Trick};
use super::scene::{ARGUMENTS, Scene};
use super::server::{Server, on_each_server};

/// The configuration of daemons whose tasks use the store.
fn passed(server: Server) -> String {
    format!(
        "[worker]\npass-environment = [\"{}\"]\n",
        server.dialect().passed
    )
}

/// A `nap` with support for stores; the default one has none.
fn nap_with_stores() -> PathBuf {
    program("nap-with-stores").get_program().into()
}

/// Starts a cluster of two workers that uses `address` as the store.
pub fn start(scene: &Scene, address: &str) -> OwnCluster {
    let server = scene.bucket.server;
    let variables = server.environment(address);
    OwnCluster::start_program(
        &nap_with_stores(),
        &scene.folder,
        2,
        "fifo",
        &passed(server),
        &variables,
    )
}

/// Submits the job.
pub fn submit(scene: &Scene, cluster: &OwnCluster) -> String {
    let mut command = scene.command(&scene.bucket.address, &scene.out());
    let ended = run(command
        .arg("--cluster")
        .arg(cluster.directory())
        .arg("--detach"))
    .succeeded();
    ended.stdout.trim().to_owned()
}

fn cluster_output_equals_local_output(server: Server) {
    let Some(scene) = Scene::new(server, "of-cluster") else {
        return;
    };
    let cluster = start(&scene, &scene.bucket.address);
    let job = submit(&scene, &cluster);
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
    let mut again = scene.command(&scene.bucket.address, &scene.out());
    run(again.arg("--cluster").arg(cluster.directory())).failed(2, &["exists; pass --overwrite"]);
    keeps_no_credentials(cluster.directory(), server.dialect().secret);
}

fn suspended_and_killed_writers_do_not_change_output(server: Server) {
    let Some(scene) = Scene::new(server, "preempted") else {
        return;
    };
    let proxy = Proxy::on(Kind::SendPart, &scene.bucket.address, &[Trick::Hold]);
    let cluster = start(&scene, &proxy.address);
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

fn checkpoint_is_restored_on_another_worker(server: Server) {
    let Some(scene) = Scene::new(server, "saved") else {
        return;
    };
    let lines: String = (0..100_000)
        .map(|line| format!("line {line} with word{}\n", line % 97))
        .collect();
    scene.folder.write("long.txt", &lines);
    scene.bucket.put("in/long.txt", &lines);
    let words = |address: &str, input: &str, output: &str| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), address);
        command.args([
            input,
            "--output",
            output,
            "--reduces",
            "3",
            "--quiet",
            "--task-memory",
            "16MiB",
        ]);
        command
    };
    run(&mut words(&scene.bucket.address, "long.txt", "of-files")).succeeded();
    // A map of 16 MiB reads half a megabyte per request. The third request is held, after records of the
    // first were processed.
    let proxy = Proxy::before(
        &scene.bucket.address,
        &[Trick::Pass, Trick::Pass, Trick::Pass, Trick::Hold],
    );
    let cluster = start(&scene, &proxy.address);
    let mut submit = words(
        &scene.bucket.address,
        &scene.bucket.uri("in/long.txt"),
        &scene.out(),
    );
    submit
        .arg("--detach")
        .arg("--cluster")
        .arg(cluster.directory());
    let job = run(&mut submit).succeeded().stdout.trim().to_owned();
    proxy.wait_until_held();
    cluster.move_first_map(&job, || proxy.release());
    cluster.wait(&[&job]).succeeded();
    scene.assert_written_from("of-files");
    for (name, times) in [
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
        ("NUM_KILLED_MAPS", 0),
    ] {
        assert_eq!(scene.counter(name), times, "{name}");
    }
    assert_eq!(scene.counter("MAP_INPUT_RECORDS"), 100_000);
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

fn coordinator_without_stores_or_credentials_is_reported(server: Server) {
    let Some(scene) = Scene::new(server, "lacking") else {
        return;
    };
    let refused = |cluster: &OwnCluster, says: &[&str]| {
        let mut command = scene.command(&scene.bucket.address, &scene.out());
        run(command.arg("--cluster").arg(cluster.directory())).failed(2, says);
        assert_eq!(scene.bucket.keys(), Vec::<String>::new());
    };
    let dialect = server.dialect();
    let out = scene.out();
    let passed = passed(server);
    let mut variables = server.environment(&scene.bucket.address);
    let plain = OwnCluster::start_with(&scene.folder, 1, "fifo", &passed, &variables);
    let in_store = format!("the coordinator reported: {out} is in {}", dialect.service);
    refused(
        &plain,
        &[
            &in_store,
            &format!("build it with the feature {}", dialect.feature),
        ],
    );
    drop(plain);
    variables.retain(|(name, _)| !dialect.credentials.contains(name));
    // No server listens at this address, as on a host without a role.
    variables.extend(
        dialect
            .elsewhere
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned())),
    );
    std::fs::remove_dir_all(scene.folder.path("cluster")).expect("it has ended");
    let poor = OwnCluster::start_program(
        &nap_with_stores(),
        &scene.folder,
        1,
        "fifo",
        &passed,
        &variables,
    );
    let no_credentials =
        format!("the coordinator reported: cannot read output: no credentials for {out}");
    refused(&poor, &[&no_credentials, dialect.remedy]);
}

fn intermediate_data_is_in_named_directory(server: Server) {
    let Some(scene) = Scene::new(server, "rounds") else {
        return;
    };
    let program = |output: &str| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-rounds"), &scene.bucket.address);
        command.args(ARGUMENTS).args(["--output", output]);
        command
    };
    run(&mut program("local")).succeeded();
    let cluster = start(&scene, &scene.bucket.address);
    let on_cluster = |more: &[&str]| {
        run(program(&scene.out())
            .arg("--cluster")
            .arg(cluster.directory())
            .args(more))
    };
    on_cluster(&[]).failed(
        2,
        &["several jobs", "name the directory with --intermediate DIR"],
    );
    on_cluster(&["--intermediate", "between"])
        .failed(2, &["--intermediate between is not a directory"]);
    assert_eq!(scene.bucket.keys(), Vec::<String>::new());
    let between = scene.folder.path("between");
    std::fs::create_dir(&between).expect("a folder");
    on_cluster(&["--intermediate", "between"]).succeeded();
    scene.assert_written_from("local");
    wait_until("the coordinator has removed it", || {
        std::fs::read_dir(&between)
            .expect("a folder")
            .next()
            .is_none()
    });
}

/// Checks that the credentials are not in the journal, the logs or the history.
fn keeps_no_credentials(directory: &std::path::Path, secret: &str) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            keeps_no_credentials(&path, secret);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a credential", path.display());
        }
    }
}

on_each_server! {
    cluster_output_equals_local_output,
    suspended_and_killed_writers_do_not_change_output,
    checkpoint_is_restored_on_another_worker,
    coordinator_without_stores_or_credentials_is_reported,
    intermediate_data_is_in_named_directory,
}
