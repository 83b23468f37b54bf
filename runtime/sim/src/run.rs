//! The result of a simulation: jobs, slot time, and the errors that can end a run.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use napreduce_engine::{JobId, Judged, Primitive, Span, Tally, TaskKind, Time};
use serde::{Deserialize, Serialize};

use crate::alone::alone;
use crate::job::SimulatedJob;
use crate::settings::SimulationSettings;
use crate::slot_time::{SlotTime, SlotTimeError};

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Jobs that ended, in order of their ends.
    pub jobs: Vec<JobResult>,
    pub slot_time: SlotTime,
    /// Events handled by the engine.
    pub events: u64,
    /// Maximum events at one instant.
    pub busiest_instant: u64,
    pub ended: Time,
    pub machines_lost: u32,
    /// Number of engine warnings.
    pub warnings: u64,
    pub last_warning: Option<String>,
    /// Jobs that had not ended when the run was cut off.
    pub unfinished: usize,
    /// Names of those with slots or demand, in order of submission.
    pub unfinished_names: Vec<Arc<str>>,
    /// Jobs whose trigger never fired.
    pub never_submitted: Vec<String>,
    /// Bytes of suspended attempts paged out for others.
    pub paged_out: u64,
    /// Launches of maps on a machine with their input, and launches of maps with a known input location.
    pub local_maps: u64,
    pub placed_maps: u64,
    /// Expected and actual costs of the primitives chosen by cost.
    pub judged: BTreeMap<Primitive, Judged>,
    /// Launches on another machine of the input's rack, if there are several racks.
    pub rack_maps: u64,
    /// The engine's counters.
    pub tally: Tally,
    /// Slots held by each job over time, if recorded.
    pub allocation: Allocation,
}

/// The outcome of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// All tasks completed.
    Succeeded,
    /// A task exceeded its attempts.
    Failed,
    Killed,
}

/// Preemptions by primitive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preemptions {
    pub suspend: u64,
    pub checkpoint: u64,
    pub kill: u64,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    pub job: JobId,
    pub name: Arc<str>,
    pub class: Arc<str>,
    pub submitted: Time,
    pub ended: Time,
    pub ending: Ending,
    /// For a chain, only the last job has a deadline.
    pub deadline: Option<Time>,
    /// First and last time at which an attempt was working.
    pub worked: Option<(Time, Time)>,
    /// Run time alone on the same cluster.
    pub alone: Span,
    /// Total work of its tasks.
    pub work: Span,
    /// Number of maps and reduces.
    pub tasks: [u32; 2],
    /// From its last map to the first slot of a reduce; zero if that came earlier.
    pub reduce_wait: Span,
    /// Total time that its reduces were without a slot after the last map: before their launch and while
    /// preempted.
    pub reduces_waited: Span,
    /// Slot time of its reduces, and the part spent waiting for maps.
    pub reduces_held: Span,
    pub reduces_idle: Span,
    pub preemptions: Preemptions,
    /// Lost work.
    pub wasted: Span,
}

impl JobResult {
    pub(crate) fn begin(
        job: JobId,
        plan: &SimulatedJob,
        now: Time,
        settings: &SimulationSettings,
    ) -> JobResult {
        JobResult {
            job,
            name: plan.name.clone(),
            class: plan.class.clone(),
            submitted: now,
            ended: now,
            ending: Ending::Succeeded,
            deadline: plan
                .deadline
                .filter(|_| plan.followed_by.is_none())
                .map(|span| now + span),
            worked: None,
            alone: alone(plan, settings),
            work: plan.work(TaskKind::Map) + plan.work(TaskKind::Reduce),
            tasks: [plan.maps.len() as u32, plan.reduces.len() as u32],
            reduce_wait: Span::default(),
            reduces_waited: Span::default(),
            reduces_held: Span::default(),
            reduces_idle: Span::default(),
            preemptions: Preemptions::default(),
            wasted: Span::default(),
        }
    }
}

impl JobResult {
    /// Returns the time from submission to end.
    pub fn sojourn(&self) -> Span {
        self.ended.since(self.submitted)
    }

    /// Returns the sojourn time divided by the run time alone; `None` if that is zero.
    pub fn slowdown(&self) -> Option<f64> {
        if self.alone.0 == 0 {
            return None;
        }
        Some(self.sojourn().0 as f64 / self.alone.0 as f64)
    }

    /// Whether it missed its deadline.
    pub fn missed(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| self.ended > deadline || self.ending != Ending::Succeeded)
    }
}

impl Run {
    /// Returns the first job of a name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        self.jobs.iter().find(|job| &*job.name == name)
    }
}

/// Slots held by each job, as steps over time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// In time order.
    pub steps: Vec<AllocationStep>,
}

/// A change of the slots held by a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationStep {
    pub time: Time,
    pub job: JobId,
    pub kind: TaskKind,
    /// Positive for additional slots.
    pub change: i32,
}

impl Allocation {
    pub(crate) fn change(&mut self, time: Time, job: JobId, kind: TaskKind, change: i32) {
        // Merges consecutive steps of one instant.
        if let Some(last) = self.steps.last_mut()
            && (last.time, last.job, last.kind) == (time, job, kind)
        {
            last.change += change;
            return;
        }
        self.steps.push(AllocationStep {
            time,
            job,
            kind,
            change,
        });
    }

    /// Returns the slots held by one job and kind, as (start, count).
    pub fn levels(&self, job: JobId, kind: TaskKind) -> Vec<(Time, u32)> {
        let mut levels: Vec<(Time, u32)> = Vec::new();
        let mut level = 0_i64;
        for step in self
            .steps
            .iter()
            .filter(|step| step.job == job && step.kind == kind)
        {
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

/// Formats the first unfinished job of an error.
fn first_job(first: Option<JobId>) -> String {
    first.map_or(String::new(), |job| format!(" (the first is {job})"))
}

impl SimulationError {
    /// Whether the input (workload or options) caused the error.
    pub fn is_input_error(&self) -> bool {
        matches!(
            self,
            SimulationError::NoRoom { .. }
                | SimulationError::JobTooLong { .. }
                | SimulationError::TooLong { .. }
                | SimulationError::OutOfOrder { .. }
        )
    }
}

/// The reason why a simulation fails.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// There are unfinished jobs, but no further events.
    #[error(
        "no events after {at}, but {jobs} jobs have not ended{}; {slots}; check that there are slots of both \
         kinds and that the policy assigns them to every job", first_job(*first)
    )]
    Stalled {
        at: Time,
        jobs: usize,
        first: Option<JobId>,
        /// A summary of held slots.
        slots: String,
    },
    /// Tasks of a kind wait, and there is no slot of that kind.
    #[error(
        "{job} has {kind}s to run at {at}, but the cluster has no {kind} slots; give its machines some with \
         --{kind}-slots, or {kind}-slots in the workload"
    )]
    NoSlots {
        at: Time,
        job: JobId,
        kind: TaskKind,
    },
    /// The policy livelocks at one instant.
    #[error(
        "livelock at {at}: after {rounds} rounds of events and orders the policy still moves slots; its order of \
         jobs and its choice of victims are inconsistent"
    )]
    Thrashing { at: Time, rounds: u32 },
    #[error(
        "no progress at {at}: {why}; {jobs} jobs have not ended{}; {slots}; to investigate, stop earlier with --until \
         and write --events", first_job(*first)
    )]
    Endless {
        at: Time,
        /// The evidence.
        why: String,
        jobs: usize,
        first: Option<JobId>,
        /// A summary of held slots.
        slots: String,
    },
    /// The policy requests a wakeup in the past, or repeatedly without effect.
    #[error("the policy prevents the clock from advancing at {at}: {message}")]
    Untimely { at: Time, message: String },
    /// The workload is not sorted by submit time.
    #[error("a job at {at} follows one at {after}; sort the workload by submit time")]
    OutOfOrder { at: Time, after: Time },
    /// The masters of a queue would hold all its containers.
    #[error(
        "{job} cannot run: the maximum of queue {queue} is {most} containers, but a job needs one for its master and one for its \
         tasks; raise the maximum, or add containers"
    )]
    NoRoom {
        job: Arc<str>,
        queue: String,
        most: u64,
    },
    #[error(
        "{job}: its longest task takes {} and all tasks {} (limit 10 years per task, 30,000 years per job)",
        longest.to_text(), all.to_text()
    )]
    JobTooLong {
        job: Arc<str>,
        longest: Span,
        all: Span,
    },
    /// Slot time would overflow.
    #[error(
        "the next event is at {at}, beyond the maximum time for this number of slots ({last}); use shorter times"
    )]
    TooLong { at: Time, last: Time },
    /// A trigger names an unknown job, or one that was already submitted.
    #[error(
        "a trigger submits {name}, but no such job waits for a trigger; mark it with submit = \"trigger\""
    )]
    NoSuchJob { name: String },
    #[error("the engine refers to unknown job {job}; this is a bug in napreduce")]
    UnknownJob { job: JobId },
    /// An accounting identity does not hold.
    #[error(transparent)]
    SlotTime(#[from] SlotTimeError),
    #[error("cannot write the event log: {0}")]
    Log(#[from] io::Error),
    /// The history of a job cannot be written.
    #[error("cannot write the recording: {0}")]
    Recording(io::Error),
}
