//! The cluster of most jobs in a window: its policy and its workers, with defaults for jobs that lack them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use napreduce_engine::{PreemptionSettings, Slots, TaskKind};
use napreduce_history::{EndedJob, RecordedCluster, WorkerGroup};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerTables};
use serde_json::Value;

/// More machines than any cluster has; a file that says so is damaged.
const WORKERS_MAX: u64 = 100_000;

/// The policy as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPolicy {
    pub configuration: SchedulerConfiguration,
    pub preemption: PreemptionSettings,
}

/// A policy as a head says it: its name, the tables and `[preemption]`.
type PolicyText = (String, Option<Value>, Value);

/// Gathers what jobs say of their cluster.
#[derive(Debug, Default)]
pub struct Surroundings {
    jobs: usize,
    without: usize,
    /// How many jobs ran under each policy, and on each set of workers. In the order in which they came,
    /// since both are few.
    policies: Vec<(PolicyText, usize)>,
    workers: Vec<(Vec<WorkerGroup>, usize)>,
    /// When attempts of jobs that do not say held slots, by worker.
    held: BTreeMap<String, [Vec<(u64, i64)>; 2]>,
}

impl Surroundings {
    /// Adds what a job says.
    pub fn add(&mut self, ended: &EndedJob) {
        self.jobs += 1;
        let Some(cluster) = &ended.cluster else {
            self.without += 1;
            for attempt in &ended.detail.attempts {
                let kind = usize::from(attempt.attempt.task.kind == TaskKind::Reduce);
                let until = attempt.ended_millis.unwrap_or(attempt.launched_millis);
                let times = &mut self.held.entry(attempt.worker_name.clone()).or_default()[kind];
                times.extend([(attempt.launched_millis, 1), (until, -1)]);
            }
            return;
        };
        let RecordedCluster { scheduler, tables, preemption, workers } = cluster.clone();
        count(&mut self.policies, (scheduler, tables, preemption));
        if !workers.is_empty() {
            count(&mut self.workers, workers);
        }
    }

    /// The policy of most jobs, if this program knows it; what is to be said of it goes to the remarks.
    pub fn policy(&self, remarks: &mut Vec<String>) -> Option<RecordedPolicy> {
        if self.without > 0 {
            remarks.push(format!(
                "{} of {} jobs were recorded by an earlier version without the policy, the workers and the bytes of tasks",
                self.without, self.jobs
            ));
        }
        let ((scheduler, tables, preemption), jobs) = most(&self.policies)?;
        let known: usize = self.policies.iter().map(|(_, jobs)| jobs).sum();
        if *jobs < known {
            remarks.push(format!(
                "{} of {known} jobs ended under another policy, or other tables of it, than the {scheduler} that is compared",
                known - jobs
            ));
        }
        match read_policy(scheduler, tables.as_ref(), preemption) {
            Ok(policy) => Some(policy),
            Err(why) => {
                remarks
                    .push(format!("the policy that was recorded, {scheduler}, cannot be simulated: {why}"));
                None
            }
        }
    }

    /// The workers of most jobs, each with its slots.
    pub fn machines(&self, remarks: &mut Vec<String>) -> Result<Vec<Slots>> {
        let Some((groups, jobs)) = most(&self.workers) else { return Ok(self.guessed_machines(remarks)) };
        let known: usize = self.workers.iter().map(|(_, jobs)| jobs).sum();
        if *jobs < known {
            remarks.push(format!("{} of {known} jobs ended while other workers were there", known - jobs));
        }
        let all: u64 = groups.iter().map(|group| u64::from(group.workers)).sum();
        ensure!(
            all <= WORKERS_MAX,
            "a head says that there were {all} workers, more than {WORKERS_MAX}, so that it cannot be right; say how many \
             with --nodes after leaving its job out"
        );
        let slots = |group: &WorkerGroup| Slots { map: group.map_slots, reduce: group.reduce_slots };
        Ok(groups.iter().flat_map(|group| (0..group.workers).map(move |_| slots(group))).collect())
    }

    /// As many slots as were held at once, on every worker that had an attempt.
    fn guessed_machines(&self, remarks: &mut Vec<String>) -> Vec<Slots> {
        remarks.push(
            "the slots of workers are not recorded: each is taken to have as many as it ever used at once, see --nodes, \
             --map-slots, --reduce-slots"
                .to_owned(),
        );
        let slots = |times: &[Vec<(u64, i64)>; 2]| {
            let [map, reduce] = [0, 1].map(|kind| most_at_once(&times[kind]));
            Slots { map, reduce }
        };
        let mut all: Vec<Slots> = self.held.values().map(slots).collect();
        all.sort_by_key(|slots| (slots.map, slots.reduce));
        all
    }
}

fn count<T: PartialEq>(all: &mut Vec<(T, usize)>, one: T) {
    match all.iter_mut().find(|(known, _)| *known == one) {
        Some((_, jobs)) => *jobs += 1,
        None => all.push((one, 1)),
    }
}

/// What most jobs have; of equally many the first.
fn most<T>(all: &[(T, usize)]) -> Option<&(T, usize)> {
    all.iter().rev().max_by_key(|(_, jobs)| *jobs)
}

fn most_at_once(times: &[(u64, i64)]) -> u32 {
    let mut times = times.to_vec();
    // At the same time ends come first.
    times.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in times {
        now += change;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or(0)
}

fn read_policy(name: &str, tables: Option<&Value>, preemption: &Value) -> Result<RecordedPolicy, String> {
    let scheduler =
        name.parse().map_err(|error: napreduce_schedulers::UnknownScheduler| error.to_string())?;
    let tables = tables.ok_or("its tables were too long to be recorded")?;
    let tables: SchedulerTables =
        serde_json::from_value(tables.clone()).map_err(|error| error.to_string())?;
    let preemption = serde_json::from_value(preemption.clone()).map_err(|error| error.to_string())?;
    let configuration = SchedulerConfiguration { scheduler, tables };
    configuration.build().map_err(|error| error.to_string())?;
    Ok(RecordedPolicy { configuration, preemption })
}
