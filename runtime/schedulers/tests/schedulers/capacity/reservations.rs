//! Suspended attempts wait for a slot of their worker, as containers wait that are reserved on a node: the
//! two selectors that know of that make room there.
//!
//! Owns where room is made. Does not own the selectors' arithmetic (`selectors`).

use napreduce_engine::{JobId, TaskKind, WorkerId};

use crate::capacity::caps::cluster;
use crate::capacity::cluster::{Cluster, maps};

fn queues(quiet: u32, monitor: &str) -> String {
    let loud = 100 - quiet;
    format!(
        "mode = \"preemptive\"\n[[queue]]\nname = \"quiet\"\nguaranteed-percent = {quiet}\npriority = 1\n\
         [[queue]]\nname = \"loud\"\nguaranteed-percent = {loud}\n\
         [monitor]\nprimitive = \"suspend\"\n{monitor}"
    )
}

/// Two workers with two slots each. The quiet queue's attempts on one of them are suspended for the loud one,
/// those on the other end: then the loud queue has all slots, and the quiet one only work that is tied to the
/// first worker. That worker, and the two jobs.
fn tied(text: &str) -> (Cluster, WorkerId, JobId, JobId) {
    let mut cluster = cluster(text, 2);
    let quiet = cluster.submit(maps("quiet", 4));
    cluster.pass(1);
    cluster.join();
    let loud = cluster.submit(maps("loud", 40));
    while cluster.suspended(quiet) < 2 {
        cluster.pass(3);
    }
    let job = cluster.engine.view().job(quiet).expect("it runs");
    let places: Vec<WorkerId> = job.suspended_attempts(TaskKind::Map).map(|(worker, _)| worker).collect();
    assert_eq!(places[0], places[1], "the youngest are on the worker that came last");
    cluster.finish(quiet, 2);
    assert_eq!((cluster.holds(quiet), cluster.holds(loud)), (0, 4));
    cluster.asked.clear();
    cluster.reasons.clear();
    (cluster, places[0], quiet, loud)
}

fn first_victim(cluster: &Cluster) -> WorkerId {
    cluster.engine.view().attempt(cluster.asked[0].0).expect("it is suspended").worker()
}

#[test]
fn without_the_selector_the_youngest_victim_frees_a_slot_that_is_of_no_use() {
    let (mut cluster, tied_to, quiet, _) = tied(&queues(50, ""));
    cluster.pass(3);
    assert_ne!(first_victim(&cluster), tied_to);
    assert_eq!(cluster.holds(quiet), 0);
}

#[test]
fn with_it_room_is_made_where_the_suspended_work_is() {
    let (mut cluster, tied_to, quiet, loud) = tied(&queues(50, "reserved-aware = true"));
    cluster.pass(6);
    assert_eq!(first_victim(&cluster), tied_to);
    assert_eq!(cluster.asked.iter().map(|asked| asked.2).collect::<Vec<_>>(), [Some(quiet), Some(quiet)]);
    assert_eq!(
        cluster.reasons[0],
        "queue loud has 4 map slots of 2.0 guaranteed, queue quiet has 0 map slots of 2.0 guaranteed, \
         and an attempt of it waits there for a slot"
    );
    assert_eq!((cluster.holds(quiet), cluster.holds(loud)), (2, 2));
}

/// The loud queue has all four slots, which is within its dead zone.
const WITHIN_THE_DEAD_ZONE: &str = "dead-zone = 0.9\npriority-aware = true\npriority-delay = \"30s\"";

#[test]
fn a_more_important_queue_gets_room_once_its_work_has_waited_long_enough() {
    let (mut cluster, tied_to, quiet, _) = tied(&queues(25, WITHIN_THE_DEAD_ZONE));
    cluster.pass(20);
    assert_eq!((cluster.asked.len(), cluster.holds(quiet)), (0, 0), "not yet");
    cluster.pass(20);
    assert_eq!(first_victim(&cluster), tied_to);
    assert_eq!(cluster.holds(quiet), 1, "what it is guaranteed");
}

#[test]
fn one_that_is_not_more_important_waits_on() {
    let text = queues(25, WITHIN_THE_DEAD_ZONE).replace("priority = 1", "priority = 0");
    let (mut cluster, _, quiet, _) = tied(&text);
    cluster.pass(200);
    assert_eq!((cluster.asked.len(), cluster.holds(quiet)), (0, 0));
}
