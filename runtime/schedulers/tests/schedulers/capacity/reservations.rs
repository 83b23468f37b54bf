//! Reservations: suspended attempts wait for a slot of their worker, and two selectors make room there.
//! `selectors` tests their arithmetic.

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

/// Two workers with two slots each. The attempts of the quiet queue on one worker are suspended for the loud
/// one; those on the other worker end. The loud queue then holds all slots, and the quiet one has only
/// suspended work on the first worker. Returns that worker and the two jobs.
fn tied(text: &str) -> (Cluster, WorkerId, JobId, JobId) {
    let mut cluster = cluster(text, 2);
    let quiet = cluster.submit(maps("quiet", 4));
    cluster.pass(1);
    cluster.join();
    let loud = cluster.submit(maps("loud", 40));
    while cluster.suspended(quiet) < 2 {
        cluster.pass(3);
    }
    let job = cluster.engine.view().job(quiet).expect("the job is active");
    let places: Vec<WorkerId> = job
        .suspended_attempts(TaskKind::Map)
        .map(|(worker, _)| worker)
        .collect();
    assert_eq!(places[0], places[1], "the youngest are on the last worker");
    cluster.finish(quiet, 2);
    assert_eq!((cluster.holds(quiet), cluster.holds(loud)), (0, 4));
    cluster.asked.clear();
    cluster.reasons.clear();
    (cluster, places[0], quiet, loud)
}

fn first_victim(cluster: &Cluster) -> WorkerId {
    cluster
        .engine
        .view()
        .attempt(cluster.asked[0].0)
        .expect("the attempt is active")
        .worker()
}

#[test]
fn without_selector_victims_are_where_suspended_work_waits() {
    let (mut cluster, tied_to, quiet, _) = tied(&queues(50, ""));
    cluster.pass(3);
    assert_eq!(first_victim(&cluster), tied_to);
    cluster.pass(300);
    assert_eq!(
        (cluster.asked.len(), cluster.holds(quiet)),
        (2, 2),
        "no victim in vain"
    );
}

#[test]
fn reserved_selector_makes_room_at_suspended_work() {
    let (mut cluster, tied_to, quiet, loud) = tied(&queues(50, "reserved-aware = true"));
    cluster.pass(6);
    assert_eq!(first_victim(&cluster), tied_to);
    assert_eq!(
        cluster
            .asked
            .iter()
            .map(|asked| asked.2)
            .collect::<Vec<_>>(),
        [Some(quiet), Some(quiet)]
    );
    assert_eq!(
        cluster.reasons[0],
        "queue loud has 4 map slots of 2.0 guaranteed, queue quiet has 0 map slots of 2.0 guaranteed, \
         and a suspended attempt of it waits for the slot"
    );
    assert_eq!((cluster.holds(quiet), cluster.holds(loud)), (2, 2));
}

/// The loud queue holds all four slots, within its dead zone, and the quiet one lacks its only slot.
const WITHIN_THE_DEAD_ZONE: &str = "dead-zone = 1\npriority-aware = true\npriority-delay = \"30s\"";

#[test]
fn priority_selector_makes_room_after_delay() {
    let (mut cluster, tied_to, quiet, _) = tied(&queues(25, WITHIN_THE_DEAD_ZONE));
    cluster.pass(20);
    assert_eq!(
        (cluster.asked.len(), cluster.holds(quiet)),
        (0, 0),
        "not yet"
    );
    cluster.pass(20);
    assert_eq!(first_victim(&cluster), tied_to);
    assert_eq!(cluster.holds(quiet), 1, "its guarantee");
}

#[test]
fn equal_priority_gets_no_room() {
    let text = queues(25, WITHIN_THE_DEAD_ZONE).replace("priority = 1", "priority = 0");
    let (mut cluster, _, quiet, _) = tied(&text);
    cluster.pass(200);
    assert_eq!((cluster.asked.len(), cluster.holds(quiet)), (0, 0));
}
