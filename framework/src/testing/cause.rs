//! Why an interruption changes the output of a job: which task, at which boundary, and what becomes of its
//! state.

use napreduce_protocol::Counter;

use super::JobTest;
use super::attempts::{MadeCheckpoint, Trial, TrialResult};
use super::interruptions::{Interruption, Preemption, Schedule};
use super::preemption::difference;
use crate::builder::Job;

/// Two undisturbed runs differ.
const NOT_REPEATABLE: &str = "cause: two undisturbed runs differ already; the job depends on the time, on random numbers, on the \
                              order of a HashMap, or on a static";

/// A run with more maps differs, in which only the fold is called otherwise.
const NOT_ASSOCIATIVE: &str = "cause: the fold of `combine` is not associative: it gives another result when the same values are divided \
                               among more map tasks; fold(fold(a, b), c) must equal fold(a, fold(b, c)), so for a mean combine \
                               the sum and the count, and divide in the reduce";

/// The only thing that changes at a boundary where nothing is asked.
const IN_PARTS: &str = "cause: `reduce` is called again for the rest of a group, since it resumes in groups; when \
                        `values.is_cut()` returns true, return with the partial result in the state, and write nothing";

impl<T, J: Fn() -> Job<T>> JobTest<J> {
    /// Returns the cause of a difference, if it can be found by more runs.
    pub(super) fn cause(&self, expected: &TrialResult, schedule: &Schedule) -> Option<String> {
        let differs = |ran: &TrialResult| difference(&expected.output, &ran.output).is_some();
        if differs(&Trial::new(self).run(&Schedule::Undisturbed)) {
            return Some(NOT_REPEATABLE.to_owned());
        }
        if self.depends_on_combining(expected) {
            return Some(NOT_ASSOCIATIVE.to_owned());
        }
        let boundary = match schedule {
            Schedule::Counted => return Some(IN_PARTS.to_owned()),
            Schedule::Once(Interruption {
                boundary,
                how: Preemption::Checkpoint | Preemption::CheckpointElsewhere,
            }) => boundary,
            _ => return None,
        };
        let (task, ran) = (0..)
            .zip(&expected.boundaries)
            .filter(|(_, boundaries)| boundary <= *boundaries)
            .map(|(task, _)| (task, self.checkpointed(expected, task, vec![*boundary])))
            .find(|(_, ran)| differs(ran))?;
        let made = ran.checkpoints.into_iter().next()?;
        // The first boundary of the next attempt is before its first unit of work.
        let again = self
            .checkpointed(expected, task, vec![*boundary, 1])
            .checkpoints;
        Some(describe(&made, again.get(1)?))
    }

    /// Returns whether a job with a combiner writes something else when more maps read the input. Then its fold divides
    /// the values in another way, and otherwise all stays the same.
    fn depends_on_combining(&self, expected: &TrialResult) -> bool {
        if expected.output.counters.of(Counter::CombineInputRecords) == 0 {
            return false;
        }
        // A map for each line would fold the values one after another, as a single map does.
        [2, 3].iter().any(|pieces| {
            let divided = Trial::new(&self.in_pieces(*pieces)).run(&Schedule::Undisturbed);
            divided.output.parts != expected.output.parts
        })
    }

    fn checkpointed(
        &self,
        expected: &TrialResult,
        task: u64,
        checkpoints: Vec<u64>,
    ) -> TrialResult {
        Trial::with_boundaries(self, &expected.boundaries)
            .run(&Schedule::InTask { task, checkpoints })
    }
}

/// Describes the state at a checkpoint, and as it is saved again right after the restore.
fn describe(made: &MadeCheckpoint, again: &MadeCheckpoint) -> String {
    let state = match (&made.state, &again.state) {
        (Some(before), Some(after)) if before == after => format!(
            "the state saved there and the state saved right after the restore are the same {} bytes, so what has been lost is \
             not in them; look for fields that `save` does not write, or that have #[resumable(skip)]",
            before.len()
        ),
        (Some(before), after) => {
            let after = after.as_deref().unwrap_or_default();
            let same = before.iter().zip(after).take_while(|(one, other)| one == other).count();
            format!(
                "the state saved there has {} bytes and the state saved right after the restore has {}, which differ from byte \
                 {same}: {} and {}; look for what `restore` does not set",
                before.len(),
                after.len(),
                excerpt(before, same),
                excerpt(after, same)
            )
        }
        (None, _) => "no state is saved there: it is a closure, or its `save` returns Stateless; a closure with a state is added by \
                      reduce_resumable or map_only_resumable, a type that derives Resumable by mapper_resumable or \
                      reducer_resumable"
            .to_owned(),
    };
    format!("cause: {} checkpointed {}; {state}", made.task, made.place)
}

/// Returns some bytes from a position on.
fn excerpt(state: &[u8], at: usize) -> String {
    let rest = &state[at.min(state.len())..];
    format!("b\"{}\"", rest[..rest.len().min(16)].escape_ascii())
}
