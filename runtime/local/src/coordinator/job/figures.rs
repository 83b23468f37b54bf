//! Bytes and records of completed attempts, for the history of their job.

use napreduce_engine::{AttemptId, TaskKind};
use napreduce_protocol::{AttemptFigures, Counter, CounterValues, JobPlan};

/// Returns the figures of an attempt from its counters.
pub(super) fn figures(
    plan: &JobPlan,
    attempt: AttemptId,
    counters: &CounterValues,
) -> AttemptFigures {
    let of = |counter| counters.of(counter);
    let figures = AttemptFigures {
        shuffle_millis: of(Counter::ShuffleFetchMillis),
        processor_millis: of(Counter::CpuMillis),
        spilled_records: of(Counter::SpilledRecords),
        peak_memory_bytes: of(Counter::PeakAnonBytes),
        ..AttemptFigures::default()
    };
    match attempt.task.kind {
        TaskKind::Map => {
            let split = plan.splits.get(attempt.task.index as usize);
            let output = if plan.reduces == 0 {
                Counter::OutputBytes
            } else {
                Counter::MapOutputMaterializedBytes
            };
            AttemptFigures {
                input_bytes: split.map_or(0, |split| split.length()),
                output_bytes: of(output),
                input_records: of(Counter::MapInputRecords),
                output_records: of(Counter::MapOutputRecords),
                ..figures
            }
        }
        TaskKind::Reduce => AttemptFigures {
            input_bytes: of(Counter::ReduceShuffleBytes),
            output_bytes: of(Counter::OutputBytes),
            input_records: of(Counter::ReduceInputRecords),
            output_records: of(Counter::ReduceOutputRecords),
            ..figures
        },
    }
}
