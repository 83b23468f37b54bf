//! Maximum capacities with hard and soft caps, and the order of queues.

use napreduce_engine::TaskKind;
use napreduce_schedulers::capacity::Capacity;

use crate::capacity::cluster::{Ask, Cluster, configuration, maps};

pub fn two_queues(mode: &str, more: &str) -> String {
    format!(
        "mode = \"{mode}\"
         {more}
         [[queue]]
         name = \"small\"
         guaranteed-percent = 30
         [[queue]]
         name = \"large\"
         guaranteed-percent = 70"
    )
}

pub fn cluster(text: &str, slots: u32) -> Cluster {
    let policy = Capacity::new(&configuration(text)).unwrap_or_else(|error| panic!("{error}"));
    Cluster::new(Box::new(policy), slots, slots)
}

#[test]
fn hard_cap_leaves_slots_free() {
    let mut cluster = cluster(&two_queues("hard-cap", ""), 10);
    let job = cluster.submit(maps("small", 20));
    cluster.pass(100);
    assert_eq!(cluster.holds(job), 3);
    assert_eq!(
        cluster.declined(),
        "every queue or user with demand is at its maximum"
    );
    let other = cluster.submit(maps("large", 20));
    assert_eq!((cluster.holds(job), cluster.holds(other)), (3, 7));
}

#[test]
fn soft_cap_grows_into_idle_capacity_and_shrinks() {
    let mut cluster = cluster(&two_queues("soft-cap", ""), 10);
    let first = cluster.submit(maps("small", 20));
    assert_eq!(cluster.holds(first), 10);
    let second = cluster.submit(maps("large", 20));
    cluster.pass(1000);
    assert_eq!(
        (cluster.holds(second), cluster.asked.len()),
        (0, 0),
        "no preemption"
    );
    for ended in 1..=7 {
        cluster.finish(first, 1);
        assert_eq!(cluster.holds(second), ended);
    }
    cluster.finish(first, 1);
    assert_eq!(
        (cluster.holds(first), cluster.holds(second)),
        (3, 7),
        "the guarantee is kept"
    );
}

#[test]
fn maximum_applies_to_descendants() {
    let text = "
        [[queue]]
        name = \"company\"
        guaranteed-percent = 50
        max-percent = 50
        [[queue]]
        name = \"day\"
        parent = \"company\"
        guaranteed-percent = 50
        [[queue]]
        name = \"night\"
        parent = \"company\"
        guaranteed-percent = 50
        max-percent = 60";
    let mut cluster = cluster(text, 10);
    let night = cluster.submit(maps("night", 20));
    assert_eq!(cluster.holds(night), 3, "60 % of at most 5");
    let day = cluster.submit(maps("day", 20));
    assert_eq!(cluster.holds(day), 2);
}

#[test]
fn share_below_one_slot_rounds_up() {
    let mut cluster = cluster(&two_queues("hard-cap", ""), 2);
    let job = cluster.submit(maps("small", 3));
    assert_eq!(cluster.holds(job), 1);
}

#[test]
fn shares_follow_cluster_size() {
    let mut cluster = cluster(&two_queues("hard-cap", ""), 10);
    let job = cluster.submit(maps("small", 20));
    cluster.join();
    cluster.pass(1);
    assert_eq!(cluster.holds(job), 6);
}

#[test]
fn map_and_reduce_slots_are_counted_separately() {
    let mut cluster = cluster(&two_queues("hard-cap", ""), 10);
    let ask = Ask {
        reduces: 20,
        ..maps("small", 20)
    };
    let job = cluster.submit(ask);
    let held = TaskKind::ALL.map(|kind| cluster.holds_of(kind, job));
    assert_eq!(held, [3, 3]);
}

#[test]
fn unknown_and_parent_queues_map_to_default() {
    let text = two_queues("hard-cap", "default-queue = \"small\"");
    let mut cluster = cluster(&text, 10);
    let known = cluster.submit(maps("small", 2));
    let unknown = cluster.submit(maps("nowhere", 20));
    let parent = cluster.submit(maps("root", 20));
    assert_eq!(
        [known, unknown, parent].map(|job| cluster.holds(job)),
        [2, 1, 0]
    );
}

#[test]
fn queue_order_is_fifo_or_fair() {
    let one = |order: &str| {
        format!("[[queue]]\nname = \"only\"\nguaranteed-percent = 100\napp-order = \"{order}\"")
    };
    for (order, expected) in [("fifo", [4, 0, 0]), ("fair", [2, 1, 1])] {
        let mut cluster = cluster(&one(order), 4);
        let block = cluster.submit(maps("only", 4));
        let jobs = [0, 0, -1].map(|priority| {
            cluster.submit(Ask {
                priority,
                ..maps("only", 9)
            })
        });
        cluster.finish(block, 4);
        assert_eq!(jobs.map(|job| cluster.holds(job)), expected, "{order}");
    }
}
