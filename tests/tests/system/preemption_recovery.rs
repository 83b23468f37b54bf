//! The coordinator is killed while tasks are suspended or save a checkpoint; the next one restores their
//! state.

use napreduce_tests::{Folder, GatedJob, OwnCluster, Process, counter, wait_until};
use rustix::process::Signal;

/// Kills the coordinator, calls `meanwhile`, and waits until `nap up` has started the next one.
fn kill_the_coordinator(cluster: &OwnCluster, meanwhile: impl FnOnce()) {
    let killed = cluster.coordinator();
    assert!(killed.signal(Signal::KILL), "it ran until then");
    wait_until("the end of the coordinator", || killed.is_gone());
    meanwhile();
    assert_ne!(cluster.coordinator(), killed);
    // Both workers have reconnected.
    cluster.wait_for_workers(2);
}

/// Returns the number of used slots of both kinds.
fn used_slots(cluster: &OwnCluster) -> u64 {
    let workers = cluster.json(&["worker", "list"]);
    let used = |kind: &str| -> u64 {
        let workers = workers.as_array().expect("an array").iter();
        workers
            .map(|worker| worker[kind]["used"].as_u64().expect("a number"))
            .sum()
    };
    used("map") + used("reduce")
}

#[test]
fn suspended_tasks_survive_coordinator_restart() {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let reducing = GatedJob::submit(&folder, &cluster, "gated", "reducing", 1, 1);
    reducing.open("m_0000");
    reducing.until("r_0000.1", "running");
    reducing.command("suspend", "r_0000");
    let mapping = GatedJob::submit(&folder, &cluster, "gated", "mapping", 2, 1);
    mapping.until("m_0000.1", "running");
    mapping.command("suspend", "m_0000");
    let suspended = [(&reducing, "r_0000.1"), (&mapping, "m_0000.1")];
    // Without progress: a worker reports that of the last moments before a suspension later.
    let until_suspended = |(job, attempt): (&GatedJob<'_>, &str)| {
        let listed = job.until(attempt, "suspended");
        ["attempt", "worker", "reason"].map(|name| listed[name].clone())
    };
    let before = suspended.map(until_suspended);
    let processes = cluster.tasks();
    assert!(
        processes.len() == 2 && processes.iter().all(Process::is_stopped),
        "{processes:?}"
    );
    for _ in 0..2 {
        kill_the_coordinator(&cluster, || {
            assert!(
                processes.iter().all(Process::is_stopped),
                "they stay stopped"
            );
        });
        assert_eq!(suspended.map(until_suspended), before);
        assert_eq!(cluster.tasks(), processes);
        assert!(
            processes.iter().all(Process::is_stopped),
            "the same, and stopped"
        );
        assert_eq!(used_slots(&cluster), 0);
    }
    // All slots are free for other jobs.
    let other = GatedJob::submit(&folder, &cluster, "gated", "other", 3, 2);
    for map in ["m_0000.1", "m_0001.1"] {
        other.until(map, "running");
    }
    other.ends_as_undisturbed();
    assert!(processes.iter().all(Process::is_stopped));
    for (job, attempt) in suspended {
        let (task, _) = attempt.split_once('.').expect("an attempt");
        job.command("resume", task);
        job.until(attempt, "running");
    }
    wait_until("both run", || !processes.iter().any(Process::is_stopped));
    for (job, attempt) in suspended {
        job.ends_as_undisturbed();
        for (name, times) in [("SUSPENDS", 1), ("RESUMES", 1), ("WORK_LOST_MILLIS", 0)] {
            assert_eq!(counter(&job.output(), name), times, "{name}");
        }
        assert!(counter(&job.output(), "SUSPENDED_MILLIS") > 0);
        let history = job.history();
        let preemption = &history["preemptions"][0];
        assert_eq!(
            (&preemption["attempt"], &preemption["end"]),
            (&job.task(attempt).into(), &"suspended".into())
        );
        assert_eq!(history["resumes"][0]["attempt"], job.task(attempt).as_str());
    }
}

/// Kills the coordinator while a map writes its checkpoint, which is complete before the next coordinator
/// starts, or after.
fn killed_while_work_is_saved(complete_before: bool) {
    let folder = Folder::new();
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    let job = GatedJob::submit(&folder, &cluster, "gated-saving", "saved", 1, 1);
    job.until("m_0000.1", "running");
    job.command("checkpoint", "m_0000");
    let gate = job.gate("m_0000");
    let saving = gate.with_extension("saving");
    let saved = gate.with_extension("saved");
    wait_until("the task saves its state", || saving.exists());
    assert_eq!(job.live("m_0000")["state"], "checkpointing");
    let let_it = || std::fs::write(&saved, "").expect("an open gate");
    kill_the_coordinator(&cluster, || {
        if complete_before {
            let_it();
        }
    });
    if !complete_before {
        assert_eq!(job.live("m_0000")["state"], "checkpointing");
        let_it();
    }
    job.until("m_0000.2", "running");
    job.ends_as_undisturbed();
    for (name, times) in [
        ("CHECKPOINTS", 1),
        ("CHECKPOINT_RESTORES", 1),
        ("NUM_KILLED_MAPS", 0),
    ] {
        assert_eq!(counter(&job.output(), name), times, "{name}");
    }
    let history = job.history();
    assert_eq!(history["preemptions"][0]["end"], "checkpointed");
    assert!(history["restores"][0]["refused"].is_null(), "{history}");
}

#[test]
fn checkpoint_during_coordinator_restart_is_restored() {
    killed_while_work_is_saved(true);
    killed_while_work_is_saved(false);
}
