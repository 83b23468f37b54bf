//! What is told of runs: means and percentiles, by class, and how sure they are over several runs.
//!
//! Owns plain, serialisable summaries. Does not own tables, plots or files: who shows them does.

mod confidence;
mod percentile;

pub use confidence::{ConfidenceInterval, confidence};
pub use percentile::{Spread, ecdf};

use std::collections::BTreeMap;

use napreduce_core::TaskKind;
use serde::{Deserialize, Serialize};

use crate::run::{Ending, JobResult, Preemptions, Run};

/// A run in numbers. Times in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Jobs that ended, all of them.
    pub jobs: u64,
    /// Of them, those that failed or were killed.
    pub failed: u64,
    /// Jobs that did not end.
    pub unfinished: u64,
    /// From submission to end.
    pub sojourn: Spread,
    /// Sojourn in relation to the time alone.
    pub slowdown: Spread,
    /// From the first submission to the last end.
    pub makespan: f64,
    /// Slot time of work that counted.
    pub useful: f64,
    /// Slot time of work that was lost.
    pub wasted: f64,
    /// Slot time of work that a suspend or a checkpoint kept.
    pub saved: f64,
    /// Slot time of reduces that waited for maps.
    pub waiting: f64,
    /// Slot time of everything else: starting, stopping, orders on their way.
    pub overhead: f64,
    /// How often attempts were preempted, by what was done to them.
    pub preemptions: Preemptions,
    /// From the end of a job's maps to its first reduce, of jobs with reduces.
    pub reduce_wait: Spread,
    /// The share of map slot time that was held, and of reduce slot time.
    pub utilisation: [f64; 2],
    /// Jobs with a deadline.
    pub deadlines: u64,
    /// Of them, those that were not done by then.
    pub missed: u64,
    /// Launches of maps whose input some machine holds.
    pub placed_maps: u64,
    /// Of them, those on such a machine, and those on another one of its rack, where there are several racks.
    pub local_maps: u64,
    pub rack_maps: u64,
    /// Events handed to the engine.
    pub events: u64,
    /// The same for each class of jobs.
    pub classes: BTreeMap<String, ClassSummary>,
}

/// The jobs of one class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassSummary {
    /// How many ended.
    pub jobs: u64,
    /// From submission to end.
    pub sojourn: Spread,
    /// Sojourn in relation to the time alone.
    pub slowdown: Spread,
    /// From the end of a job's maps to its first reduce, of jobs with reduces.
    pub reduce_wait: Spread,
    /// Slot time of work that was lost.
    pub wasted: f64,
    /// How often attempts were preempted.
    pub preemptions: Preemptions,
    /// Jobs that were not done by their deadline.
    pub missed: u64,
}

impl RunSummary {
    /// The numbers of a run.
    pub fn of(run: &Run) -> RunSummary {
        let all: Vec<&JobResult> = run.jobs.iter().collect();
        let whole = class_of(&all);
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
        RunSummary {
            jobs: whole.jobs,
            failed: all.iter().filter(|job| job.ending != Ending::Succeeded).count() as u64,
            unfinished: run.unfinished as u64,
            sojourn: whole.sojourn,
            slowdown: whole.slowdown,
            makespan: seconds(last.since(first).0),
            useful: seconds(books.useful),
            wasted: seconds(books.wasted),
            saved: seconds(books.saved),
            waiting: seconds(books.waiting),
            overhead: seconds(books.overhead()),
            preemptions: whole.preemptions,
            reduce_wait: whole.reduce_wait,
            utilisation: [share(0), share(1)],
            deadlines: all.iter().filter(|job| job.deadline.is_some()).count() as u64,
            missed: whole.missed,
            placed_maps: run.placed_maps,
            local_maps: run.local_maps,
            rack_maps: run.rack_maps,
            events: run.events,
            classes: by_class.into_iter().map(|(class, jobs)| (class.to_owned(), class_of(&jobs))).collect(),
        }
    }
}

fn class_of(jobs: &[&JobResult]) -> ClassSummary {
    let with_reduces = jobs.iter().filter(|job| job.tasks[1] > 0);
    let mut preemptions = Preemptions::default();
    for job in jobs {
        preemptions.suspend += job.preemptions.suspend;
        preemptions.checkpoint += job.preemptions.checkpoint;
        preemptions.kill += job.preemptions.kill;
    }
    ClassSummary {
        jobs: jobs.len() as u64,
        sojourn: Spread::of(jobs.iter().map(|job| seconds(job.sojourn().0))),
        slowdown: Spread::of(jobs.iter().map(|job| job.slowdown())),
        reduce_wait: Spread::of(with_reduces.map(|job| seconds(job.reduce_wait.0))),
        wasted: jobs.iter().map(|job| seconds(job.wasted.0)).sum(),
        preemptions,
        missed: jobs.iter().filter(|job| job.missed()).count() as u64,
    }
}

/// Slots held by one job over time, for a plot: from when in seconds, and how many.
pub fn allocation_of(run: &Run, job: &JobResult, kind: TaskKind) -> Vec<(f64, u32)> {
    run.allocation.levels(job.job, kind).into_iter().map(|(time, slots)| (seconds(time.0), slots)).collect()
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
