//! Suspended tasks whose worker drains or has no free slot resume on another worker.

use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_engine::{Effect, Order, Start};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_tests::{Folder, GatedJob, OwnCluster, counter, run, wait_until};
use serde_json::Value;

/// Returns the orders to a task, in order.
fn orders(cluster: &OwnCluster, task: &str) -> Vec<String> {
    let directory =
        ClusterDirectory::resolve(Some(cluster.directory().to_owned())).expect("a directory");
    let batches = replay_journal(&directory, SchedulerConfiguration::read).expect("a journal");
    let effects = batches.iter().flat_map(|batch| &batch.effects);
    let about = effects.filter_map(|effect| match effect {
        Effect::Send { order, .. } => Some(match order {
            Order::Launch {
                attempt,
                from: Start::Checkpoint(of),
                ..
            } => (format!("restore from .{}", of.number), *attempt),
            Order::Commit { .. } | Order::MoreInputs { .. } => return None,
            order => (order.verb().to_owned(), order.attempt()),
        }),
        _ => None,
    });
    let mine = about.filter(|(_, attempt)| attempt.task.to_string() == task);
    mine.map(|(order, attempt)| format!("{order} .{}", attempt.number))
        .collect()
}

fn converting(after: &str, to: &str) -> String {
    format!("[preemption]\nconvert = {{ after = \"{after}\", to = \"{to}\" }}\n")
}

/// A map of `low` is suspended on one worker. It may resume but cannot, since the map of `high` has its slot.
/// The other map of `low` runs on the other worker.
fn wait_for_a_slot<'test>(
    folder: &'test Folder,
    cluster: &'test OwnCluster,
    definition: &'static str,
) -> (GatedJob<'test>, GatedJob<'test>) {
    let low = GatedJob::submit(folder, cluster, definition, "low", 1, 2);
    for map in ["m_0000.1", "m_0001.1"] {
        low.until(map, "running");
    }
    low.command("suspend", "m_0000");
    let worker = low.until("m_0000.1", "suspended")["worker"].clone();
    let high = GatedJob::submit(folder, cluster, "gated", "high", 2, 1);
    assert_eq!(
        high.until("m_0000.1", "running")["worker"],
        worker,
        "no other slot is free"
    );
    low.command("resume", "m_0000");
    assert_eq!(low.live("m_0000")["state"], "suspended");
    (low, high)
}

/// Returns the only preemption in a history that the engine itself requested.
fn by_engine(history: &Value) -> Value {
    let all = history["preemptions"].as_array().expect("an array").iter();
    let mine: Vec<&Value> = all.filter(|known| known["by"] == "engine").collect();
    assert_eq!(mine.len(), 1, "{history}");
    mine[0].clone()
}

#[test]
fn suspended_task_moves_from_busy_to_free_worker() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", &converting("300ms", "checkpoint"));
    let (low, high) = wait_for_a_slot(&folder, &cluster, "gated");
    let from = low.live("m_0000")["worker"].clone();
    low.open("m_0001");
    let to = low.until("m_0000.2", "running")["worker"].clone();
    assert_ne!(to, from);
    let expected = [
        "launch .1",
        "suspend .1",
        "checkpoint .1",
        "restore from .1 .2",
    ];
    assert_eq!(orders(&cluster, &low.task("m_0000")), expected);
    high.ends_as_undisturbed();
    low.ends_as_undisturbed();
    for (name, times) in [
        ("SUSPENDS", 1),
        ("RESUMES", 0),
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
    ] {
        assert_eq!(counter(&low.output(), name), times, "{name}");
    }
    let history = low.history();
    let converted = by_engine(&history);
    assert_eq!(
        (&converted["primitive"], &converted["end"]),
        (&"checkpoint".into(), &"checkpointed".into())
    );
    let from = from.as_str().expect("a worker");
    let to = to.as_str().expect("a worker");
    assert_eq!(
        converted["reason"],
        format!("{from} had no slot for it for 300ms, and {to} has one")
    );
    assert!(
        converted["checkpoint_bytes"].as_u64() > Some(0),
        "{converted}"
    );
    let restored = &history["restores"][0];
    assert_eq!(
        (&restored["from_worker"], &restored["worker"]),
        (&from.into(), &to.into())
    );
    assert!(
        restored["restored_micros"].is_u64() && restored["refused"].is_null(),
        "{restored}"
    );
    let events = history["events"].to_string();
    assert!(events.contains("had no slot for it for 300ms"), "{events}");
}

#[test]
fn unsaveable_suspended_task_waits_for_worker() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", &converting("10ms", "checkpoint"));
    let (low, high) = wait_for_a_slot(&folder, &cluster, "gated-unsaved");
    low.open("m_0001");
    // Another job has run, and the other worker has a free slot; the map is still suspended there.
    let third = GatedJob::submit(&folder, &cluster, "gated", "third", 3, 1);
    third.ends_as_undisturbed();
    let live = low.live("m_0000");
    assert_eq!(
        (&live["attempt"], &live["state"]),
        (&low.task("m_0000.1").into(), &"suspended".into())
    );
    high.ends_as_undisturbed();
    low.ends_as_undisturbed();
    assert_eq!(
        orders(&cluster, &low.task("m_0000")),
        ["launch .1", "suspend .1", "resume .1"]
    );
    assert_eq!(counter(&low.output(), "WORK_LOST_MILLIS"), 0);
}

#[test]
fn unsaveable_task_is_killed_if_configured() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", &converting("300ms", "kill"));
    let (low, high) = wait_for_a_slot(&folder, &cluster, "gated-unsaved");
    let from = low.live("m_0000")["worker"].clone();
    low.open("m_0001");
    assert_ne!(low.until("m_0000.2", "running")["worker"], from);
    high.ends_as_undisturbed();
    low.ends_as_undisturbed();
    assert_eq!(
        orders(&cluster, &low.task("m_0000")),
        ["launch .1", "suspend .1", "kill .1", "launch .2"]
    );
    assert_eq!(counter(&low.output(), "NUM_KILLED_MAPS"), 1);
    assert!(counter(&low.output(), "WORK_LOST_MILLIS") > 0);
    let converted = by_engine(&low.history());
    assert_eq!(
        (&converted["primitive"], &converted["end"]),
        (&"kill".into(), &"killed".into())
    );
}

/// Returns the engine's preemption of a suspended map whose worker drains.
fn drained(definition: &'static str, then: &[&str]) -> Value {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let low = GatedJob::submit(&folder, &cluster, definition, "low", 1, 2);
    for map in ["m_0000.1", "m_0001.1"] {
        low.until(map, "running");
    }
    low.command("suspend", "m_0000");
    let from = low.until("m_0000.1", "suspended")["worker"].clone();
    let worker = from.as_str().expect("a worker");
    run(cluster.nap().args(["worker", "drain", "--wait", worker])).succeeded();
    wait_until("nothing of it is suspended", || {
        low.live("m_0000")["state"] != "suspended"
    });
    low.open("m_0001");
    // A task that an operator suspended stays held until an operator resumes it.
    low.command("resume", "m_0000");
    assert_ne!(low.until("m_0000.2", "running")["worker"], from);
    low.ends_as_undisturbed();
    assert_eq!(orders(&cluster, &low.task("m_0000")), then);
    let given_up = by_engine(&low.history());
    assert!(
        given_up["reason"]
            .as_str()
            .is_some_and(|why| why.starts_with(&format!("{worker} is draining")))
    );
    given_up
}

#[test]
fn suspended_task_on_draining_worker_moves() {
    let saved = drained(
        "gated",
        &[
            "launch .1",
            "suspend .1",
            "checkpoint .1",
            "restore from .1 .2",
        ],
    );
    assert_eq!(saved["end"], "checkpointed");
    let lost = drained(
        "gated-unsaved",
        &["launch .1", "suspend .1", "kill .1", "launch .2"],
    );
    assert_eq!(lost["end"], "killed");
    assert!(
        lost["reason"]
            .as_str()
            .is_some_and(|why| why.ends_with("maps of job_0001 cannot be checkpointed"))
    );
}
