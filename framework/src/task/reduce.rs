//! A reduce task: open the merged partition, reduce its groups and write the part, or save all of it in a
//! checkpoint.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use napreduce_data::{READ_MAX, ReduceInput, ReduceSettings, SavedReduceInput};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, ReduceTask, TaskError};
use napreduce_task::{
    Checkpoint, CheckpointStage, NeededInput, PositionUnit, ReduceResult, SavedCheckpoint,
    TaskContext,
};

use super::errors::reduce_error;
use super::groups::{GroupLoop, Reduced};
use super::saving::{Saving, Start, base_of, give_back, named_bytes, part_error, start};
use crate::output::{Output, OutputDefinition, ResumeError};
use crate::settings::{FAN_IN_DEFAULT, Settings};
use crate::state::unsaved;
use crate::user_code::{Grouping, Merging, Reducer, TaskInfo};

/// The reduce of a job.
pub(crate) struct ReduceWork<'a, R: Reducer, C> {
    pub(crate) combine: &'a C,
    pub(crate) reducer: &'a R,
    pub(crate) output: &'a OutputDefinition<R::Output>,
    pub(crate) grouping: &'a Grouping<R::Group>,
    pub(crate) settings: &'a Settings,
    pub(crate) task: &'a ReduceTask,
    pub(crate) context: &'a TaskContext,
}

/// Reader, writer and reducer of the loop over groups.
struct Parts<R: Reducer> {
    reducer: R,
    input: ReduceInput,
    out: Output<R::Output>,
    in_group: bool,
}

impl<R: Reducer, C: Merging> ReduceWork<'_, R, C> {
    /// Reduces one partition and writes its part file.
    pub(crate) fn run(&self) -> Result<ReduceResult, TaskError> {
        let task = self.task;
        let context = self.context;
        context
            .position()
            .enter(format!("partition {}", task.partition), PositionUnit::Group);
        let begun = start(
            task.restore.as_deref(),
            !task.inputs_are_partial,
            context,
            |directory, checkpoint| self.resume(directory, checkpoint),
            || self.fresh(),
        )?;
        let Start {
            with:
                Parts {
                    mut reducer,
                    input,
                    mut out,
                    in_group,
                },
            restored,
        } = begun;
        let restore = task.restore.as_deref().filter(|_| restored);
        for remark in input.remarks() {
            print_error(format_args!("{}: {remark}", context.attempt()));
        }
        let bytes = input.statistics();
        context.progress().set_total(bytes.bytes_total);
        context.progress().set_done(bytes.bytes);
        // The reducer may hold resources that it releases before a stop.
        let _in_flight = reducer
            .has_suspend_hooks()
            .then(|| context.begin_in_flight());
        let mut groups = GroupLoop::new(input, context, task, restore);
        let looped = catch_unwind(AssertUnwindSafe(|| {
            groups.run(&mut reducer, &mut out, self.grouping, in_group)
        }));
        let reduced = match looped {
            Ok(reduced) => reduced?,
            Err(panic) => {
                context
                    .position()
                    .set_record(groups.place(), groups.failed_record());
                resume_unwind(panic)
            }
        };
        match reduced {
            Reduced::ToTheEnd => self.finish(groups, reducer, out, restore),
            Reduced::UpTo { in_group } => {
                context.position().set_text(groups.boundary(in_group));
                Ok(ReduceResult::Checkpointed(
                    self.save(groups, out, in_group)?,
                ))
            }
        }
    }

    fn fresh(&self) -> Result<Parts<R>, TaskError> {
        let input = self.combine.reduce_input(self.reduce_settings(None));
        let input = input.map_err(|error| reduce_error(error, self.task, None))?;
        let mut out = self.output.create(&self.task.output)?;
        let reducer = self.set_up(&mut out)?;
        Ok(Parts {
            reducer,
            input,
            out,
            in_group: false,
        })
    }

    fn resume(&self, directory: &Path, checkpoint: Checkpoint) -> Result<Parts<R>, ResumeError> {
        let CheckpointStage::Reducing {
            inputs,
            position,
            in_group,
        } = checkpoint.stage
        else {
            return Err(ResumeError::other_stage());
        };
        let base = base_of(directory);
        check_inputs(&inputs, self.task)?;
        let path = &self.task.output;
        let out = self
            .output
            .resume(path, &base, checkpoint.pieces, &checkpoint.format_state)?;
        let input = self
            .combine
            .reduce_input(self.reduce_settings(Some((position, base))));
        let input = input.map_err(|error| {
            if error.blames_checkpoint() {
                ResumeError::Checkpoint(error.to_string())
            } else {
                ResumeError::Task(reduce_error(error, self.task, None))
            }
        })?;
        // The first attempt has already written the output of the set-up.
        let mut reducer = self.set_up(&mut self.output.discarding().map_err(TaskError::from)?)?;
        give_back(checkpoint.user_state.as_deref(), |state| {
            reducer.restore(state)
        })?;
        Ok(Parts {
            reducer,
            input,
            out,
            in_group,
        })
    }

    fn set_up(&self, out: &mut Output<R::Output>) -> Result<R, TaskError> {
        let mut reducer = self.reducer.clone();
        reducer.setup(&TaskInfo::new(self.context, None, &self.task.scratch), out)?;
        Ok(reducer)
    }

    fn reduce_settings(&self, resume: Option<(SavedReduceInput, PathBuf)>) -> ReduceSettings {
        let ReduceWork { task, context, .. } = self;
        ReduceSettings {
            segments: task.inputs.iter().map(|(_, path)| path.clone()).collect(),
            consolidated: task.consolidated.clone(),
            partition: task.partition,
            memory: context.memory() as usize,
            scratch: task.scratch.clone(),
            label: context.attempt().to_string(),
            fan_in: self.settings.fan_in as usize,
            // An explicit small fan-in applies even to inputs that would fit the memory.
            read_max: if self.settings.fan_in < FAN_IN_DEFAULT {
                0
            } else {
                READ_MAX
            },
            grouping: self.grouping.prefix_length,
            resume,
        }
    }

    fn finish(
        &self,
        mut groups: GroupLoop<'_>,
        mut reducer: R,
        mut out: Output<R::Output>,
        restore: Option<&Path>,
    ) -> Result<ReduceResult, TaskError> {
        reducer.finish(&mut out)?;
        let part = out.finish().map_err(|error| part_error(error, restore))?;
        let statistics = groups.input.statistics();
        let counters = self.context.counters();
        // A key with fewer records does not explain the length of the task.
        counters.add_hot_keys(groups.largest(), statistics.records / 10);
        counters.add(Counter::ReduceInputGroups, groups.count);
        counters.add(Counter::ReduceInputRecords, statistics.records);
        counters.add(Counter::ReduceShuffleBytes, statistics.bytes_total);
        counters.add(Counter::ShuffledMaps, self.task.inputs.len() as u64);
        counters.add(Counter::SpilledRecords, statistics.merged_records);
        counters.add(Counter::MergePasses, statistics.intermediate_merges);
        counters.add(Counter::ReduceOutputRecords, part.records);
        counters.add(Counter::OutputBytes, part.bytes + named_bytes(&part));
        Ok(ReduceResult::Done { part })
    }

    fn save(
        &self,
        mut groups: GroupLoop<'_>,
        out: Output<R::Output>,
        in_group: bool,
    ) -> Result<SavedCheckpoint, TaskError> {
        let task = self.task;
        self.context.counters().add_hot_keys(groups.largest(), 0);
        let GroupLoop {
            mut input, saved, ..
        } = groups;
        let mut saving = Saving::begin(&task.checkpoint, task.durable, self.context)?;
        let position = input.save(&saving.place()).map_err(unsaved)?;
        saving.count(position.files());
        let pieces = out.cut(&mut saving.directory)?;
        let attempts = task.inputs.iter().map(|(attempt, _)| *attempt);
        let mut inputs: Vec<NeededInput> = attempts
            .map(|attempt| NeededInput {
                attempt,
                first_block: None,
            })
            .collect();
        for (input, block) in position.blocks_needed() {
            inputs[input].first_block = Some(block);
        }
        saving.finish(
            CheckpointStage::Reducing {
                inputs,
                position,
                in_group,
            },
            pieces,
            saved.unwrap_or_default(),
        )
    }
}

/// Rejects saved inputs of other attempts: positions refer to the blocks of certain attempts, and others may
/// hold other records there.
fn check_inputs(saved: &[NeededInput], task: &ReduceTask) -> Result<(), ResumeError> {
    if saved.len() != task.inputs.len() {
        let saved = saved.len();
        let inputs = task.inputs.len();
        return Err(ResumeError::Checkpoint(format!(
            "it belongs to a reduce of {saved} inputs instead of {inputs}"
        )));
    }
    for (saved, (attempt, _)) in saved.iter().zip(&task.inputs) {
        if saved.first_block.is_some() && saved.attempt != *attempt {
            let read = saved.attempt;
            return Err(ResumeError::Checkpoint(format!(
                "its position is in the output of {read} instead of {attempt}"
            )));
        }
    }
    Ok(())
}
