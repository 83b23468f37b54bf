//! Random cluster events during a job: tasks are suspended, checkpointed, resumed and killed, and
//! coordinators are killed.

use napreduce_tests::{OwnCluster, run, wait_until};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

const EVENTS: usize = 40;
/// A task may fail four times.
const KILLS_MAX: u32 = 3;
const COORDINATORS_MAX: u32 = 2;

/// The random generator of a test. `NAPREDUCE_SEED` sets its seed, which is printed.
pub fn random() -> Pcg64Mcg {
    let seed = std::env::var("NAPREDUCE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_124);
    println!("seed {seed} (set NAPREDUCE_SEED to choose)");
    Pcg64Mcg::seed_from_u64(seed)
}

/// Causes random events in the cluster, and waits for the job, which must succeed.
pub fn endure(cluster: &OwnCluster, job: String, random: Pcg64Mcg) {
    let mut events = Events {
        cluster,
        job,
        random,
        kills: 0,
        coordinators: 0,
    };
    for _ in 0..EVENTS {
        if events.has_ended() {
            break;
        }
        events.act();
    }
    wait_until("the end of the job", || {
        events.resume();
        events.has_ended()
    });
    cluster.wait(&[&events.job]).succeeded();
}

/// A job, and the events in its cluster so far.
struct Events<'a> {
    cluster: &'a OwnCluster,
    job: String,
    random: Pcg64Mcg,
    kills: u32,
    coordinators: u32,
}

impl Events<'_> {
    /// Runs a command of an operator, which may be too late or find no coordinator.
    fn command(&self, arguments: &[&str]) -> Option<Value> {
        let said = run(self.cluster.nap().args(arguments));
        said.status
            .success()
            .then(|| serde_json::from_str(&said.stdout).unwrap_or(Value::Null))
    }

    /// Returns the tasks in this state, or with an attempt in this state. A task may be suspended without an
    /// attempt.
    fn tasks(&self, state: &str) -> Vec<String> {
        let listed = self
            .command(&["task", "list", &self.job, "--format", "json"])
            .unwrap_or_default();
        let tasks = listed.as_array().cloned().unwrap_or_default();
        let is_it = |task: &&Value| task["state"] == state || task["live"][0]["state"] == state;
        tasks
            .iter()
            .filter(is_it)
            .filter_map(|task| Some(task["task"].as_str()?.to_owned()))
            .collect()
    }

    fn act(&mut self) {
        let event = self.random.random_range(0..6);
        match event {
            0 | 1 => {
                let running = self.tasks("running");
                let Some(task) = running.choose(&mut self.random) else {
                    return;
                };
                let command = if event == 0 { "suspend" } else { "checkpoint" };
                self.command(&["task", command, task, "--no-wait"]);
            }
            2 | 3 => self.resume(),
            4 if self.kills < KILLS_MAX => {
                let tasks = self.cluster.tasks();
                let Some(task) = tasks.choose(&mut self.random) else {
                    return;
                };
                self.kills += u32::from(task.signal(rustix::process::Signal::KILL));
            }
            5 if self.coordinators < COORDINATORS_MAX => {
                self.coordinators += 1;
                self.cluster.kill_coordinator();
            }
            _ => {}
        }
    }

    /// Resumes everything that is suspended.
    fn resume(&self) {
        for task in self.tasks("suspended") {
            self.command(&["task", "resume", &task, "--no-wait"]);
        }
    }

    fn has_ended(&self) -> bool {
        let status = self
            .command(&["job", "status", &self.job, "--format", "json"])
            .unwrap_or_default();
        matches!(
            status[0]["state"].as_str(),
            Some("succeeded" | "failed" | "killed")
        )
    }
}
