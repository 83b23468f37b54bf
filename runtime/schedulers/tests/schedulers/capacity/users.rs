//! User limits within a queue, and intra-queue preemption between users.

use crate::capacity::caps::cluster;
use crate::capacity::cluster::{Ask, maps};

fn limited(percent: u32) -> String {
    format!(
        "[[queue]]\nname = \"only\"\nguaranteed-percent = 100\nuser-limit-percent = {percent}\n"
    )
}

#[test]
fn users_share_queue_down_to_limit() {
    let mut cluster = cluster(&limited(25), 12);
    let block = cluster.submit(Ask {
        user: "root",
        ..maps("only", 12)
    });
    let users = ["ada", "bob", "eve"];
    let jobs = users.map(|user| {
        cluster.submit(Ask {
            user,
            ..maps("only", 20)
        })
    });
    cluster.finish(block, 12);
    assert_eq!(
        jobs.map(|job| cluster.holds(job)),
        [4, 4, 4],
        "a third each, above the limit of a quarter"
    );
}

#[test]
fn single_user_may_fill_queue() {
    let mut cluster = cluster(&limited(25), 12);
    let job = cluster.submit(maps("only", 20));
    assert_eq!(cluster.holds(job), 12);
}

#[test]
fn without_limit_first_user_fills_queue() {
    let mut cluster = cluster(&limited(100), 12);
    let block = cluster.submit(Ask {
        user: "root",
        ..maps("only", 12)
    });
    let jobs = ["ada", "bob"].map(|user| {
        cluster.submit(Ask {
            user,
            ..maps("only", 20)
        })
    });
    cluster.finish(block, 12);
    assert_eq!(jobs.map(|job| cluster.holds(job)), [12, 0]);
}

/// Ada holds all twenty slots, then Bob wants some. Returns Bob's slots and the number of preemptions.
fn contest(percent: u32) -> (u32, usize) {
    let text = format!(
        "mode = \"preemptive\"\n{}[monitor]\nintra-queue = true\nprimitive = \"suspend\"",
        limited(percent)
    );
    let mut cluster = cluster(&text, 20);
    cluster.submit(maps("only", 99));
    let bob = cluster.submit(Ask {
        user: "bob",
        ..maps("only", 99)
    });
    cluster.pass(100);
    let settled = cluster.asked.len();
    let has = cluster.holds(bob);
    for _ in 0..cluster.running(bob) * 3 {
        cluster.finish(bob, 1);
        cluster.pass(5);
    }
    assert_eq!(
        cluster.asked.len(),
        settled,
        "Bob keeps the preempted slots"
    );
    (has, settled)
}

#[test]
fn user_below_limit_preempts_user_above() {
    // Published behaviour: Ada keeps the container that would bring her to the limit.
    assert_eq!(contest(50), (9, 9));
}

#[test]
fn without_limits_users_do_not_preempt() {
    assert_eq!(contest(100), (0, 0));
}
