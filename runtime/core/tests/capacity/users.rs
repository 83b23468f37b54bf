//! Users of one queue: how much each may have.
//!
//! Owns limits of users in the assignment. Does not own what is taken from one for another.

use crate::caps::cluster;
use crate::cluster::{Ask, maps};

fn limited(percent: u32) -> String {
    format!("[[queue]]\nname = \"only\"\nguaranteed-percent = 100\nuser-limit-percent = {percent}\n")
}

#[test]
fn users_share_a_queue_down_to_their_limit() {
    let mut cluster = cluster(&limited(25), 12);
    let block = cluster.submit(Ask { user: "root", ..maps("only", 12) });
    let users = ["ada", "bob", "eve"];
    let jobs = users.map(|user| cluster.submit(Ask { user, ..maps("only", 20) }));
    cluster.finish(block, 12);
    assert_eq!(jobs.map(|job| cluster.holds(job)), [4, 4, 4], "a third each, more than a quarter");
}

#[test]
fn a_user_alone_may_have_all() {
    let mut cluster = cluster(&limited(25), 12);
    let job = cluster.submit(maps("only", 20));
    assert_eq!(cluster.holds(job), 12);
}

#[test]
fn without_a_limit_the_first_user_has_all() {
    let mut cluster = cluster(&limited(100), 12);
    let block = cluster.submit(Ask { user: "root", ..maps("only", 12) });
    let jobs = ["ada", "bob"].map(|user| cluster.submit(Ask { user, ..maps("only", 20) }));
    cluster.finish(block, 12);
    assert_eq!(jobs.map(|job| cluster.holds(job)), [12, 0]);
}
