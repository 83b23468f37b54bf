//! Guests of another engine that checkpoint to HDFS: the next attempt restores the checkpoint, and no
//! checkpoint is left.

use std::process::Stdio;

use napreduce_tests::{Process, counter, program, run, wait_until};
use rustix::process::Signal;

use super::scene::Scene;

#[test]
fn killed_guest_restores_checkpoint_from_hdfs() {
    let Some(scene) = Scene::new("guests") else {
        return;
    };
    let pauses = |output: &str, more: &[&str]| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-pauses"), &scene.files.address);
        command
            .args(["in.txt", "--reduces", "1", "--quiet", "--output", output])
            .args(more);
        command
    };
    run(&mut pauses("undisturbed", &[])).succeeded();
    let engine = format!("exec:{}", program("guest_runner").get_program().display());
    let place = scene.files.uri("saved");
    let on = [
        "--on",
        &engine,
        "--checkpoints",
        &place,
        "--checkpoint-interval",
        "100ms",
        "--pause",
        "2",
    ];
    let mut job = pauses("out", &on)
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it can be started");
    let is_saved = || {
        let keys = scene.files.keys();
        keys.iter().any(|key| {
            key.contains("/job_0001_m_0000/") && !key.ends_with('/') && key.contains("/checkpoint-")
        })
    };
    wait_until("the map is saved", is_saved);
    let guest = || Process::guest_in(scene.folder.root(), "map");
    let killed = guest().expect("it is at work");
    assert!(killed.signal(Signal::KILL));
    let status = job.wait().expect("its end");
    assert!(status.success(), "{status}");
    let out = scene.folder.path("out");
    let undisturbed = scene.folder.path("undisturbed");
    assert_eq!(
        napreduce_tests::parts(&out),
        napreduce_tests::parts(&undisturbed)
    );
    assert!(counter(&out, "CHECKPOINTS") > 0);
    assert_eq!(
        scene.files.keys(),
        ["saved/"],
        "all that was saved is removed"
    );
}
