//! Coordinators that are killed at every step of a commit to HDFS.
//!
//! Owns the steps, at which a request is held while its sender dies. Does not own each single call
//! (`runtime/local`).

use super::cluster::{start, submit};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

/// Kills the coordinator while a request is held; the output is the same then.
fn check(name: &'static str, kind: Kind, before: usize) {
    let Some(scene) = Scene::new(name) else { return };
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
fn it_dies_while_parts_are_sent_of_which_none_was_granted() {
    check("before-grant", Kind::SEND, 0);
}

#[test]
fn it_dies_when_parts_were_granted_and_nothing_was_begun() {
    check("after-grant", Kind::INTENT, 0);
}

#[test]
fn it_dies_before_anything_was_completed() {
    check("none-completed", Kind::COMPLETE, 0);
}

#[test]
fn it_dies_in_the_middle_of_completing() {
    check("some-completed", Kind::COMPLETE, 2);
}

#[test]
fn it_dies_when_all_was_completed_and_nothing_says_so() {
    check("all-completed", Kind::SUCCESS, 0);
}
