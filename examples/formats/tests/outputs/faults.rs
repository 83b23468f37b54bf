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

fn parts_that_are_not_taken_are_sent_again(server: Server) {
    let tricks = [Trick::Status(503), Trick::Lose, Trick::Status(500), Trick::Status(429)];
    let Some(scene) = check(server, "sent-again", Kind::SendPart, &tricks) else { return };
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), tricks.len() as u64);
}

fn an_upload_that_was_completed_unheard_is_looked_for(server: Server) {
    check(server, "unheard", Kind::Complete, &[Trick::Lose, Trick::Status(503), Trick::Lose]);
}

fn claim_with_lost_answer_is_recognized(server: Server) {
    check(server, "unheard-claim", Kind::Put("/claim.json"), &[Trick::Lose, Trick::Lose]);
}

fn manifest_with_lost_answer_is_rewritten(server: Server) {
    check(server, "unheard-success", Kind::Put("/_success"), &[Trick::Status(503), Trick::Lose]);
}

fn requests_of_every_kind_are_made_again(server: Server) {
    let Some(scene) = Scene::new(server, "every-kind") else { return };
    let folder = &scene.folder;
    scene.bucket.put("in/a.txt", std::fs::read(folder.path("in.txt")).expect("a file"));
    // Claims, lists, reads, parts, intents, commits, removals: every other one goes wrong.
    let tricks = [Trick::Status(503), Trick::Lose, Trick::Cut(0), Trick::Status(429), Trick::Status(500)];
    let tricks: Vec<Trick> = (0..40).flat_map(|at| [Trick::Pass, tricks[at % tricks.len()]]).collect();
    let proxy = Proxy::on(Kind::Any, &scene.bucket.address, &tricks[..40]);
    let mut command = scene.program(env!("CARGO_BIN_EXE_stored-words"), &proxy.address);
    command.arg(scene.bucket.uri("in/")).args(&ARGUMENTS[1..]).args(["--output", &scene.out()]);
    run(&mut command).succeeded();
    proxy.check_fired();
    scene.assert_written();
}

fn a_server_that_does_not_answer_is_asked_again(server: Server) {
    let Some(scene) = check(server, "silent", Kind::SendPart, &[Trick::Ignore]) else { return };
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), 1);
}

on_each_server! {
    parts_that_are_not_taken_are_sent_again,
    requests_of_every_kind_are_made_again,
    a_server_that_does_not_answer_is_asked_again,
    an_upload_that_was_completed_unheard_is_looked_for,
    a_claim_that_was_written_unheard_is_known_again,
    a_manifest_that_was_written_unheard_is_written_again,
}
