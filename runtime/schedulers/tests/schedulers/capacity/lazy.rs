//! Victims that are only marked: they go when somebody needs their slots, and stay when nobody does.
//!
//! Owns when a marked one goes. Does not own who is chosen.

use napreduce_engine::Primitive;

use crate::capacity::caps::{cluster, two_queues};
use crate::capacity::cluster::{Cluster, maps};

fn lazy(rest: &str) -> String {
    format!("{}\n[monitor]\nlazy = true\n{rest}", two_queues("preemptive", ""))
}

#[test]
fn one_whose_wait_is_over_goes_when_it_is_needed_and_nobody_is_asked_before() {
    let mut cluster = cluster(&lazy(""), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(17);
    assert_eq!((cluster.asked.len(), cluster.holds(first)), (0, 10));
    cluster.pass(1);
    assert_eq!((cluster.asked[0].1, cluster.asked[0].2), (Primitive::Kill, Some(second)));
    let reason =
        "queue small has 10 map slots of 3.0 guaranteed, queue large has 0 map slots of 7.0 guaranteed";
    assert_eq!(cluster.reasons, [reason]);
    assert_eq!((cluster.killed, cluster.holds(first), cluster.holds(second)), (1, 9, 1));
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.holds(second), cluster.killed), (3, 7, 7));
}

/// Large wants one slot, and gets it from a task that ends while its victim still has its wait.
fn served_meanwhile(text: &str) -> Cluster {
    let mut cluster = cluster(text, 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 1));
    cluster.pass(10);
    cluster.finish(first, 1);
    assert_eq!((cluster.holds(first), cluster.holds(second)), (9, 1));
    cluster.pass(60);
    cluster
}

#[test]
fn one_that_nobody_needs_any_more_is_never_asked() {
    let cluster = served_meanwhile(&lazy(""));
    assert_eq!((cluster.asked.len(), cluster.killed), (0, 0));
}

#[test]
fn one_that_loses_no_work_goes_at_once() {
    let mut cluster = cluster(&lazy("primitive = \"suspend\""), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(3);
    assert_eq!((cluster.suspended(first), cluster.holds(second)), (1, 1));
    cluster.pass(60);
    assert_eq!((cluster.holds(first), cluster.holds(second), cluster.killed), (3, 7, 0));
}
