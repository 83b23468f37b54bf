//! Limits on how many jobs run at once: of a queue with those below it, and of a user.
//!
//! Owns who waits, what is said of it, and who comes next. Does not own the order of jobs that run.

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
    Ask { user, ..maps(queue, 1) }
}

fn running(cluster: &Cluster, jobs: &[JobId]) -> Vec<bool> {
    jobs.iter().map(|&job| cluster.holds(job) > 0).collect()
}

fn why(cluster: &Cluster, job: JobId) -> String {
    cluster.engine.remarks(cluster.now, job).remove(0)
}

#[test]
fn a_job_beyond_a_limit_waits_though_slots_are_free_and_says_for_what() {
    let mut cluster = cluster(QUEUES, 12);
    let asks =
        [("physics", "ada"), ("physics", "bob"), ("chemistry", "ada"), ("rest", "ada"), ("chemistry", "eve")];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    assert_eq!(running(&cluster, &jobs), [true, false, true, false, true]);
    assert_eq!(why(&cluster, jobs[1]), "it waits: queue physics runs 1 job, the most it may at once");
    assert_eq!(why(&cluster, jobs[3]), "it waits: user ada has 2 jobs running, the most one may at once");
    let last = cluster.submit(ask("chemistry", "kim"));
    assert_eq!(why(&cluster, last), "it waits: queue lab runs 3 jobs, the most it may at once");
}

#[test]
fn when_one_ends_the_one_that_waited_longest_for_it_begins() {
    let mut cluster = cluster(QUEUES, 12);
    let asks = [("physics", "ada"), ("physics", "bob"), ("physics", "eve"), ("rest", "ada"), ("rest", "ada")];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    assert_eq!(running(&cluster, &jobs), [true, false, false, true, false]);
    cluster.finish(jobs[0], 1);
    assert_eq!(running(&cluster, &jobs), [false, true, false, true, true], "for the queue, and for the user");
    cluster.stop(jobs[2]);
    cluster.finish(jobs[1], 1);
    assert_eq!(running(&cluster, &jobs), [false, false, false, true, true], "who waited is gone");
}

#[test]
fn who_runs_is_the_same_after_a_restart() {
    let mut cluster = cluster(QUEUES, 12);
    // Bob's second waits for its queue; when that is free it waits for Bob's limit, and Eve's goes before it.
    let asks = [("physics", "ada"), ("rest", "bob"), ("rest", "bob"), ("physics", "bob"), ("physics", "eve")];
    let jobs = asks.map(|(queue, user)| cluster.submit(ask(queue, user)));
    cluster.finish(jobs[0], 1);
    cluster.finish(jobs[1], 1);
    assert_eq!(running(&cluster, &jobs), [false, false, true, false, true]);
    let saved = serde_json::to_string(&cluster.engine.snapshot()).expect("plain data");
    let saved: EngineSnapshot = serde_json::from_str(&saved).expect("just written");
    let policy = Box::new(Capacity::new(&configuration(QUEUES)).expect("it is right"));
    cluster.engine = Engine::restore(saved, policy, settings()).expect("just saved");
    cluster.pass(0);
    assert_eq!(running(&cluster, &jobs), [false, false, true, false, true]);
    assert_eq!(why(&cluster, jobs[3]), "it waits: queue physics runs 1 job, the most it may at once");
    cluster.finish(jobs[4], 1);
    assert_eq!(running(&cluster, &jobs), [false, false, true, true, false]);
}
