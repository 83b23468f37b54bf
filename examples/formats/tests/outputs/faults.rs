//! Servers that are busy, and answers that are lost, while a job writes.
//!
//! Owns that the output is the same, once. Does not own how long it is tried (`runtime/storage`).

use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

fn check(name: &'static str, kind: Kind, tricks: &[Trick]) -> Option<Scene> {
    let scene = Scene::new(name)?;
    let proxy = Proxy::on(kind, &scene.bucket.address, tricks);
    scene.words(&proxy.address, &scene.out(), &[]).succeeded();
    proxy.check_fired();
    scene.assert_written();
    Some(scene)
}

#[test]
fn parts_that_are_not_taken_are_sent_again() {
    let tricks = [Trick::Status(503), Trick::Lose, Trick::Status(500), Trick::Status(429)];
    let Some(scene) = check("sent-again", Kind::SendPart, &tricks) else { return };
    assert_eq!(scene.counter("STORAGE_WRITE_RETRIES"), tricks.len() as u64);
}

#[test]
fn an_upload_that_was_completed_unheard_is_looked_for() {
    check("unheard", Kind::Complete, &[Trick::Lose, Trick::Status(503), Trick::Lose]);
}

#[test]
fn a_claim_that_was_written_unheard_is_known_again() {
    check("unheard-claim", Kind::Put("/claim.json"), &[Trick::Lose, Trick::Lose]);
}

#[test]
fn a_manifest_that_was_written_unheard_is_written_again() {
    check("unheard-success", Kind::Put("/_success"), &[Trick::Status(503), Trick::Lose]);
}
