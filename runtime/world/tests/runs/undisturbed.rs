//! Runs of simulated clusters in which nothing goes wrong.

use std::thread;

use napreduce_cluster::{ClusterDirectory, replay_journal};
use napreduce_engine::PreemptionSettings;
use napreduce_local::coordinator::ReplayedBatch;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerTables};
use napreduce_world::{AfterViolation, Echo, Plan, RunSettings, run_and_look};
use serde::Deserialize;

/// The tables of a configuration file that matter to schedulers.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    scheduler: SchedulerTables,
    #[serde(default)]
    preemption: PreemptionSettings,
}

/// Returns the policy of this name with what a configuration file says.
pub fn configured(name: &str, file: &str) -> (SchedulerConfiguration, PreemptionSettings) {
    let read: File = toml::from_str(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let configuration = SchedulerConfiguration {
        scheduler: name.parse().expect("a known name"),
        tables: read.scheduler,
    };
    (configuration, read.preemption)
}

/// Runs a plan in which nothing goes wrong; returns the journal of its coordinator.
pub fn journal_of(plan: Plan) -> Vec<ReplayedBatch> {
    let settings = RunSettings {
        plan,
        echo: Echo::Silent,
        until: None,
        after_violation: AfterViolation::GoOn,
    };
    let mut batches = Vec::new();
    let look = |directory: &ClusterDirectory| {
        // The observer of the run takes no note of what another thread replays.
        let replayed = thread::scope(|scope| {
            scope
                .spawn(|| replay_journal(directory, SchedulerConfiguration::read))
                .join()
        });
        batches = replayed.expect("no panic").expect("a journal");
    };
    let report = run_and_look(settings, look).expect("a run");
    assert_eq!(report.violations, Vec::<String>::new());
    batches
}
