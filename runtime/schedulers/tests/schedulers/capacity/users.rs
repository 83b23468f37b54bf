//! Users of one queue: how much each may have, and what is taken from one for another.
//!
//! Owns limits of users. Does not own the order of their jobs.

use crate::capacity::caps::cluster;
use crate::capacity::cluster::{Ask, maps};

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

/// Ada has all twenty slots, then Bob wants some; Bob's job, and how many slots were taken for it at the end.
fn contest(percent: u32) -> (u32, usize) {
    let text = format!(
        "mode = \"preemptive\"\n{}[monitor]\nintra-queue = true\nprimitive = \"suspend\"",
        limited(percent)
    );
    let mut cluster = cluster(&text, 20);
    cluster.submit(maps("only", 99));
    let bob = cluster.submit(Ask { user: "bob", ..maps("only", 99) });
    cluster.pass(100);
    let settled = cluster.asked.len();
    let has = cluster.holds(bob);
    for _ in 0..cluster.running(bob) * 3 {
        cluster.finish(bob, 1);
        cluster.pass(5);
    }
    assert_eq!(cluster.asked.len(), settled, "what was taken for Bob stays with Bob");
    (has, settled)
}

#[test]
fn inside_of_a_queue_a_user_below_the_limit_takes_from_one_beyond() {
    // As published, the container that would bring Ada to the limit is left to her.
    assert_eq!(contest(50), (9, 9));
}

#[test]
fn without_limits_users_take_nothing_from_each_other() {
    assert_eq!(contest(100), (0, 0));
}
