//! The policy and the workers of most jobs in a window.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use napreduce_engine::{PreemptionSettings, Slots, TaskKind};
use napreduce_history::{EndedJob, RecordedCluster, WorkerGroup};
use napreduce_schedulers::{SchedulerConfiguration, SchedulerTables};
use serde_json::Value;

/// Maximum workers: more mean a damaged file.
const WORKERS_MAX: u64 = 100_000;

/// The recorded policy.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPolicy {
    pub configuration: SchedulerConfiguration,
    pub preemption: PreemptionSettings,
}

/// A policy in the head of a recording: its name, its tables and `[preemption]`.
type PolicyText = (String, Option<Value>, Value);

/// Collects the policies and workers of jobs.
#[derive(Debug, Default)]
pub struct Surroundings {
    jobs: usize,
    without: usize,
    /// Each policy and each set of workers, with its number of jobs, in order of appearance.
    policies: Vec<(PolicyText, usize)>,
    workers: Vec<(Vec<WorkerGroup>, usize)>,
    /// Slot usage over time by worker, from jobs without a recorded cluster.
    held: BTreeMap<String, [Vec<(u64, i64)>; 2]>,
}

impl Surroundings {
    /// Adds the cluster of a job.
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
        let RecordedCluster {
            scheduler,
            tables,
            preemption,
            workers,
        } = cluster.clone();
        count(&mut self.policies, (scheduler, tables, preemption));
        if !workers.is_empty() {
            count(&mut self.workers, workers);
        }
    }

    /// Returns the policy of most jobs, if this program knows it. Adds remarks.
    pub fn policy(&self, remarks: &mut Vec<String>) -> Option<RecordedPolicy> {
        if self.without > 0 {
            remarks.push(format!(
                "{} of {} jobs were recorded by an earlier version, without policy, workers and bytes of tasks",
                self.without, self.jobs
            ));
        }
        let ((scheduler, tables, preemption), jobs) = most(&self.policies)?;
        let known: usize = self.policies.iter().map(|(_, jobs)| jobs).sum();
        if *jobs < known {
            remarks.push(format!(
                "{} of {known} jobs ended under another policy or other parameters than the compared {scheduler}",
                known - jobs
            ));
        }
        match read_policy(scheduler, tables.as_ref(), preemption) {
            Ok(policy) => Some(policy),
            Err(why) => {
                remarks.push(format!(
                    "the recorded policy {scheduler} cannot be simulated: {why}"
                ));
                None
            }
        }
    }

    /// Returns the slots of each worker, as most jobs recorded them. Adds remarks.
    pub fn machines(&self, remarks: &mut Vec<String>) -> Result<Vec<Slots>> {
        let Some((groups, jobs)) = most(&self.workers) else {
            return Ok(self.guessed_machines(remarks));
        };
        let known: usize = self.workers.iter().map(|(_, jobs)| jobs).sum();
        if *jobs < known {
            remarks.push(format!(
                "{} of {known} jobs ended with other workers",
                known - jobs
            ));
        }
        let all: u64 = groups.iter().map(|group| u64::from(group.workers)).sum();
        ensure!(
            all <= WORKERS_MAX,
            "a recording has {all} workers (limit {WORKERS_MAX}), so it is damaged; leave its job out and give --nodes"
        );
        let slots = |group: &WorkerGroup| Slots {
            map: group.map_slots,
            reduce: group.reduce_slots,
        };
        Ok(groups
            .iter()
            .flat_map(|group| (0..group.workers).map(move |_| slots(group)))
            .collect())
    }

    /// Returns the maximum slots in use on every worker that had an attempt.
    fn guessed_machines(&self, remarks: &mut Vec<String>) -> Vec<Slots> {
        remarks.push(
            "the slots of workers are not recorded: assuming the maximum in use; see --nodes, --map-slots, --reduce-slots"
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

/// Returns the most common entry, or the first of several.
fn most<T>(all: &[(T, usize)]) -> Option<&(T, usize)> {
    all.iter().rev().max_by_key(|(_, jobs)| *jobs)
}

fn most_at_once(times: &[(u64, i64)]) -> u32 {
    let mut times = times.to_vec();
    // Ends sort before starts of the same time.
    times.sort_unstable();
    let mut now = 0;
    let mut most = 0;
    for (_, change) in times {
        now += change;
        most = most.max(now);
    }
    u32::try_from(most).unwrap_or(0)
}

fn read_policy(
    name: &str,
    tables: Option<&Value>,
    preemption: &Value,
) -> Result<RecordedPolicy, String> {
    let scheduler = name
        .parse()
        .map_err(|error: napreduce_schedulers::UnknownScheduler| error.to_string())?;
    let tables = tables.ok_or("its tables were too long to be recorded")?;
    let tables: SchedulerTables =
        serde_json::from_value(tables.clone()).map_err(|error| error.to_string())?;
    let preemption =
        serde_json::from_value(preemption.clone()).map_err(|error| error.to_string())?;
    let configuration = SchedulerConfiguration { scheduler, tables };
    configuration.build().map_err(|error| error.to_string())?;
    Ok(RecordedPolicy {
        configuration,
        preemption,
    })
}
