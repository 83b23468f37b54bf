//! Limits on running jobs, per queue with its subtree and per user.

use napreduce_engine::{Engine, EngineSnapshot, JobId};
use napreduce_schedulers::capacity::Capacity;

use crate::capacity::caps::cluster;
use crate::capacity::cluster::{Ask, Cluster, configuration, maps, settings};

const QUEUES: &str = r#"
user-max-running-jobs = 2

[[queue]]
name = "lab"
guaranteed-percent = 60
max-running-jobs = 3

[[queue]]
name = "physics"
parent = "lab"
guaranteed-percent = 50
max-running-jobs = 1

[[queue]]
name = "chemistry"
parent = "lab"
guaranteed-percent = 50

[[queue]]
name = "rest"
guaranteed-percent = 40
"#;

fn ask<'a>(queue: &'a str, user: &'a str) -> Ask<'a> {
    Ask {
        user,
        ..maps(queue, 1)
    }
}

fn running(cluster: &Cluster, jobs: &[JobId]) -> Vec<bool> {
    jobs.iter().map(|&job| cluster.holds(job) > 0).collect()
}

fn why(cluster: &Cluster, job: JobId) -> String {
    cluster.engine.remarks(cluster.now, job).remove(0)
}

#[test]
fn job_above_limit_waits_and_reports_limit() {
    let mut cluster = cluster(QUEUES, 12);
    let asks = [
        ("physics", "ada"),
        ("physics", "bob"),
        ("chemistry", "ada"),
        ("rest", "ada"),
        ("chemistry", "eve"),
    ];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    assert_eq!(running(&cluster, &jobs), [true, false, true, false, true]);
    assert_eq!(
        why(&cluster, jobs[1]),
        "it waits: queue physics runs 1 job, its limit"
    );
    assert_eq!(
        why(&cluster, jobs[3]),
        "it waits: user ada runs 2 jobs, the limit per user"
    );
    let last = cluster.submit(ask("chemistry", "kim"));
    assert_eq!(
        why(&cluster, last),
        "it waits: queue lab runs 3 jobs, its limit"
    );
}

#[test]
fn ended_job_admits_longest_waiting() {
    let mut cluster = cluster(QUEUES, 12);
    let asks = [
        ("physics", "ada"),
        ("physics", "bob"),
        ("physics", "eve"),
        ("rest", "ada"),
        ("rest", "ada"),
    ];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    assert_eq!(running(&cluster, &jobs), [true, false, false, true, false]);
    cluster.finish(jobs[0], 1);
    assert_eq!(
        running(&cluster, &jobs),
        [false, true, false, true, true],
        "for the queue, and for the user"
    );
    cluster.stop(jobs[2]);
    cluster.finish(jobs[1], 1);
    assert_eq!(
        running(&cluster, &jobs),
        [false, false, false, true, true],
        "the waiting job was removed"
    );
}

#[test]
fn restore_keeps_running_jobs() {
    let mut cluster = cluster(QUEUES, 12);
    // Bob's second job waits for its queue, then for Bob's own limit; Eve's job overtakes it.
    let asks = [
        ("physics", "ada"),
        ("rest", "bob"),
        ("rest", "bob"),
        ("physics", "bob"),
        ("physics", "eve"),
    ];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    cluster.finish(jobs[0], 1);
    cluster.finish(jobs[1], 1);
    assert_eq!(running(&cluster, &jobs), [false, false, true, false, true]);
    let saved = serde_json::to_string(&cluster.engine.snapshot()).expect("plain data serializes");
    let saved: EngineSnapshot = serde_json::from_str(&saved).expect("the snapshot is valid");
    let policy =
        Box::new(Capacity::new(&configuration(QUEUES)).expect("the configuration is valid"));
    cluster.engine = Engine::restore(saved, policy, settings()).expect("the snapshot is valid");
    cluster.pass(0);
    assert_eq!(running(&cluster, &jobs), [false, false, true, false, true]);
    assert_eq!(
        why(&cluster, jobs[3]),
        "it waits: queue physics runs 1 job, its limit"
    );
    cluster.finish(jobs[4], 1);
    assert_eq!(running(&cluster, &jobs), [false, false, true, true, false]);
}
