//! Preemptions by an operator (`nap task`, `nap job`), combined with another fault.

use std::path::Path;
use std::time::Duration;

use napreduce_tests::{program, run};
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemons::Daemons;
use crate::faults::Injected;
use crate::processes::{Process, wait_until};

/// Deadline for the effect of an operator's command, also after a restart of the coordinator.
const DEADLINE: Duration = Duration::from_secs(60);

/// A live attempt as listed by `nap task list`.
#[derive(Debug, Clone)]
struct Live {
    attempt: String,
    state: String,
}

/// Returns the tasks listed by `nap task list`; none if the coordinator does not answer.
fn tasks(cluster: &Path) -> Vec<Value> {
    let listed = run(program("nap")
        .arg("--dir")
        .arg(cluster)
        .args(["task", "list", "--format", "json"]));
    let tasks: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
    tasks.as_array().cloned().unwrap_or_default()
}

/// Returns the live attempts; none if the coordinator does not answer.
fn live(cluster: &Path) -> Vec<Live> {
    let of = |task: &Value| task["live"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    tasks(cluster)
        .iter()
        .flat_map(of)
        .map(|live| Live {
            attempt: text(&live["attempt"]),
            state: text(&live["state"]),
        })
        .collect()
}

fn state_of(cluster: &Path, attempt: &str) -> Option<String> {
    live(cluster)
        .into_iter()
        .find(|live| live.attempt == attempt)
        .map(|live| live.state)
}

/// Returns whether the coordinator accepted the command. The attempt may have ended meanwhile.
fn order(cluster: &Path, words: &[&str]) -> bool {
    let now: &[&str] = if words[0] == "worker" {
        &[]
    } else {
        &["--no-wait"]
    };
    run(program("nap")
        .arg("--dir")
        .arg(cluster)
        .args(words)
        .args(now))
    .status
    .success()
}

fn any_running(random: &mut Pcg64, cluster: &Path) -> Option<String> {
    let running: Vec<Live> = live(cluster)
        .into_iter()
        .filter(|live| live.state == "running")
        .collect();
    running.choose(random).map(|live| live.attempt.clone())
}

/// Suspends a random attempt. Returns `None` if none was running, or if it ended before it stopped.
fn suspend_one(random: &mut Pcg64, cluster: &Path) -> Result<Option<String>, String> {
    let Some(attempt) = any_running(random, cluster) else {
        return Ok(None);
    };
    if !order(cluster, &["task", "suspend", &attempt]) {
        // The command may have been carried out although its answer was lost.
        resume(cluster, &attempt)?;
        return Ok(None);
    }
    let mut state = None;
    wait_until(
        &format!("{attempt} suspended, or its end"),
        DEADLINE,
        || {
            state = state_of(cluster, &attempt);
            state.as_deref().is_none_or(|state| state == "suspended")
        },
    )?;
    if state.is_none() {
        // The task may be held although its attempt has ended.
        resume(cluster, &attempt)?;
    }
    Ok(state.map(|_| attempt))
}

/// Resumes an attempt that an operator suspended. If the attempt has ended, this releases its task.
fn resume(cluster: &Path, attempt: &str) -> Result<(), String> {
    wait_until(
        &format!("{attempt} told to go on, or the end of its job"),
        DEADLINE,
        || {
            order(cluster, &["task", "resume", attempt])
                || (coordinator_answers(cluster) && !is_suspended(cluster, attempt))
        },
    )
}

/// Returns whether an attempt is suspended, or has ended while its task is held by the operator.
fn is_suspended(cluster: &Path, attempt: &str) -> bool {
    let id = |task: &Value| {
        task["task"]
            .as_str()
            .is_some_and(|task| attempt.starts_with(task))
    };
    tasks(cluster)
        .iter()
        .any(|task| id(task) && task["state"] == "suspended")
}

fn coordinator_answers(cluster: &Path) -> bool {
    order(cluster, &["worker", "list"])
}

fn hit(attempt: &Option<String>) -> Injected {
    if attempt.is_some() {
        Injected::Fired
    } else {
        Injected::NothingToHit
    }
}

fn pause(random: &mut Pcg64, millis: std::ops::Range<u64>) {
    std::thread::sleep(Duration::from_millis(random.random_range(millis)));
}

/// Suspends an attempt and resumes it later.
pub fn suspend_task(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let cluster = daemons.directory();
    let suspended = suspend_one(random, cluster)?;
    if let Some(attempt) = &suspended {
        pause(random, 0..500);
        resume(cluster, attempt)?;
    }
    Ok(hit(&suspended))
}

/// Suspends a whole job and resumes it later.
pub fn suspend_job(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let cluster = daemons.directory();
    let Some(attempt) = any_running(random, cluster) else {
        return Ok(Injected::NothingToHit);
    };
    let job = attempt.split_inclusive('_').take(2).collect::<String>();
    let job = job.trim_end_matches('_');
    if !order(cluster, &["job", "suspend", job]) {
        return Ok(Injected::NothingToHit);
    }
    pause(random, 0..700);
    wait_until(
        &format!("{job} told to go on, or its end"),
        DEADLINE,
        || {
            order(cluster, &["job", "resume", job])
                || (coordinator_answers(cluster) && !has_tasks(cluster, job))
        },
    )?;
    Ok(Injected::Fired)
}

/// Returns whether a job has not ended.
fn has_tasks(cluster: &Path, job: &str) -> bool {
    tasks(cluster).iter().any(|task| {
        task["task"]
            .as_str()
            .is_some_and(|task| task.starts_with(job))
    })
}

/// Checkpoints an attempt; its task restores without a command.
pub fn checkpoint_task(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let cluster = daemons.directory();
    let Some(attempt) = any_running(random, cluster) else {
        return Ok(Injected::NothingToHit);
    };
    if !order(cluster, &["task", "checkpoint", &attempt]) {
        return Ok(Injected::NothingToHit);
    }
    wait_until(
        &format!("the end of {attempt}, which was to save its work"),
        DEADLINE,
        || coordinator_answers(cluster) && state_of(cluster, &attempt).is_none(),
    )?;
    Ok(Injected::Fired)
}

fn processes(daemons: &Daemons) -> Vec<Process> {
    daemons
        .workers
        .iter()
        .flat_map(|worker| Process::tasks_of(worker.process.id()))
        .collect()
}

/// Kills a suspended process. It never resumes, and its task runs again after the operator resumes it.
pub fn kill_suspended_task(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let suspended = suspend_one(random, daemons.directory())?;
    let Some(attempt) = &suspended else {
        return Ok(Injected::NothingToHit);
    };
    for task in processes(daemons).into_iter().filter(Process::is_stopped) {
        if task.signal(Signal::KILL) {
            wait_until(
                "the end of a stopped task that was killed",
                DEADLINE,
                || task.is_gone(),
            )?;
        }
    }
    wait_until(
        &format!("the end of {attempt}, whose process was killed"),
        DEADLINE,
        || {
            coordinator_answers(daemons.directory())
                && state_of(daemons.directory(), attempt).is_none()
        },
    )?;
    resume(daemons.directory(), attempt)?;
    Ok(Injected::Fired)
}

/// Kills every task process while a checkpoint is written or restored.
pub fn kill_while_saving(random: &mut Pcg64, daemons: &Daemons) -> Result<Injected, String> {
    let cluster = daemons.directory();
    let Some(attempt) = any_running(random, cluster) else {
        return Ok(Injected::NothingToHit);
    };
    if !order(cluster, &["task", "checkpoint", &attempt]) {
        return Ok(Injected::NothingToHit);
    }
    pause(random, 0..40);
    let killed = processes(daemons)
        .into_iter()
        .filter(|task| task.signal(Signal::KILL))
        .count();
    Ok(if killed > 0 {
        Injected::Fired
    } else {
        Injected::NothingToHit
    })
}

/// Kills the coordinator while an attempt is suspended; the next one must list it as suspended.
pub fn kill_coordinator_while_suspended(
    random: &mut Pcg64,
    daemons: &mut Daemons,
) -> Result<Injected, String> {
    let suspended = suspend_one(random, daemons.directory())?;
    let Some(attempt) = &suspended else {
        return Ok(Injected::NothingToHit);
    };
    if !daemons.kill_coordinator() {
        return Err("it is not true that the coordinator was killed".to_owned());
    }
    pause(random, 0..1_500);
    daemons.restart_coordinator();
    resume(daemons.directory(), attempt)?;
    Ok(Injected::Fired)
}

/// Kills a worker with a suspended attempt.
pub fn kill_worker_while_suspended(
    random: &mut Pcg64,
    daemons: &mut Daemons,
) -> Result<Injected, String> {
    let suspended = suspend_one(random, daemons.directory())?;
    let Some(attempt) = &suspended else {
        return Ok(Injected::NothingToHit);
    };
    let stopped = |worker: &crate::daemons::Worker| {
        Process::tasks_of(worker.process.id())
            .iter()
            .any(Process::is_stopped)
    };
    let victim = daemons.workers.iter().position(stopped);
    let Some(victim) = victim else {
        resume(daemons.directory(), attempt)?;
        return Ok(Injected::NothingToHit);
    };
    let left = Process::tasks_of(daemons.workers[victim].process.id());
    if !daemons.kill_worker(victim) {
        return Err("it is not true that the worker was killed".to_owned());
    }
    wait_until(
        "the end of the tasks of a worker that was killed",
        DEADLINE,
        || left.iter().all(Process::is_gone),
    )?;
    daemons.restart_worker(victim);
    // The suspended attempt may be a different one than the chosen one.
    resume(daemons.directory(), attempt)?;
    Ok(Injected::Fired)
}
