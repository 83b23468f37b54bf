//! Coordinators that are killed at every step of a commit to HDFS, while a request is held.

use super::cluster::{start, submit};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

/// Kills the coordinator while a request is held; the output must stay the same.
fn check(name: &'static str, kind: Kind, before: usize) {
    let Some(scene) = Scene::new(name) else {
        return;
    };
    let tricks = [&vec![Trick::Pass; before][..], &[Trick::Hold]].concat();
    let proxy = Proxy::on(kind, &scene.files.address, &tricks);
    let cluster = start(&scene.files, &scene.folder, &proxy.address);
    let job = submit(&scene, &cluster);
    proxy.wait_until_held();
    cluster.kill_coordinator();
    proxy.drop_held();
    cluster.wait(&[&job]).succeeded();
    scene.assert_written();
}

#[test]
fn crash_before_any_commit_grant_keeps_output() {
    check("before-grant", Kind::SEND, 0);
}

#[test]
fn crash_after_grants_keeps_output() {
    check("after-grant", Kind::INTENT, 0);
}

#[test]
fn crash_before_completion_keeps_output() {
    check("none-completed", Kind::COMPLETE, 0);
}

#[test]
fn crash_during_completion_keeps_output() {
    check("some-completed", Kind::COMPLETE, 2);
}

#[test]
fn crash_before_success_marker_keeps_output() {
    check("all-completed", Kind::SUCCESS, 0);
}
