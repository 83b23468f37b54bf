//! The monitor takes back what is guaranteed: when, how much, how, for whom, and when it stops.
//!
//! Owns its life on a cluster. Does not own its arithmetic.

use napreduce_engine::{Engine, Fifo, JobId, Primitive};
use napreduce_schedulers::Composed;
use napreduce_schedulers::capacity::{Capacity, CapacityMonitor};
use rand::{Rng, SeedableRng};

use crate::capacity::caps::{cluster, two_queues};
use crate::capacity::cluster::{Ask, Cluster, configuration, maps, settings};

fn preemptive(monitor: &str) -> String {
    format!("{}\n[monitor]\n{monitor}", two_queues("preemptive", ""))
}

/// The small queue has all ten slots; then the large one wants its seven.
fn contest(monitor: &str) -> (Cluster, JobId, JobId) {
    let mut cluster = cluster(&preemptive(monitor), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    assert_eq!((cluster.holds(first), cluster.holds(second)), (10, 0));
    (cluster, first, second)
}

#[test]
fn it_asks_waits_kills_and_gives_the_slot_to_whom_it_was_taken_for() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(3);
    let asked = cluster.asked.clone();
    assert_eq!(asked.len(), 1, "a tenth of ten slots in a round");
    assert_eq!((asked[0].0.task.job, asked[0].1, asked[0].2), (first, Primitive::Kill, Some(second)));
    let reason =
        "queue small has 10 map slots of 3.0 guaranteed, queue large has 0 map slots of 7.0 guaranteed";
    assert_eq!(cluster.reasons, [reason]);
    cluster.pass(14);
    assert_eq!((cluster.asked.len(), cluster.killed), (1, 0), "the same victim again in every round");
    cluster.pass(1);
    assert_eq!((cluster.killed, cluster.holds(first), cluster.holds(second)), (1, 9, 1));
}

#[test]
fn it_goes_on_until_the_guarantee_is_there_and_then_stops() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.holds(second), cluster.killed), (3, 7, 7));
}

#[test]
fn work_that_is_suspended_goes_on_later() {
    let (mut cluster, first, second) = contest("primitive = \"suspend\"");
    cluster.pass(30);
    assert_eq!((cluster.holds(first), cluster.suspended(first), cluster.holds(second)), (3, 7, 7));
    assert_eq!(cluster.killed, 0);
    cluster.finish(second, 7);
    cluster.finish(second, 7);
    cluster.finish(second, 6);
    assert_eq!((cluster.holds(first), cluster.suspended(first)), (10, 0));
}

#[test]
fn within_the_dead_zone_nothing_is_taken() {
    let (mut cluster, first, _) = contest("dead-zone = 2\nprimitive = \"checkpoint\"");
    cluster.pass(300);
    assert_eq!(cluster.holds(first), 9, "three times the guarantee and no more");
}

#[test]
fn an_observer_takes_nothing() {
    let (mut cluster, first, _) = contest("observe-only = true");
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.asked.len()), (10, 0));
}

#[test]
fn nothing_is_taken_from_a_protected_queue() {
    let text = preemptive("").replace("name = \"small\"", "name = \"small\"\npreemption-disabled = true");
    let mut cluster = cluster(&text, 10);
    let first = cluster.submit(maps("small", 20));
    cluster.submit(maps("large", 20));
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.asked.len()), (10, 0));
}

#[test]
fn nobody_is_killed_for_a_job_that_is_gone() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    cluster.stop(second);
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.killed), (10, 0));
}

#[test]
fn a_request_that_is_no_longer_wanted_when_it_is_due_is_withdrawn() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    assert_eq!((cluster.asked.len(), cluster.holds(second)), (1, 0));
    // The victim was launched last; others end by themselves, and the large queue has what it is guaranteed.
    cluster.finish(first, 7);
    assert_eq!(cluster.holds(second), 7);
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.killed), (3, 0));
    assert_eq!(cluster.engine.view().tally().requests_cancelled, 1);
}

#[test]
fn as_published_a_tenth_of_few_slots_is_none() {
    let (mut cluster, first, _) = contest("least-slots = 0");
    cluster.pass(600);
    assert_eq!(
        (cluster.holds(first), cluster.asked.len()),
        (10, 0),
        "a fifth of one slot is rounded to none"
    );
}

#[test]
fn more_important_jobs_of_a_queue_take_from_less_important_ones() {
    let text = "
        mode = \"preemptive\"
        [[queue]]
        name = \"only\"
        guaranteed-percent = 100
        [monitor]
        intra-queue = true
        intra-queue-order = \"priority-first\"
        intra-queue-max-allowable-limit = 0.5";
    let mut cluster = cluster(text, 20);
    let first = cluster.submit(maps("only", 40));
    let urgent = cluster.submit(Ask { priority: 5, ..maps("only", 6) });
    cluster.pass(100);
    assert_eq!((cluster.holds(first), cluster.holds(urgent), cluster.killed), (14, 6, 6));
    assert_eq!(
        cluster.reasons[0],
        "queue only has 20 map slots of 20.0 guaranteed, and another of its jobs is due more of them"
    );
}

#[test]
fn it_takes_back_under_another_policy() {
    let monitor = CapacityMonitor::new(&configuration(&preemptive(""))).expect("a monitor");
    let fifo = || Box::new(Fifo::default());
    let composed = Composed::new(fifo(), fifo(), Some(Box::new(monitor)));
    let mut cluster = Cluster::new(Box::new(composed), 10, 0);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.holds(second)), (3, 7), "each slot goes to its beneficiary");
}

#[test]
fn a_restored_policy_goes_on_with_its_requests() {
    let text = preemptive("");
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    let policy = Capacity::new(&configuration(&text)).expect("a policy");
    let image = serde_json::to_value(cluster.engine.snapshot()).expect("a snapshot is plain data");
    let snapshot = serde_json::from_value(image).expect("just written");
    cluster.engine = Engine::restore(snapshot, Box::new(policy), settings()).expect("its own snapshot");
    cluster.pass(8);
    assert_eq!((cluster.asked.len(), cluster.killed, cluster.holds(second)), (1, 1, 1));
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.holds(second)), (3, 7));
}

#[test]
fn arrivals_in_turn_do_not_make_it_thrash() {
    let (mut cluster, _, _) = contest("primitive = \"suspend\"\ninterval = \"1s\"");
    cluster.pass(60);
    let settled = cluster.asked.len();
    for turn in 0..40 {
        cluster.submit(maps(if turn % 2 == 0 { "small" } else { "large" }, 1));
        cluster.pass(5);
    }
    assert_eq!((settled, cluster.asked.len()), (7, 7), "both have just what they are guaranteed");
}

#[test]
fn whatever_happens_a_slot_is_taken_for_a_job_that_wants_it() {
    let mut asked = 0;
    for seed in 0..60 {
        let mut random = rand_pcg::Pcg32::seed_from_u64(seed);
        let (primitive, balance) = (["kill", "suspend", "checkpoint"][seed as usize % 3], seed % 2 == 0);
        let text = preemptive(&format!(
            "primitive = \"{primitive}\"\nbalance-beyond-guaranteed = {balance}\nintra-queue = {}\ndead-zone = 0",
            seed % 5 == 0
        ));
        let mut cluster = cluster(&text, random.random_range(2..14));
        let mut jobs = Vec::new();
        for _ in 0..120 {
            match random.random_range(0..4) {
                0 => {
                    let queue = ["small", "large"][random.random_range(0..2)];
                    let ask = Ask {
                        priority: random.random_range(0..3),
                        ..maps(queue, random.random_range(1..12))
                    };
                    let ask = Ask { user: ["ada", "bob"][random.random_range(0..2)], ..ask };
                    jobs.push(cluster.submit(ask));
                }
                1 => {
                    let running = |job: &&JobId| cluster.running(**job) > 0;
                    if let Some(&job) = jobs.iter().filter(running).nth(random.random_range(0..3)) {
                        cluster.finish(job, 1);
                    }
                }
                _ => {
                    let before = cluster.asked.len();
                    cluster.pass(random.random_range(1..8));
                    for (victim, _, beneficiary) in &cluster.asked[before..] {
                        let job = beneficiary.unwrap_or_else(|| panic!("seed {seed}: {victim} for nobody"));
                        assert_ne!(job, victim.task.job, "seed {seed}: for itself");
                    }
                }
            }
        }
        asked += cluster.asked.len();
    }
    assert!(asked > 100, "only {asked} slots were taken");
}
