//! Coordinators that are killed at every step of a commit to a store, while a request is held.

use super::cluster::{start, submit};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::{Server, on_each_server};

/// Kills the coordinator while a request is held; the output must stay the same.
fn check(server: Server, name: &'static str, kind: Kind, before: usize) {
    let Some(scene) = Scene::new(server, name) else {
        return;
    };
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

fn crash_after_success_marker_keeps_output(server: Server) {
    check(server, "complete", Kind::Remove("/claim.json"), 0);
}

on_each_server! {
    crash_before_any_commit_grant_keeps_output,
    crash_after_grants_keeps_output,
    crash_before_completion_keeps_output,
    crash_during_completion_keeps_output,
    crash_before_success_marker_keeps_output,
    crash_after_success_marker_keeps_output,
}
