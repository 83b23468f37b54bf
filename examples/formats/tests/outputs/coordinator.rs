//! Coordinators that are killed at every step of a commit to a store, while a request is held.

use super::cluster::{start, submit};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::{Server, on_each_server};

/// Kills the coordinator while a request is held; the output is the same then.
fn check(server: Server, name: &'static str, kind: Kind, before: usize) {
    let Some(scene) = Scene::new(server, name) else { return };
    let tricks = [&vec![Trick::Pass; before][..], &[Trick::Hold]].concat();
    let proxy = Proxy::on(kind, &scene.bucket.address, &tricks);
    let cluster = start(&scene, &proxy.address);
    let job = submit(&scene, &cluster);
    proxy.wait_until_held();
    cluster.kill_coordinator();
    proxy.drop_held();
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
}

fn crash_before_any_commit_grant_keeps_output(server: Server) {
    check(server, "before-grant", Kind::SendPart, 0);
}

fn crash_after_grants_keeps_output(server: Server) {
    check(server, "after-grant", Kind::Put("/intent.json"), 0);
}

fn crash_before_completion_keeps_output(server: Server) {
    check(server, "none-completed", Kind::Complete, 0);
}

fn crash_during_completion_keeps_output(server: Server) {
    check(server, "some-completed", Kind::Complete, 2);
}

fn crash_before_success_marker_keeps_output(server: Server) {
    check(server, "all-completed", Kind::Put("/_success"), 0);
}

fn it_dies_when_the_output_is_complete_and_claimed(server: Server) {
    check(server, "complete", Kind::Remove("/claim.json"), 0);
}

on_each_server! {
    it_dies_while_parts_are_sent_of_which_none_was_granted,
    it_dies_when_parts_were_granted_and_nothing_was_begun,
    it_dies_before_anything_was_completed,
    it_dies_in_the_middle_of_completing,
    it_dies_when_all_was_completed_and_nothing_says_so,
    it_dies_when_the_output_is_complete_and_claimed,
}
