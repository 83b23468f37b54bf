//! Jobs of a cluster: its tasks send uploads, and its coordinator completes them.
//!
//! Owns what operators and kills of attempts do meanwhile, and what is refused. Does not own coordinators that die
//! (`coordinator`).

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use napreduce_tests::{OwnCluster, Process, program, run, wait_until};
use serde_json::Value;

use super::moto::{SECRET, environment};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

/// What daemons are told, so that tasks find S3.
const PASSED: &str = "[worker]\npass-environment = [\"AWS_*\"]\n";

/// `nap` with the feature `s3`, beside the one without.
fn nap_with_stores() -> &'static PathBuf {
    static NAP: OnceLock<PathBuf> = OnceLock::new();
    NAP.get_or_init(|| {
        let plain = PathBuf::from(program("nap").get_program());
        let nap = plain.with_file_name("nap-with-stores");
        if std::env::var_os("NAPREDUCE_TEST_PROGRAMS").is_some_and(|value| value == "built") && nap.exists() {
            return nap;
        }
        let build = |features: &[&str]| {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "-p", "napreduce-cli", "--quiet"]).args(features);
            build.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
            let profile = plain.parent().expect("programs lie in the folder of a profile");
            build.arg("--target-dir").arg(profile.parent().expect("a profile lies in a target folder"));
            if profile.ends_with("release") {
                build.arg("--release");
            }
            run(&mut build).succeeded();
        };
        build(&["--features", "s3"]);
        std::fs::copy(&plain, &nap).expect("a copy");
        // All others find the one without.
        build(&[]);
        nap
    })
}

/// A cluster of two workers to which `address` is S3.
pub fn start(scene: &Scene, address: &str) -> OwnCluster {
    OwnCluster::start_program(nap_with_stores(), &scene.folder, 2, "fifo", PASSED, &environment(address))
}

/// Hands the job in.
pub fn submit(scene: &Scene, cluster: &OwnCluster) -> String {
    let mut command = scene.command(&scene.bucket.address, &scene.out());
    let ended = run(command.arg("--cluster").arg(cluster.directory()).arg("--detach")).succeeded();
    ended.stdout.trim().to_owned()
}

#[test]
fn words_that_a_cluster_writes_are_those_of_a_directory() {
    let Some(scene) = Scene::new("of-cluster") else { return };
    let cluster = start(&scene, &scene.bucket.address);
    let job = submit(&scene, &cluster);
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
    let mut again = scene.command(&scene.bucket.address, &scene.out());
    run(again.arg("--cluster").arg(cluster.directory())).failed(2, &["exists; pass --overwrite"]);
    keeps_no_credentials(cluster.directory());
}

#[test]
fn attempts_that_are_suspended_and_killed_while_they_write_do_not_show() {
    let Some(scene) = Scene::new("preempted") else { return };
    let proxy = Proxy::on(Kind::SendPart, &scene.bucket.address, &[Trick::Hold]);
    let cluster = start(&scene, &proxy.address);
    let job = submit(&scene, &cluster);
    proxy.wait_until_held();
    let suspended = running_reduce(&cluster, &job);
    run(cluster.nap().args(["task", "suspend", &suspended])).succeeded();
    run(cluster.nap().args(["task", "resume", &suspended])).succeeded();
    let refused = run(cluster.nap().args(["task", "checkpoint", &suspended]));
    assert!(!refused.status.success());
    assert!(
        refused.stderr.contains("its output is in a store, where what is saved of it has no place"),
        "{}",
        refused.stderr
    );
    for task in cluster.tasks() {
        // One may have ended by itself.
        task.signal(rustix::process::Signal::KILL);
    }
    proxy.drop_held();
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
}

/// A reduce that runs at this moment.
fn running_reduce(cluster: &OwnCluster, job: &str) -> String {
    let listed = cluster.json(&["task", "list", job]);
    let is_it = |task: &&Value| {
        task["live"][0]["state"] == "running" && task["task"].as_str().is_some_and(|id| id.contains("_r_"))
    };
    let reduce = listed.as_array().and_then(|tasks| tasks.iter().find(is_it));
    let reduce = reduce.unwrap_or_else(|| panic!("a reduce runs: {listed}"));
    reduce["task"].as_str().expect("it was looked at").to_owned()
}

#[test]
fn a_coordinator_without_stores_or_credentials_says_what_it_lacks() {
    let Some(scene) = Scene::new("lacking") else { return };
    let with_stores = nap_with_stores();
    let refused = |cluster: &OwnCluster, says: &[&str]| {
        let mut command = scene.command(&scene.bucket.address, &scene.out());
        run(command.arg("--cluster").arg(cluster.directory())).failed(2, says);
        assert_eq!(scene.bucket.keys(), Vec::<String>::new());
    };
    let plain = OwnCluster::start_with(&scene.folder, 1, "fifo", PASSED, &environment(&scene.bucket.address));
    refused(&plain, &["the coordinator says: s3://lacking/out is in S3", "build it with the feature s3"]);
    drop(plain);
    let mut poor = environment(&scene.bucket.address);
    poor.retain(|(name, _)| !name.contains("KEY"));
    // Nobody listens there, as nobody does where no role is given.
    poor.push(("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1".to_owned()));
    std::fs::remove_dir_all(scene.folder.path("cluster")).expect("it has ended");
    let poor = OwnCluster::start_program(with_stores, &scene.folder, 1, "fifo", PASSED, &poor);
    refused(
        &poor,
        &[
            "the coordinator says: cannot read output: no credentials for s3://lacking/out",
            "set AWS_ACCESS_KEY_ID",
        ],
    );
}

/// Not in the journal, nor in logs, nor in the history.
fn keeps_no_credentials(directory: &std::path::Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            keeps_no_credentials(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!found, "{} holds a credential", path.display());
        }
    }
}

/// Kills the coordinator; `nap up` starts the next one.
pub fn kill_coordinator(cluster: &OwnCluster) {
    let coordinator: Process = cluster.coordinator();
    assert!(coordinator.signal(rustix::process::Signal::KILL));
    wait_until("the end of the coordinator", || coordinator.is_gone());
}
