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

/// Returns `of * done / total`.
fn share(of: u64, done: u64, total: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(done.min(total)) / u128::from(total.max(1)))
        .unwrap_or(u64::MAX)
}

impl Simulation {
    /// Returns the size of the checkpoint that this attempt would write now, or started from.
    pub(super) fn checkpoint_bytes(&mut self, place: u32) -> u64 {
        let by_phase = self.settings.overheads.checkpoint_by_phase;
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        let done = attempt.done;
        let shuffle = attempt.shuffle;
        let total = attempt.total;
        let plan = &self.jobs.at_mut(task.job).plan;
        match by_phase {
            Some(by_phase) if task.kind == TaskKind::Reduce => {
                let bytes = plan.reduces[task.index as usize].bytes;
                if done < shuffle {
                    return share(bytes, done, shuffle).min(plan.memory);
                }
                let read = u128::from(share(bytes, done - shuffle, total - shuffle));
                u64::try_from(read * u128::from(by_phase.output_permille) / 1_000)
                    .unwrap_or(u64::MAX)
            }
            _ => plan.memory,
        }
    }

    /// Returns the time to skip the keys that are done.
    pub(super) fn skip_time(&mut self, place: u32) -> Span {
        let rate = self
            .settings
            .overheads
            .checkpoint_by_phase
            .and_then(|by_phase| by_phase.read_over);
        let attempt = self.attempts.at(place);
        let task = attempt.id.task;
        let done = attempt.done;
        let shuffle = attempt.shuffle;
        let total = attempt.total;
        if rate.is_none() || task.kind == TaskKind::Map || done <= shuffle {
            return Span(0);
        }
        let bytes = self.jobs.at_mut(task.job).plan.reduces[task.index as usize].bytes;
        Cost {
            fixed: Span(0),
            bandwidth: rate,
        }
        .of(share(bytes, done - shuffle, total - shuffle))
    }
}
