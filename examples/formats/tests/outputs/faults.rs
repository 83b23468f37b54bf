//! Busy servers and lost answers while a job writes: the output appears exactly once.

use napreduce_tests::run;

use super::proxy::{Kind, Proxy, Trick};
use super::scene::{ARGUMENTS, Scene};
use super::server::{Server, on_each_server};

fn check(server: Server, name: &'static str, kind: Kind, tricks: &[Trick]) -> Option<Scene> {
    let scene = Scene::new(server, name)?;
    let proxy = Proxy::on(kind, &scene.bucket.address, tricks);
    scene.words(&proxy.address, &scene.out(), &[]).succeeded();
    proxy.check_fired();
    scene.assert_written();
    Some(scene)
}

fn rejected_parts_are_sent_again(server: Server) {
    let tricks = [
        Trick::Status(503),
        Trick::Lose,
        Trick::Status(500),
        Trick::Status(429),
    ];
    let Some(scene) = check(server, "sent-again", Kind::SendPart, &tricks) else {
        return;
    };
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), tricks.len() as u64);
}

fn completion_with_lost_answer_is_verified(server: Server) {
    check(
        server,
        "unheard",
        Kind::Complete,
        &[Trick::Lose, Trick::Status(503), Trick::Lose],
    );
}

fn claim_with_lost_answer_is_recognized(server: Server) {
    check(
        server,
        "unheard-claim",
        Kind::Put("/claim.json"),
        &[Trick::Lose, Trick::Lose],
    );
}

fn manifest_with_lost_answer_is_rewritten(server: Server) {
    check(
        server,
        "unheard-success",
        Kind::Put("/_success"),
        &[Trick::Status(503), Trick::Lose],
    );
}

fn every_request_is_retried(server: Server) {
    let Some(scene) = Scene::new(server, "every-kind") else {
        return;
    };
    let folder = &scene.folder;
    scene.bucket.put(
        "in/a.txt",
        std::fs::read(folder.path("in.txt")).expect("a file"),
    );
    // Claims, lists, reads, parts, intents, commits and removals: every other request fails.
    let tricks = [
        Trick::Status(503),
        Trick::Lose,
        Trick::Cut(0),
        Trick::Status(429),
        Trick::Status(500),
    ];
    let tricks: Vec<Trick> = (0..40)
        .flat_map(|at| [Trick::Pass, tricks[at % tricks.len()]])
        .collect();
    let proxy = Proxy::on(Kind::Any, &scene.bucket.address, &tricks[..40]);
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &proxy.address);
    command
        .arg(scene.bucket.uri("in/"))
        .args(&ARGUMENTS[1..])
        .args(["--output", &scene.out()]);
    run(&mut command).succeeded();
    proxy.check_fired();
    scene.assert_written();
}

fn silent_server_is_retried(server: Server) {
    let Some(scene) = check(server, "silent", Kind::SendPart, &[Trick::Ignore]) else {
        return;
    };
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), 1);
}

on_each_server! {
    rejected_parts_are_sent_again,
    every_request_is_retried,
    silent_server_is_retried,
    completion_with_lost_answer_is_verified,
    claim_with_lost_answer_is_recognized,
    manifest_with_lost_answer_is_rewritten,
}
