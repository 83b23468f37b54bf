//! The guard on runs that never end.
//!
//! Owns how long a finite workload may take in virtual time, and how often slots may be taken before a task
//! ends. Does not own why a policy goes on for ever: the message says how to see that.

use napreduce_core::{Record, Span, TaskKind, Time};

use super::Simulation;
use crate::job::SimulatedJob;
use crate::run::SimulationError;

/// A run may take so many times as long as all work would on one slot: under a policy that gives slots,
/// however often it takes them, it takes a fraction of that.
const TIMES: u64 = 100;
/// And so much longer in any case, for every job that comes.
const AT_LEAST: Span = Span::from_secs(3600);
/// So often slots may be taken before another task is done.
const TAKEN_MAX: u64 = 200_000;

/// What a run is held to.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// When it must have ended.
    horizon: Time,
    /// How often a slot was taken since the last task was done.
    taken: u64,
}

impl Guard {
    /// A record of the engine tells of work that was done, or given up.
    pub fn note(&mut self, record: &Record) {
        match record {
            Record::TaskDone(_) => self.taken = 0,
            Record::Suspended(_) | Record::Checkpointed(_) | Record::AttemptEnded(..) => self.taken += 1,
            _ => {}
        }
    }
}

impl Simulation {
    /// A job comes, and the run may take longer.
    pub(super) fn allow_for(&mut self, job: &SimulatedJob) {
        let overheads = &self.settings.overheads;
        let costs =
            [overheads.suspend, overheads.resume, overheads.checkpoint_write, overheads.checkpoint_read];
        let moved: u64 = costs.iter().map(|cost| cost.of(job.memory).0).sum();
        let input = overheads.remote_input.max(overheads.rack_input);
        let each = overheads.launch.0
            + overheads.master.0
            + input.0
            + overheads.heartbeat.0
            + overheads.kill.0
            + moved;
        let tasks = (job.maps.len() + job.reduces.len()) as u64;
        let work = job.work(TaskKind::Map).0 + job.work(TaskKind::Reduce).0;
        let alone = work.saturating_add(tasks.saturating_mul(each));
        let more = Span(alone.saturating_mul(TIMES)) + AT_LEAST;
        self.guard.horizon = self.guard.horizon.max(self.now) + more;
    }

    /// Whether there is an end in sight. Machines that are lost may hold a workload up for any time, and
    /// whoever said when the run is to be cut off knows how long it may take: the horizon is for the others.
    pub(super) fn look_for_end(&self) -> Result<(), SimulationError> {
        let cut = self.settings.until.is_some() || self.settings.failures.machine_mean.is_some();
        let why = if self.guard.taken > TAKEN_MAX {
            format!("slots were taken {TAKEN_MAX} times since a task was last done")
        } else if self.now > self.guard.horizon && self.jobs.running > 0 && !cut {
            format!("all work would have been done {TIMES} times by then, on a single slot")
        } else {
            return Ok(());
        };
        let first = self.engine.view().jobs().next().map(|job| job.id());
        Err(SimulationError::Endless { at: self.now, why, jobs: self.jobs.running, first })
    }
}
