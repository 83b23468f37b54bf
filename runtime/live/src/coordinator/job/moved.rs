//! What the tasks of a job moved, for its history.
//!
//! Owns which counters say so. Does not own the counters.

use napreduce_core::TaskKind;
use napreduce_history::DoneTask;
use napreduce_protocol::Counter;

use super::LiveJob;

impl LiveJob {
    /// The tasks that are done.
    pub(in crate::coordinator) fn done_tasks(&self) -> Vec<DoneTask> {
        let splits = &self.accepted.plan.splits;
        let task = |result: &super::TaskResult| {
            let counted = |counter: Counter| result.counters.of(counter);
            let (input_bytes, output_bytes) = match result.attempt.task.kind {
                TaskKind::Map => {
                    let split = splits.get(result.attempt.task.index as usize);
                    (split.map_or(0, |split| split.length()), counted(Counter::MapOutputMaterializedBytes))
                }
                TaskKind::Reduce => (counted(Counter::ReduceShuffleBytes), counted(Counter::OutputBytes)),
            };
            DoneTask { attempt: result.attempt, input_bytes, output_bytes }
        };
        self.results.values().map(|result| task(result)).collect()
    }
}
