//! The life of the monitor on a cluster: when and how much it preempts, for which jobs, and when it stops.

use napreduce_engine::{Engine, Fifo, JobId, Primitive};
use napreduce_schedulers::Composed;
use napreduce_schedulers::capacity::{Capacity, CapacityMonitor};
use rand::{Rng, SeedableRng};

use crate::capacity::caps::{cluster, two_queues};
use crate::capacity::cluster::{Ask, Cluster, configuration, maps, settings};

fn preemptive(monitor: &str) -> String {
    format!("{}\n[monitor]\n{monitor}", two_queues("preemptive", ""))
}

/// The small queue holds all ten slots; then the large one wants its seven.
fn contest(monitor: &str) -> (Cluster, JobId, JobId) {
    let mut cluster = cluster(&preemptive(monitor), 10);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    assert_eq!((cluster.holds(first), cluster.holds(second)), (10, 0));
    (cluster, first, second)
}

#[test]
fn monitor_requests_waits_kills_and_reassigns() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(3);
    let asked = cluster.asked.clone();
    assert_eq!(asked.len(), 1, "a tenth of ten slots per round");
    assert_eq!(
        (asked[0].0.task.job, asked[0].1, asked[0].2),
        (first, Primitive::Kill, Some(second))
    );
    let reason = "queue small has 10 map slots of 3.0 guaranteed, queue large has 0 map slots of 7.0 guaranteed";
    assert_eq!(cluster.reasons, [reason]);
    cluster.pass(14);
    assert_eq!(
        (cluster.asked.len(), cluster.killed),
        (1, 0),
        "every round chooses the same victim"
    );
    cluster.pass(1);
    assert_eq!(
        (cluster.killed, cluster.holds(first), cluster.holds(second)),
        (1, 9, 1)
    );
}

#[test]
fn monitor_stops_at_the_guarantee() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(300);
    assert_eq!(
        (cluster.holds(first), cluster.holds(second), cluster.killed),
        (3, 7, 7)
    );
}

#[test]
fn suspended_work_resumes_later() {
    let (mut cluster, first, second) = contest("primitive = \"suspend\"");
    cluster.pass(30);
    assert_eq!(
        (
            cluster.holds(first),
            cluster.suspended(first),
            cluster.holds(second)
        ),
        (3, 7, 7)
    );
    assert_eq!(cluster.killed, 0);
    cluster.finish(second, 7);
    cluster.finish(second, 7);
    cluster.finish(second, 6);
    assert_eq!((cluster.holds(first), cluster.suspended(first)), (10, 0));
}

#[test]
fn dead_zone_prevents_preemption() {
    let (mut cluster, first, _) = contest("dead-zone = 2\nprimitive = \"checkpoint\"");
    cluster.pass(300);
    assert_eq!(
        cluster.holds(first),
        9,
        "within the dead zone of three times the guarantee"
    );
}

#[test]
fn observe_only_preempts_nothing() {
    let (mut cluster, first, _) = contest("observe-only = true");
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.asked.len()), (10, 0));
}

#[test]
fn protected_queue_is_not_preempted() {
    let text = preemptive("").replace(
        "name = \"small\"",
        "name = \"small\"\npreemption-disabled = true",
    );
    let mut cluster = cluster(&text, 10);
    let first = cluster.submit(maps("small", 20));
    cluster.submit(maps("large", 20));
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.asked.len()), (10, 0));
}

#[test]
fn no_kill_for_ended_job() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    cluster.stop(second);
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.killed), (10, 0));
}

#[test]
fn unconfirmed_request_is_cancelled_before_kill() {
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    assert_eq!((cluster.asked.len(), cluster.holds(second)), (1, 0));
    // The victim was launched last. Other tasks end by themselves, so the large queue reaches its guarantee.
    cluster.finish(first, 7);
    assert_eq!(cluster.holds(second), 7);
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.killed), (3, 0));
    assert_eq!(cluster.engine.view().tally().requests_cancelled, 1);
}

#[test]
fn published_budget_of_few_slots_rounds_to_zero() {
    let (mut cluster, first, _) = contest("least-slots = 0");
    cluster.pass(600);
    assert_eq!(
        (cluster.holds(first), cluster.asked.len()),
        (10, 0),
        "a fifth of one slot rounds to zero"
    );
}

#[test]
fn higher_priority_preempts_within_queue() {
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
    let urgent = cluster.submit(Ask {
        priority: 5,
        ..maps("only", 6)
    });
    cluster.pass(100);
    assert_eq!(
        (cluster.holds(first), cluster.holds(urgent), cluster.killed),
        (14, 6, 6)
    );
    assert_eq!(
        cluster.reasons[0],
        "queue only has 20 map slots of 20.0 guaranteed, and another of its jobs is due more of them"
    );
}

#[test]
fn monitor_works_under_another_policy() {
    let monitor =
        CapacityMonitor::new(&configuration(&preemptive(""))).expect("the configuration is valid");
    let fifo = || Box::new(Fifo::default());
    let composed = Composed::new(fifo(), fifo(), Some(Box::new(monitor)));
    let mut cluster = Cluster::new(Box::new(composed), 10, 0);
    let first = cluster.submit(maps("small", 20));
    let second = cluster.submit(maps("large", 20));
    cluster.pass(300);
    assert_eq!(
        (cluster.holds(first), cluster.holds(second)),
        (3, 7),
        "each slot is assigned to its beneficiary"
    );
}

#[test]
fn restored_policy_keeps_its_requests() {
    let text = preemptive("");
    let (mut cluster, first, second) = contest("");
    cluster.pass(10);
    let policy = Capacity::new(&configuration(&text)).expect("the configuration is valid");
    let image = serde_json::to_value(cluster.engine.snapshot()).expect("plain data serializes");
    let snapshot = serde_json::from_value(image).expect("the snapshot is valid");
    cluster.engine =
        Engine::restore(snapshot, Box::new(policy), settings()).expect("the snapshot is valid");
    cluster.pass(8);
    assert_eq!(
        (cluster.asked.len(), cluster.killed, cluster.holds(second)),
        (1, 1, 1)
    );
    cluster.pass(300);
    assert_eq!((cluster.holds(first), cluster.holds(second)), (3, 7));
}

#[test]
fn alternating_arrivals_do_not_cause_thrashing() {
    let (mut cluster, _, _) = contest("primitive = \"suspend\"\ninterval = \"1s\"");
    cluster.pass(60);
    let settled = cluster.asked.len();
    for turn in 0..40 {
        cluster.submit(maps(if turn % 2 == 0 { "small" } else { "large" }, 1));
        cluster.pass(5);
    }
    assert_eq!(
        (settled, cluster.asked.len()),
        (7, 7),
        "both hold exactly their guarantees"
    );
}

#[test]
fn every_preemption_has_a_beneficiary_with_demand() {
    let mut asked = 0;
    for seed in 0..60 {
        let mut random = rand_pcg::Pcg32::seed_from_u64(seed);
        let primitive = ["kill", "suspend", "checkpoint"][seed as usize % 3];
        let balance = seed % 2 == 0;
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
                    let ask = Ask {
                        user: ["ada", "bob"][random.random_range(0..2)],
                        ..ask
                    };
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
                        let job = beneficiary
                            .unwrap_or_else(|| panic!("seed {seed}: {victim} for nobody"));
                        assert_ne!(
                            job, victim.task.job,
                            "seed {seed}: a job preempted its own task"
                        );
                    }
                }
            }
        }
        asked += cluster.asked.len();
    }
    assert!(asked > 100, "only {asked} preemptions");
}
