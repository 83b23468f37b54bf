//! The loop of a reduce task: for each group of the merged partition, call user code and write.
//!
//! Owns the order of calls and the counters of a reduce. Does not own merging or the promotion of the part file.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use napreduce_data::{ReduceInput, ReduceSettings};
use napreduce_live::{Counter, PositionUnit, ReduceResult, ReduceTask, TaskContext, TaskError};

use super::TaskInfo;
use super::errors::{reduce_error, values_error};
use crate::codec::{Scratch, Value};
use crate::job::{CombineStage, Grouping, Reducer, Settings};
use crate::output::Output;
use crate::values::Values;

/// Groups between two looks at progress and the output's errors.
const GROUPS_PER_CHECK: u64 = 1024;

/// Runs the reduce of one partition and writes its part file.
pub(crate) fn run<R: Reducer, C: CombineStage<R::Value>>(
    combine: &C,
    reducer: &R,
    format: &R::Output,
    grouping: &Grouping<R::Group>,
    settings: &Settings,
    task: &ReduceTask,
    context: &TaskContext,
) -> Result<ReduceResult, TaskError> {
    context.position().enter(format!("partition {}", task.partition), PositionUnit::Group);
    let input = combine
        .reduce_input(ReduceSettings {
            segments: task.inputs.iter().map(|(_, path)| path.clone()).collect(),
            partition: task.partition,
            memory: context.memory() as usize,
            scratch: task.scratch.clone(),
            label: context.attempt().to_string(),
            fan_in: settings.fan_in as usize,
            grouping: grouping.prefix_length,
        })
        .map_err(|error| reduce_error(error, task))?;
    context.progress().set_total(input.statistics().bytes_total);
    let mut out = Output::create(format.clone(), &task.output)?;
    let mut reducer = reducer.clone();
    reducer.setup(&TaskInfo::new(context.attempt(), None), &mut out)?;
    let mut groups = GroupLoop { input, group: Vec::new(), count: 0 };
    let looped =
        catch_unwind(AssertUnwindSafe(|| groups.run(&mut reducer, &mut out, grouping, task, context)));
    match looped {
        Ok(result) => result?,
        Err(panic) => {
            context.position().at(groups.count.saturating_sub(1));
            resume_unwind(panic)
        }
    }
    reducer.finish(&mut out)?;
    let part = out.finish()?;
    let statistics = groups.input.statistics();
    let counters = context.counters();
    counters.add(Counter::ReduceInputGroups, groups.count);
    counters.add(Counter::ReduceInputRecords, statistics.records);
    counters.add(Counter::ReduceShuffleBytes, statistics.bytes_total);
    counters.add(Counter::ShuffledMaps, task.inputs.len() as u64);
    counters.add(Counter::SpilledRecords, statistics.merged_records);
    counters.add(Counter::ReduceOutputRecords, part.records);
    counters.add(Counter::OutputBytes, part.bytes);
    Ok(ReduceResult::Done { part })
}

struct GroupLoop {
    input: ReduceInput,
    /// The group's key: a copy, because the merge moves on while user code still holds it.
    group: Vec<u8>,
    count: u64,
}

impl GroupLoop {
    fn run<R: Reducer>(
        &mut self,
        reducer: &mut R,
        out: &mut Output<R::Output>,
        grouping: &Grouping<R::Group>,
        task: &ReduceTask,
        context: &TaskContext,
    ) -> Result<(), TaskError> {
        let mut group_scratch = Scratch::new();
        let mut value_scratch = Scratch::new();
        let mut failed = None;
        while self.input.next_group().map_err(|error| reduce_error(error, task))? {
            self.group.clear();
            self.group.extend_from_slice(self.input.group_key());
            self.count += 1;
            group_scratch.reset();
            let mut rest = self.group.as_slice();
            let key = R::Group::decode(&mut rest, grouping.prefix_length.is_none(), &group_scratch)
                .map_err(|error| TaskError::task(format!("key of group {}: {error}", self.count - 1)))?;
            let mut values =
                Values::<R::Key, R::Value>::new(&mut self.input, &mut value_scratch, &mut failed);
            let reduced = reducer.reduce(key, &mut values, out);
            if let Some(error) = failed.take() {
                return Err(values_error(error, task, self.count - 1));
            }
            reduced.map_err(|error| self.located(error))?;
            if self.count.is_multiple_of(GROUPS_PER_CHECK) {
                out.check()?;
                context.progress().set_done(self.input.statistics().bytes);
            }
        }
        Ok(())
    }

    fn located(&self, error: TaskError) -> TaskError {
        TaskError { message: format!("{}, reducing group {}", error.message, self.count - 1), ..error }
    }
}
