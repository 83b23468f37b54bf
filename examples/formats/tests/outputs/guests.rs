//! Guests of another engine that checkpoint to a store: the next attempt restores the checkpoint on another
//! host.

use std::process::{Child, Command, Stdio};

use napreduce_tests::{Process, counter, program, run, wait_until};
use rustix::process::Signal;

use super::scene::Scene;
use super::server::{Server, on_each_server};

/// Returns the last objects of the task's checkpoints; the names of earlier objects end in six digits.
fn saved(scene: &Scene, task: &str) -> Vec<String> {
    let is_last = |key: &String| {
        key.contains(&format!("/job_0001_{task}/"))
            && !key.rsplit('-').next().is_some_and(|number| {
                number.len() == 6 && number.bytes().all(|digit| digit.is_ascii_digit())
            })
    };
    scene.bucket.keys().into_iter().filter(is_last).collect()
}

fn killed_guest_restores_checkpoint_from_store(server: Server) {
    let Some(scene) = Scene::new(server, "guests") else {
        return;
    };
    let pauses = |output: &str, more: &[&str]| {
        let mut command = scene.program(env!("CARGO_BIN_EXE_stored-pauses"), &scene.bucket.address);
        command
            .args(["in.txt", "--reduces", "1", "--quiet", "--output", output])
            .args(more);
        command
    };
    run(&mut pauses("undisturbed", &[])).succeeded();
    let engine = format!("exec:{}", program("guest_runner").get_program().display());
    let place = scene.bucket.uri("saved");
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
    let mut job: Child = pauses("out", &on)
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it can be started");
    for (task, kind) in [("m_0000", "map"), ("r_0000", "reduce")] {
        wait_until(&format!("{task} is saved"), || {
            !saved(&scene, task).is_empty()
        });
        let guest = || Process::guest_in(scene.folder.root(), kind);
        let killed = guest().expect("it is at work");
        assert!(killed.signal(Signal::KILL));
        wait_until("another goes on", || {
            guest().is_some_and(|process| process != killed)
        });
    }
    let status = job.wait().expect("its end");
    assert!(status.success(), "{status}");
    let out = scene.folder.path("out");
    let undisturbed = scene.folder.path("undisturbed");
    assert_eq!(
        napreduce_tests::parts(&out),
        napreduce_tests::parts(&undisturbed)
    );
    assert_eq!(counter(&out, "CHECKPOINT_RESTORES"), 2);
    for name in ["MAP_INPUT_RECORDS", "REDUCE_INPUT_GROUPS"] {
        assert_eq!(counter(&out, name), counter(&undisturbed, name), "{name}");
    }
    assert_eq!(
        scene.bucket.keys(),
        Vec::<String>::new(),
        "all that was saved is removed"
    );
}

fn read_only_store_is_reported_before_job(server: Server) {
    let Some(scene) = Scene::new(server, "guests-refused") else {
        return;
    };
    let place = format!("{}/saved", server.root_of("no-such-bucket"));
    let engine = format!("exec:{}", program("guest_runner").get_program().display());
    let mut command: Command = scene.command(&scene.bucket.address, "out");
    command.args(["--on", &engine, "--checkpoints", &place]);
    run(&mut command).failed(2, &["cannot use --checkpoints: ", "no-such-bucket"]);
    assert!(!scene.folder.path("out").exists());
}

on_each_server! {
    killed_guest_restores_checkpoint_from_store,
    read_only_store_is_reported_before_job,
}
