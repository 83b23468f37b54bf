//! A simulated job: its tasks with their exact work, and everything that a policy may know about it.

use std::collections::VecDeque;
use std::sync::Arc;

use napreduce_engine::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// A job to simulate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedJob {
    /// The name in triggers and reports.
    pub name: Arc<str>,
    pub user: Arc<str>,
    pub queue: Arc<str>,
    /// A label by which results are grouped.
    pub class: Arc<str>,
    pub priority: i32,
    /// Ignored for jobs submitted by a trigger.
    pub submit: Time,
    /// Relative to the submission.
    pub deadline: Option<Span>,
    /// The jobs of its chain that follow it, submitted when it succeeds.
    pub followed_by: Option<Box<Followers>>,
    /// Whether it is part of a chain.
    pub is_chained: bool,
    pub maps: Vec<SimulatedMap>,
    /// Empty for a map-only job.
    pub reduces: Vec<SimulatedReduce>,
    /// Fraction of maps, in thousandths, that must be done before reduces start.
    pub slowstart_permille: u32,
    /// Failures of one task until the job fails.
    pub attempts_max: u32,
    /// Memory of a task in bytes: swapped by a suspend, written by a checkpoint.
    pub memory: u64,
    /// Task kinds that cannot be checkpointed.
    pub unsaved: Vec<TaskKind>,
}

impl SimulatedJob {
    /// Creates a job without tasks, with defaults: no deadline, priority 0, reduces after the last map, four
    /// attempts per task.
    pub fn new(name: impl Into<Arc<str>>, submit: Time) -> SimulatedJob {
        SimulatedJob {
            name: name.into(),
            user: "user".into(),
            queue: "default".into(),
            class: "".into(),
            priority: 0,
            submit,
            deadline: None,
            followed_by: None,
            is_chained: false,
            maps: Vec::new(),
            reduces: Vec::new(),
            slowstart_permille: 1000,
            attempts_max: 4,
            memory: 0,
            unsaved: Vec::new(),
        }
    }
}

/// The rest of a chain of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followers {
    /// In order; their submit times and deadlines are ignored.
    pub jobs: VecDeque<SimulatedJob>,
    /// Deadline of the last one, relative to the submission of the job that they follow.
    pub deadline: Option<Span>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedMap {
    pub work: Span,
    /// Input bytes. If zero, progress is reported in microseconds of work.
    pub bytes: u64,
    /// Output bytes for the reduces.
    pub output_bytes: u64,
    /// Machines that hold its input, from 0.
    pub preferred: Vec<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedReduce {
    /// Time to fetch the outputs of all maps, in equal shares.
    pub shuffle: Span,
    /// Time to process them.
    pub reduce: Span,
    /// Input bytes; zero if unknown.
    pub bytes: u64,
}

impl SimulatedJob {
    /// Adds maps of equal work.
    #[must_use]
    pub fn with_maps(mut self, count: u32, work: Span) -> SimulatedJob {
        self.maps.extend((0..count).map(|_| SimulatedMap {
            work,
            ..SimulatedMap::default()
        }));
        self
    }

    /// Adds reduces of equal work.
    #[must_use]
    pub fn with_reduces(mut self, count: u32, shuffle: Span, reduce: Span) -> SimulatedJob {
        self.reduces.extend((0..count).map(|_| SimulatedReduce {
            shuffle,
            reduce,
            bytes: 0,
        }));
        self
    }

    pub fn tasks(&self, kind: TaskKind) -> usize {
        match kind {
            TaskKind::Map => self.maps.len(),
            TaskKind::Reduce => self.reduces.len(),
        }
    }

    /// Returns the work of one task in microseconds.
    pub fn work_of(&self, kind: TaskKind, index: u32) -> u64 {
        match kind {
            TaskKind::Map => self.maps[index as usize].work.0,
            TaskKind::Reduce => self.reduces[index as usize].work().0,
        }
    }

    pub fn work(&self, kind: TaskKind) -> Span {
        match kind {
            TaskKind::Map => self.maps.iter().fold(Span(0), |sum, task| sum + task.work),
            TaskKind::Reduce => self
                .reduces
                .iter()
                .fold(Span(0), |sum, task| sum + task.work()),
        }
    }
}

impl SimulatedReduce {
    pub fn work(&self) -> Span {
        self.shuffle + self.reduce
    }
}
