//! What a simulated job is made of: its tasks with their exact work, and all that a policy may know of it.
//!
//! Owns the plain data between workloads and the simulation. Does not own where it comes from nor how it
//! runs.

use std::collections::VecDeque;
use std::sync::Arc;

use napreduce_engine::{Span, TaskKind, Time, fields};
use serde::{Deserialize, Serialize};

fields! {
    /// A job to be simulated.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SimulatedJob {
        /// Its name, by which triggers and reports refer to it.
        pub name: Arc<str> = name.into(),
        pub user: Arc<str> = "user".into(),
        /// The queue it goes to.
        pub queue: Arc<str> = "default".into(),
        /// A label under which results are grouped.
        pub class: Arc<str> = "".into(),
        /// Higher is more important.
        pub priority: i32,
        /// When it is submitted; of no meaning for a job that is submitted by a trigger.
        pub submit: Time = submit,
        /// How long after its submission it should be done, if that matters.
        pub deadline: Option<Span>,
        /// The jobs that are submitted one after another when it has ended well, and when the last
        /// should be done.
        pub followed_by: Option<Box<Followers>>,
        /// It is one of a chain.
        pub is_chained: bool,
        /// Its map tasks in order.
        pub maps: Vec<SimulatedMap>,
        /// Its reduce tasks in order; none makes it map-only.
        pub reduces: Vec<SimulatedReduce>,
        /// Reduces become eligible when this many thousandths of the maps are done.
        pub slowstart_permille: u32 = 1000,
        /// How often a task may fail before the job does.
        pub attempts_max: u32 = 4,
        /// Memory of one of its tasks in bytes: what a suspend may swap and a checkpoint writes.
        pub memory: u64,
        /// The kinds of its tasks that cannot be checkpointed.
        pub unsaved: Vec<TaskKind>,
    }

    /// A job without tasks that is submitted at a time, with the defaults of everything else: no deadline,
    /// priority 0, reduces after the last map, four attempts for each task.
    pub fn new(name: impl Into<Arc<str>>, submit: Time);
}

/// The rest of a chain of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followers {
    /// In their order; their times of submission and deadlines are of no meaning.
    pub jobs: VecDeque<SimulatedJob>,
    /// How long after the submission of the job that they follow the last of them should be done.
    pub deadline: Option<Span>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedMap {
    /// How long it works.
    pub work: Span,
    /// Bytes of input; zero where they do not matter, and progress is then told in microseconds of work.
    pub bytes: u64,
    /// Bytes it writes for the reduces.
    pub output_bytes: u64,
    /// The machines that hold its input, from 0.
    pub preferred: Vec<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedReduce {
    /// How long it fetches map outputs, were they all there; the share of each map is the same.
    pub shuffle: Span,
    /// How long it works on them.
    pub reduce: Span,
    /// Bytes of input; zero where they do not matter.
    pub bytes: u64,
}

impl SimulatedJob {
    /// The same with this many more maps of so much work each.
    #[must_use]
    pub fn with_maps(mut self, count: u32, work: Span) -> SimulatedJob {
        self.maps.extend((0..count).map(|_| SimulatedMap { work, ..SimulatedMap::default() }));
        self
    }

    /// The same with this many more reduces of so much work each.
    #[must_use]
    pub fn with_reduces(mut self, count: u32, shuffle: Span, reduce: Span) -> SimulatedJob {
        self.reduces.extend((0..count).map(|_| SimulatedReduce { shuffle, reduce, bytes: 0 }));
        self
    }

    pub fn tasks(&self, kind: TaskKind) -> usize {
        match kind {
            TaskKind::Map => self.maps.len(),
            TaskKind::Reduce => self.reduces.len(),
        }
    }

    /// The work of one of its tasks, in microseconds.
    pub fn work_of(&self, kind: TaskKind, index: u32) -> u64 {
        match kind {
            TaskKind::Map => self.maps[index as usize].work.0,
            TaskKind::Reduce => self.reduces[index as usize].work().0,
        }
    }

    pub fn work(&self, kind: TaskKind) -> Span {
        match kind {
            TaskKind::Map => self.maps.iter().fold(Span(0), |sum, task| sum + task.work),
            TaskKind::Reduce => self.reduces.iter().fold(Span(0), |sum, task| sum + task.work()),
        }
    }
}

impl SimulatedReduce {
    pub fn work(&self) -> Span {
        self.shuffle + self.reduce
    }
}
