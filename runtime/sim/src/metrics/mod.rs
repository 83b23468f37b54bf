//! What is told of runs: means and percentiles, by class, and how sure they are over several runs.
//!
//! Owns plain, serialisable summaries. Does not own tables, plots or files: who shows them does.

mod confidence;
mod percentile;

pub use confidence::{ConfidenceInterval, confidence};
pub use percentile::{Spread, ecdf};

use std::collections::BTreeMap;

use napreduce_engine::{TaskKind, fields};
use serde::{Deserialize, Serialize};

use crate::run::{Ending, JobResult, Preemptions, Run};

fields! {
    /// A run in numbers. Times in seconds.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct RunSummary {
        /// Jobs that ended, all of them.
        pub jobs: u64 = whole.jobs,
        /// Of them, those that failed or were killed.
        pub failed: u64 = all.iter().filter(|job| job.ending != Ending::Succeeded).count() as u64,
        /// Jobs that did not end.
        pub unfinished: u64 = run.unfinished as u64,
        /// From submission to end.
        pub sojourn: Spread = whole.sojourn,
        /// Sojourn in relation to the time alone.
        pub slowdown: Spread = whole.slowdown,
        /// From the first submission to the last end.
        pub makespan: f64 = seconds(last.since(first).0),
        /// Slot time of work that counted.
        pub useful: f64 = seconds(books.useful),
        /// Slot time of work that was lost.
        pub wasted: f64 = seconds(books.wasted),
        /// Slot time of work that a suspend or a checkpoint kept.
        pub saved: f64 = seconds(books.saved),
        /// Slot time of reduces that waited for maps.
        pub waiting: f64 = seconds(books.waiting),
        /// Slot time of everything else: starting, stopping, orders on their way.
        pub overhead: f64 = seconds(books.overhead()),
        /// How often attempts were preempted, by what was done to them.
        pub preemptions: Preemptions = whole.preemptions,
        /// From the end of a job's maps to its first reduce, of jobs with reduces.
        pub reduce_wait: Spread = whole.reduce_wait,
        /// The share of map slot time that was held, and of reduce slot time.
        pub utilisation: [f64; 2] = [share(0), share(1)],
        /// Jobs with a deadline.
        pub deadlines: u64 = all.iter().filter(|job| job.deadline.is_some()).count() as u64,
        /// Of them, those that were not done by then.
        pub missed: u64 = whole.missed,
        /// Launches of maps whose input some machine holds.
        pub placed_maps: u64 = run.placed_maps,
        /// Of them, those on such a machine, and those on another one of its rack, where there are several
        /// racks.
        pub local_maps: u64 = run.local_maps,
        pub rack_maps: u64 = run.rack_maps,
        /// Events handed to the engine.
        pub events: u64 = run.events,
        /// The same for each class of jobs.
        pub classes: BTreeMap<String, ClassSummary> =
            by_class.into_iter().map(|(class, jobs)| (class.to_owned(), ClassSummary::of(&jobs))).collect(),
    }

    /// The numbers of a run.
    pub fn of(run: &Run) {
        let all: Vec<&JobResult> = run.jobs.iter().collect();
        let whole = ClassSummary::of(&all);
        let mut by_class: BTreeMap<&str, Vec<&JobResult>> = BTreeMap::new();
        for job in &all {
            by_class.entry(&job.class).or_default().push(job);
        }
        let first = all.iter().map(|job| job.submitted).min().unwrap_or_default();
        let last = all.iter().map(|job| job.ended).max().unwrap_or_default();
        let books = &run.books;
        let share = |kind: usize| match books.capacity[kind] {
            0 => 0.0,
            capacity => books.busy[kind] as f64 / capacity as f64,
        };
    }
}

fields! {
    /// The jobs of one class.
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    pub struct ClassSummary {
        /// How many ended.
        pub jobs: u64 = jobs.len() as u64,
        /// From submission to end.
        pub sojourn: Spread = Spread::of(jobs.iter().map(|job| seconds(job.sojourn().0))),
        /// Sojourn in relation to the time alone.
        pub slowdown: Spread = Spread::of(jobs.iter().map(|job| job.slowdown())),
        /// From the end of a job's maps to its first reduce, of jobs with reduces.
        pub reduce_wait: Spread = Spread::of(with_reduces.map(|job| seconds(job.reduce_wait.0))),
        /// Slot time of work that was lost.
        pub wasted: f64 = jobs.iter().map(|job| seconds(job.wasted.0)).sum(),
        /// How often attempts were preempted.
        pub preemptions: Preemptions = preemptions,
        /// Jobs that were not done by their deadline.
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

/// Slots held by one job over time, for a plot: from when in seconds, and how many.
pub fn allocation_of(run: &Run, job: &JobResult, kind: TaskKind) -> Vec<(f64, u32)> {
    run.allocation.levels(job.job, kind).into_iter().map(|(time, slots)| (seconds(time.0), slots)).collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
