//! Faults at random: of the store, of attempts, of coordinators, and what operators do meanwhile.
//!
//! Owns that the output is the same, once, whatever comes together. Does not own faults one by one (`faults`,
//! `cluster`, `coordinator`).

use napreduce_tests::{OwnCluster, run, wait_until};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use super::cluster::{kill_coordinator, start, submit};
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::{Server, on_each_server};

/// Requests on which tricks are played, and things that happen to the cluster meanwhile.
const TRICKS: usize = 120;
const EVENTS: usize = 40;
/// A task may fail four times.
const KILLS_MAX: u32 = 3;
const COORDINATORS_MAX: u32 = 2;

/// What happens to a cluster while it runs a job.
struct Chaos<'a> {
    cluster: &'a OwnCluster,
    job: String,
    random: Pcg64Mcg,
    kills: u32,
    coordinators: u32,
}

impl Chaos<'_> {
    /// Runs a command of operators. It may come too late, or while nobody answers.
    fn command(&self, arguments: &[&str]) -> Option<Value> {
        let said = run(self.cluster.nap().args(arguments));
        said.status.success().then(|| serde_json::from_str(&said.stdout).unwrap_or(Value::Null))
    }

    /// The tasks that are in this state, which an operator may have suspended without an attempt, or of which
    /// an attempt is.
    fn tasks(&self, state: &str) -> Vec<String> {
        let listed = self.command(&["task", "list", &self.job, "--format", "json"]).unwrap_or_default();
        let tasks = listed.as_array().cloned().unwrap_or_default();
        let is_it = |task: &&Value| task["state"] == state || task["live"][0]["state"] == state;
        tasks.iter().filter(is_it).filter_map(|task| Some(task["task"].as_str()?.to_owned())).collect()
    }

    fn act(&mut self) {
        let event = self.random.random_range(0..6);
        match event {
            0 | 1 => {
                let running = self.tasks("running");
                let Some(task) = running.choose(&mut self.random) else { return };
                let command = if event == 0 { "suspend" } else { "checkpoint" };
                self.command(&["task", command, task, "--no-wait"]);
            }
            2 | 3 => self.resume(),
            4 if self.kills < KILLS_MAX => {
                let tasks = self.cluster.tasks();
                let Some(task) = tasks.choose(&mut self.random) else { return };
                self.kills += u32::from(task.signal(rustix::process::Signal::KILL));
            }
            5 if self.coordinators < COORDINATORS_MAX => {
                self.coordinators += 1;
                kill_coordinator(self.cluster);
            }
            _ => {}
        }
    }

    /// Lets all go on that is suspended.
    fn resume(&self) {
        for task in self.tasks("suspended") {
            self.command(&["task", "resume", &task, "--no-wait"]);
        }
    }

    fn has_ended(&self) -> bool {
        let status = self.command(&["job", "status", &self.job, "--format", "json"]).unwrap_or_default();
        matches!(status[0]["state"].as_str(), Some("succeeded" | "failed" | "killed"))
    }
}

fn trick(random: &mut Pcg64Mcg) -> Trick {
    match random.random_range(0..20) {
        0 => Trick::Status(503),
        1 => Trick::Status(429),
        2 => Trick::Status(500),
        3 => Trick::Lose,
        4 => Trick::Cut(0),
        _ => Trick::Pass,
    }
}

fn whatever_comes_together_the_output_is_the_same(server: Server) {
    let Some(scene) = Scene::new(server, "chaos") else { return };
    let seed = std::env::var("NAPREDUCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_124);
    println!("seed {seed} (set NAPREDUCE_SEED to choose)");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let tricks: Vec<Trick> = (0..TRICKS).map(|_| trick(&mut random)).collect();
    let proxy = Proxy::on(Kind::Any, &scene.bucket.address, &tricks);
    let cluster = start(&scene, &proxy.address);
    let job = submit(&scene, &cluster);
    let mut chaos = Chaos { cluster: &cluster, job, random, kills: 0, coordinators: 0 };
    for _ in 0..EVENTS {
        if chaos.has_ended() {
            break;
        }
        chaos.act();
    }
    wait_until("the end of the job", || {
        chaos.resume();
        chaos.has_ended()
    });
    cluster.wait(&[&chaos.job]).succeeded();
    scene.assert_written();
}

on_each_server! {
    whatever_comes_together_the_output_is_the_same,
}
