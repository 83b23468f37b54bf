//! What came of a run: the result of each job, the books, and why a run can fail.
//!
//! Owns plain data. Does not own means and percentiles: `metrics` does.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use napreduce_engine::{JobId, Judged, Primitive, Span, Tally, TaskKind, Time, fields};
use serde::{Deserialize, Serialize};

use crate::alone::alone;
use crate::books::{Books, BooksError};
use crate::job::SimulatedJob;
use crate::settings::SimulationSettings;

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The jobs that ended, in the order of their ends.
    pub jobs: Vec<JobResult>,
    /// Where slot time went.
    pub books: Books,
    /// Events handed to the engine.
    pub events: u64,
    /// The most events of one instant.
    pub busiest_instant: u64,
    pub ended: Time,
    pub machines_lost: u32,
    /// How often the engine ignored something.
    pub warnings: u64,
    /// The last such case.
    pub last_warning: Option<String>,
    /// Jobs that had not ended when the run was cut off.
    pub unfinished: usize,
    /// The names of those of them that hold or want slots, in the order of their submission.
    pub unfinished_names: Vec<Arc<str>>,
    /// Jobs that wait for a trigger that never came.
    pub never_submitted: Vec<String>,
    /// Bytes of suspended attempts that were paged out for others.
    pub paged_out: u64,
    /// Launches of maps at a machine that holds their input, and all of those whose input some machine holds.
    pub local_maps: u64,
    pub placed_maps: u64,
    /// What primitives that were chosen by their costs were expected to cost, and did.
    pub judged: BTreeMap<Primitive, Judged>,
    /// Those at another machine of a rack that has it, where there are several racks.
    pub rack_maps: u64,
    /// What the engine counted.
    pub tally: Tally,
    /// Slots held by each job over time, when that was asked for.
    pub allocation: Allocation,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Every task was done.
    Succeeded,
    /// A task failed too often.
    Failed,
    Killed,
}

/// How often attempts gave up a slot, by what was done to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemptions {
    /// Stopped where they were.
    pub suspend: u64,
    /// Saved and ended.
    pub checkpoint: u64,
    pub kill: u64,
}

fields! {
    /// What came of a job.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct JobResult {
        pub job: JobId = job,
        pub name: Arc<str> = plan.name.clone(),
        pub class: Arc<str> = plan.class.clone(),
        pub submitted: Time = now,
        pub ended: Time = now,
        pub ending: Ending = Ending::Succeeded,
        /// When it should have been done; of a chain only the last has to be by a time.
        pub deadline: Option<Time> =
            plan.deadline.filter(|_| plan.followed_by.is_none()).map(|span| now + span),
        /// When an attempt of it first worked, and when one last did.
        pub worked: Option<(Time, Time)>,
        /// How long it would have taken alone on the same machines.
        pub alone: Span = alone(plan, settings),
        /// The work of its tasks.
        pub work: Span = plan.work(TaskKind::Map) + plan.work(TaskKind::Reduce),
        /// How many maps and reduces it has.
        pub tasks: [u32; 2] = [plan.maps.len() as u32, plan.reduces.len() as u32],
        /// From its last map to the first slot of a reduce; zero if that came before.
        pub reduce_wait: Span,
        /// What its reduces were without a slot after its last map, all of them together: before they had
        /// one, and while they were preempted.
        pub reduces_waited: Span,
        /// The slot time of its reduces, and what of it they waited for maps.
        pub reduces_held: Span,
        pub reduces_idle: Span,
        /// How often its attempts were preempted.
        pub preemptions: Preemptions,
        /// Its work that was lost.
        pub wasted: Span,
    }

    pub(crate) fn begin(job: JobId, plan: &SimulatedJob, now: Time, settings: &SimulationSettings);
}

impl JobResult {
    /// From its submission to its end.
    pub fn sojourn(&self) -> Span {
        self.ended.since(self.submitted)
    }

    /// Its sojourn in relation to the time it would have taken alone.
    pub fn slowdown(&self) -> f64 {
        if self.alone.0 == 0 { 1.0 } else { self.sojourn().0 as f64 / self.alone.0 as f64 }
    }

    /// Whether it had a deadline and was not done by then.
    pub fn missed(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.ended > deadline || self.ending != Ending::Succeeded)
    }
}

impl Run {
    /// The first job of a name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        self.jobs.iter().find(|job| &*job.name == name)
    }
}

/// How many slots each job held, as steps in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// The steps in the order of time.
    pub steps: Vec<AllocationStep>,
}

/// One job holds more or fewer slots from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationStep {
    /// From when.
    pub time: Time,
    pub job: JobId,
    pub kind: TaskKind,
    /// How many more.
    pub change: i32,
}

impl Allocation {
    pub(crate) fn change(&mut self, time: Time, job: JobId, kind: TaskKind, change: i32) {
        // Steps of one instant are one step, as long as they follow each other.
        if let Some(last) = self.steps.last_mut()
            && (last.time, last.job, last.kind) == (time, job, kind)
        {
            last.change += change;
            return;
        }
        self.steps.push(AllocationStep { time, job, kind, change });
    }

    /// The steps of one job and kind: from when it held how many.
    pub fn levels(&self, job: JobId, kind: TaskKind) -> Vec<(Time, u32)> {
        let mut levels: Vec<(Time, u32)> = Vec::new();
        let mut level = 0_i64;
        for step in self.steps.iter().filter(|step| step.job == job && step.kind == kind) {
            level += i64::from(step.change);
            let now = u32::try_from(level).unwrap_or(0);
            match levels.last_mut() {
                Some(last) if last.0 == step.time => last.1 = now,
                _ => levels.push((step.time, now)),
            }
        }
        levels.dedup_by_key(|(_, level)| *level);
        levels
    }
}

/// A job, as an error names it.
fn named(first: Option<JobId>) -> String {
    first.map_or(String::new(), |job| format!(" (the first is {job})"))
}

impl SimulationError {
    /// Whether numbers of the workload or the options are to blame.
    pub fn is_of_input(&self) -> bool {
        matches!(
            self,
            SimulationError::NoRoom { .. }
                | SimulationError::JobTooLong { .. }
                | SimulationError::TooLong { .. }
                | SimulationError::OutOfOrder { .. }
        )
    }
}

/// Why a simulation cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Nothing will ever happen again, but there is work.
    #[error(
        "nothing happens after {at}, but {jobs} jobs have not ended{}; {slots}; see whether there are slots of both \
         kinds, and whether the policy gives them to every job", named(*first)
    )]
    Stalled {
        /// Since when.
        at: Time,
        /// How many have not ended.
        jobs: usize,
        first: Option<JobId>,
        /// What holds them.
        slots: String,
    },
    /// One instant never ends.
    #[error(
        "{at} never ends: after {rounds} rounds of events and orders the policy still takes and gives slots; its order of \
         jobs and its choice of victims do not agree"
    )]
    Thrashing {
        at: Time,
        /// How often it was gone through.
        rounds: u32,
    },
    #[error(
        "no end is in sight at {at}: {why}; {jobs} jobs have not ended{}; {slots}; for a look, end the run before that \
         with --until and have --events written", named(*first)
    )]
    Endless {
        /// When it was given up.
        at: Time,
        /// What it is judged by.
        why: String,
        /// How many have not ended.
        jobs: usize,
        first: Option<JobId>,
        /// What holds them.
        slots: String,
    },
    /// The policy wants to be woken for a time that is over, or again and again for nothing.
    #[error("at {at} the policy would keep the clock from going on: {said}")]
    Untimely {
        at: Time,
        /// What the engine says.
        said: String,
    },
    /// The workload goes back in time.
    #[error("a job is to be submitted at {at}, after one at {after}; sort the workload by submit time")]
    OutOfOrder {
        /// When the later job is to be submitted.
        at: Time,
        /// The time of the one before it.
        after: Time,
    },
    /// A queue whose masters would hold all that it may have.
    #[error(
        "{job} cannot run: queue {queue} may have {most} containers, and a job needs one for its master and one for its \
         tasks; raise its maximum, or give more containers"
    )]
    NoRoom { job: Arc<str>, queue: String, most: u64 },
    #[error(
        "{job}: its longest task takes {} and all of them {}; give at most ten years to a task and 30,000 years to a job",
        longest.to_text(), all.to_text()
    )]
    JobTooLong { job: Arc<str>, longest: Span, all: Span },
    /// Times that slot time cannot be counted up to.
    #[error(
        "nothing happens before {at}, and with so many slots times are counted up to {last}; give shorter times"
    )]
    TooLong { at: Time, last: Time },
    /// A trigger names a job that the workload does not have, or that was submitted before.
    #[error(
        "a trigger submits {name}, but no job of that name waits for a trigger; mark it with submit = \"trigger\""
    )]
    NoSuchJob { name: String },
    #[error("the engine speaks of {job}, which is not there; this is a bug in napreduce")]
    UnknownJob { job: JobId },
    /// The sums do not agree.
    #[error(transparent)]
    Books(#[from] BooksError),
    #[error("the event log cannot be written: {0}")]
    Log(#[from] io::Error),
    /// The history of a job cannot be kept.
    #[error("the recording cannot be written: {0}")]
    Recording(io::Error),
}
