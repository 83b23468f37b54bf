//! Serializable summaries of runs: means and percentiles, by class, and confidence intervals over runs.

mod confidence;
mod percentile;

pub use confidence::{ConfidenceInterval, confidence};
pub use percentile::{Spread, ecdf};

use std::collections::BTreeMap;

use napreduce_engine::{TaskKind, fields};
use serde::{Deserialize, Serialize};

use crate::run::{Ending, JobResult, Preemptions, Run};

fields! {
    /// The metrics of a run. Times in seconds.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct RunSummary {
        /// Jobs that ended.
        pub jobs: u64 = whole.jobs,
        /// Of these, failed or killed.
        pub failed: u64 = all.iter().filter(|job| job.ending != Ending::Succeeded).count() as u64,
        pub unfinished: u64 = run.unfinished as u64,
        /// From submission to end.
        pub sojourn: Spread = whole.sojourn,
        /// Sojourn time divided by the run time alone.
        pub slowdown: Spread = whole.slowdown,
        /// From the first submission to the last end.
        pub makespan: f64 = seconds(last.since(first).0),
        /// Slot time of work that counted.
        pub useful: f64 = seconds(slot_time.useful),
        /// Slot time of lost work.
        pub wasted: f64 = seconds(slot_time.wasted),
        /// Slot time of work preserved by suspends and checkpoints.
        pub saved: f64 = seconds(slot_time.saved),
        /// Slot time of reduces waiting for maps.
        pub waiting: f64 = seconds(slot_time.waiting),
        /// Slot time of everything else: launches, suspends, orders in transit.
        pub overhead: f64 = seconds(slot_time.overhead()),
        pub preemptions: Preemptions = whole.preemptions,
        /// From the end of a job's maps to its first reduce.
        pub reduce_wait: Spread = whole.reduce_wait,
        /// Fraction of map slot time that was held, and of reduce slot time.
        pub utilisation: [f64; 2] = [share(0), share(1)],
        /// Jobs with a deadline.
        pub deadlines: u64 = all.iter().filter(|job| job.deadline.is_some()).count() as u64,
        /// Of these, jobs that missed it.
        pub missed: u64 = whole.missed,
        /// Launches of maps with a known input location.
        pub placed_maps: u64 = run.placed_maps,
        /// Of these, on a machine with the input, and on another machine of its rack.
        pub local_maps: u64 = run.local_maps,
        pub rack_maps: u64 = run.rack_maps,
        /// Events handled by the engine.
        pub events: u64 = run.events,
        pub classes: BTreeMap<String, ClassSummary> =
            by_class.into_iter().map(|(class, jobs)| (class.to_owned(), ClassSummary::of(&jobs))).collect(),
    }

    /// Computes the metrics of a run.
    pub fn of(run: &Run) {
        let all: Vec<&JobResult> = run.jobs.iter().collect();
        let whole = ClassSummary::of(&all);
        let mut by_class: BTreeMap<&str, Vec<&JobResult>> = BTreeMap::new();
        for job in &all {
            by_class.entry(&job.class).or_default().push(job);
        }
        let first = all.iter().map(|job| job.submitted).min().unwrap_or_default();
        let last = all.iter().map(|job| job.ended).max().unwrap_or_default();
        let slot_time = &run.slot_time;
        let share = |kind: usize| match slot_time.capacity[kind] {
            0 => 0.0,
            capacity => slot_time.busy[kind] as f64 / capacity as f64,
        };
    }
}

fields! {
    /// The metrics of one class of jobs.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ClassSummary {
        /// Jobs that ended.
        pub jobs: u64 = jobs.len() as u64,
        /// From submission to end.
        pub sojourn: Spread = Spread::of(jobs.iter().map(|job| seconds(job.sojourn().0))),
        /// Sojourn time divided by the run time alone.
        pub slowdown: Spread = Spread::of(jobs.iter().map(|job| job.slowdown())),
        /// From the end of a job's maps to its first reduce.
        pub reduce_wait: Spread = Spread::of(with_reduces.map(|job| seconds(job.reduce_wait.0))),
        /// Slot time of lost work.
        pub wasted: f64 = jobs.iter().map(|job| seconds(job.wasted.0)).sum(),
        pub preemptions: Preemptions = preemptions,
        /// Jobs that missed their deadline.
        pub missed: u64 = jobs.iter().filter(|job| job.missed()).count() as u64,
    }

    fn of(jobs: &[&JobResult]) {
        let with_reduces = jobs.iter().filter(|job| job.tasks[1] > 0);
        let mut preemptions = Preemptions::default();
        for job in jobs {
            preemptions.suspend += job.preemptions.suspend;
            preemptions.checkpoint += job.preemptions.checkpoint;
            preemptions.kill += job.preemptions.kill;
        }
    }
}

/// Returns the slots held by a job over time for a plot, as (seconds, slots).
pub fn allocation_of(run: &Run, job: &JobResult, kind: TaskKind) -> Vec<(f64, u32)> {
    run.allocation.levels(job.job, kind).into_iter().map(|(time, slots)| (seconds(time.0), slots)).collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
