//! Serializable summaries of runs: means and percentiles, by class, and confidence intervals over runs.

mod confidence;
mod percentile;

pub use confidence::{ConfidenceInterval, confidence};
pub use percentile::{Spread, ecdf};

use std::collections::BTreeMap;

use napreduce_engine::{Fallbacks, TaskKind};
use serde::{Deserialize, Serialize};

use crate::run::{Ending, JobResult, Preemptions, Run};

/// The metrics of a run. Times in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Jobs that ended.
    pub jobs: u64,
    /// Of these, failed or killed.
    pub failed: u64,
    pub unfinished: u64,
    /// From submission to end.
    pub sojourn: Spread,
    /// Sojourn time divided by the run time alone.
    pub slowdown: Spread,
    /// From the first submission to the last end.
    pub makespan: f64,
    /// Slot time of work that counted.
    pub useful: f64,
    /// Slot time of lost work.
    pub wasted: f64,
    /// Slot time of work preserved by suspends and checkpoints.
    pub saved: f64,
    /// Slot time of reduces waiting for maps.
    pub waiting: f64,
    /// Slot time of everything else: launches, suspends, orders in transit.
    pub overhead: f64,
    pub preemptions: Preemptions,
    /// How often settings replaced or delayed what the policy requested.
    #[serde(default)]
    pub fallbacks: Fallbacks,
    /// Requests that became a kill when their grace or kill timeout was over.
    #[serde(default)]
    pub forced_kills: u64,
    /// From the end of a job's maps to its first reduce.
    pub reduce_wait: Spread,
    /// Fraction of map slot time that was held, and of reduce slot time. With containers, the fractions of the
    /// time of all containers that maps and masters held, and that reduces held.
    pub utilisation: [f64; 2],
    /// With containers, the fraction of their time that they were held.
    #[serde(default)]
    pub containers: Option<f64>,
    /// Jobs with a deadline.
    pub deadlines: u64,
    /// Of these, jobs that missed it.
    pub missed: u64,
    /// Launches of maps with a known input location.
    pub placed_maps: u64,
    /// Of these, on a machine with the input, and on another machine of its rack.
    pub local_maps: u64,
    pub rack_maps: u64,
    /// Events handled by the engine.
    pub events: u64,
    pub classes: BTreeMap<String, ClassSummary>,
}

impl RunSummary {
    /// Computes the metrics of a run.
    pub fn new(run: &Run) -> RunSummary {
        let all: Vec<&JobResult> = run.jobs.iter().collect();
        let whole = ClassSummary::new(&all);
        let mut by_class: BTreeMap<&str, Vec<&JobResult>> = BTreeMap::new();
        for job in &all {
            by_class.entry(&job.class).or_default().push(job);
        }
        let first = all
            .iter()
            .map(|job| job.submitted)
            .min()
            .unwrap_or_default();
        let last = all.iter().map(|job| job.ended).max().unwrap_or_default();
        let slot_time = &run.slot_time;
        let share = |kind: usize| match slot_time.capacity_for(kind) {
            0 => 0.0,
            capacity => slot_time.busy[kind] as f64 / capacity as f64,
        };
        let containers = slot_time.is_shared().then(|| share(0) + share(1));
        RunSummary {
            jobs: whole.jobs,
            failed: all
                .iter()
                .filter(|job| job.ending != Ending::Succeeded)
                .count() as u64,
            unfinished: run.unfinished as u64,
            sojourn: whole.sojourn,
            slowdown: whole.slowdown,
            makespan: seconds(last.since(first).0),
            useful: seconds(slot_time.useful),
            wasted: seconds(slot_time.wasted),
            saved: seconds(slot_time.saved),
            waiting: seconds(slot_time.waiting),
            overhead: seconds(slot_time.overhead()),
            preemptions: whole.preemptions,
            fallbacks: run.tally.fallbacks,
            forced_kills: run.tally.requests_forced,
            reduce_wait: whole.reduce_wait,
            utilisation: [share(0), share(1)],
            containers,
            deadlines: all.iter().filter(|job| job.deadline.is_some()).count() as u64,
            missed: whole.missed,
            placed_maps: run.placed_maps,
            local_maps: run.local_maps,
            rack_maps: run.rack_maps,
            events: run.events,
            classes: by_class
                .into_iter()
                .map(|(class, jobs)| (class.to_owned(), ClassSummary::new(&jobs)))
                .collect(),
        }
    }
}

/// The metrics of one class of jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// Jobs that ended.
    pub jobs: u64,
    /// From submission to end.
    pub sojourn: Spread,
    /// Sojourn time divided by the run time alone.
    pub slowdown: Spread,
    /// From the end of a job's maps to its first reduce.
    pub reduce_wait: Spread,
    /// Slot time of lost work.
    pub wasted: f64,
    pub preemptions: Preemptions,
    /// Jobs that missed their deadline.
    pub missed: u64,
}

impl ClassSummary {
    fn new(jobs: &[&JobResult]) -> ClassSummary {
        let with_reduces = jobs.iter().filter(|job| job.tasks[1] > 0);
        let mut preemptions = Preemptions::default();
        for job in jobs {
            preemptions.suspend += job.preemptions.suspend;
            preemptions.checkpoint += job.preemptions.checkpoint;
            preemptions.kill += job.preemptions.kill;
        }
        ClassSummary {
            jobs: jobs.len() as u64,
            sojourn: Spread::from_numbers(jobs.iter().map(|job| seconds(job.sojourn().0))),
            slowdown: Spread::from_numbers(jobs.iter().filter_map(|job| job.slowdown())),
            reduce_wait: Spread::from_numbers(with_reduces.map(|job| seconds(job.reduce_wait.0))),
            wasted: jobs.iter().map(|job| seconds(job.wasted.0)).sum(),
            preemptions,
            missed: jobs.iter().filter(|job| job.missed()).count() as u64,
        }
    }
}

/// Returns the slots held by a job over time for a plot, as (seconds, slots).
pub fn allocation_of(run: &Run, job: &JobResult, kind: TaskKind) -> Vec<(f64, u32)> {
    run.allocation
        .levels(job.job, kind)
        .into_iter()
        .map(|(time, slots)| (seconds(time.0), slots))
        .collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
