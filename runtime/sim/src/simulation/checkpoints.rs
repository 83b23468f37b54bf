//! The size of checkpoints by phase, and the time to skip finished keys after a restore.

use napreduce_engine::{Span, TaskKind};

use super::Simulation;
use crate::settings::Cost;

/// A saved checkpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checkpoint {
    /// The worker that wrote it.
    pub worker: u32,
    /// Completed work of the task.
    pub done: u64,
}

/// Returns `whole * done / total`.
fn share(whole: u64, done: u64, total: u64) -> u64 {
    let share = u128::from(whole) * u128::from(done.min(total)) / u128::from(total.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

impl Simulation {
    /// Returns the size of the checkpoint that this attempt would write now, or started from.
    pub(super) fn checkpoint_bytes(&self, place: u32) -> u64 {
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        let plan = &self.jobs.at(task.job).plan;
        let Some(by_phase) = self.settings.overheads.checkpoint_by_phase else {
            return plan.memory;
        };
        if task.kind == TaskKind::Map {
            return plan.memory;
        }
        let bytes = plan.reduces[task.index as usize].bytes;
        if attempt.is_in_shuffle() {
            return share(bytes, attempt.done, attempt.shuffle).min(plan.memory);
        }
        let reduced = attempt.done - attempt.shuffle;
        let to_reduce = attempt.total - attempt.shuffle;
        let read = u128::from(share(bytes, reduced, to_reduce));
        let written = read * u128::from(by_phase.output_permille) / 1_000;
        u64::try_from(written).unwrap_or(u64::MAX)
    }

    /// Returns the time to skip the keys that are done.
    pub(super) fn skip_time(&self, place: u32) -> Span {
        let Some(by_phase) = self.settings.overheads.checkpoint_by_phase else {
            return Span(0);
        };
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        if task.kind == TaskKind::Map || attempt.done <= attempt.shuffle {
            return Span(0);
        }
        let bytes = self.jobs.at(task.job).plan.reduces[task.index as usize].bytes;
        let reduced = attempt.done - attempt.shuffle;
        let to_reduce = attempt.total - attempt.shuffle;
        let skipping = Cost {
            fixed: Span(0),
            bandwidth: by_phase.read_over,
        };
        skipping.of(share(bytes, reduced, to_reduce))
    }
}
