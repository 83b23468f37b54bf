//! Lazy preemption: marked victims are preempted when their slots are needed.

use napreduce_engine::Primitive;

use crate::capacity::caps::{cluster, two_queues};
use crate::capacity::cluster::{Cluster, maps};

fn lazy(rest: &str) -> String {
    format!(
        "{}\n[monitor]\nlazy = true\n{rest}",
        two_queues("preemptive", "")
    )
}

#[test]
fn marked_victim_is_preempted_only_on_demand() {
    let mut cluster = cluster(&lazy(""), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(17);
    assert_eq!((cluster.asked.len(), cluster.holds(first)), (0, 10));
    cluster.pass(1);
    assert_eq!(
        (cluster.asked[0].1, cluster.asked[0].2),
        (Primitive::Kill, Some(second))
    );
    let reason = "queue small has 10 map slots of 3.0 guaranteed, queue large has 0 map slots of 7.0 guaranteed";
    assert_eq!(cluster.reasons, [reason]);
    assert_eq!(
        (cluster.killed, cluster.holds(first), cluster.holds(second)),
        (1, 9, 1)
    );
    cluster.pass(300);
    assert_eq!(
        (cluster.holds(first), cluster.holds(second), cluster.killed),
        (3, 7, 7)
    );
}

/// The large queue wants one slot, and gets it from a task that ends during the victim's grace period.
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
fn unneeded_victim_is_never_preempted() {
    let cluster = served_meanwhile(&lazy(""));
    assert_eq!((cluster.asked.len(), cluster.killed), (0, 0));
}

#[test]
fn work_preserving_victim_is_marked_immediately() {
    let mut cluster = cluster(&lazy("primitive = \"suspend\""), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(3);
    assert_eq!((cluster.suspended(first), cluster.holds(second)), (1, 1));
    cluster.pass(60);
    assert_eq!(
        (cluster.holds(first), cluster.holds(second), cluster.killed),
        (3, 7, 0)
    );
}
