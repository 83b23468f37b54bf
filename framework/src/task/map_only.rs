//! A map-only task: the output of the map goes directly to a part file, in input order.

use std::path::Path;

use napreduce_protocol::{Counter, MapTask, TaskError};
use napreduce_task::{
    Checkpoint, CheckpointStage, MapResult, SavedCheckpoint, SuspendHooks, TaskContext,
};

use super::map::check_split;
use super::reading::{MapInput, Read, ReadPosition, RecordSink, read_all};
use super::saving::{Saving, Start, UserState, base_of, give_back, named_bytes, part_error, start};
use crate::input::{InputFormat, InputPlace, Skip};
use crate::output::{Output, OutputDefinition, OutputFormat, ResumeError};
use crate::user_code::{PartMap, TaskInfo};

/// One map of a job without reduce.
pub(crate) struct MapOnlyWork<'a, I, O: OutputFormat, M> {
    pub(crate) format: &'a I,
    pub(crate) bad_input: Skip,
    pub(crate) output: &'a OutputDefinition<O>,
    pub(crate) map: &'a M,
    pub(crate) task: &'a MapTask,
    pub(crate) context: &'a TaskContext,
}

impl<I: InputFormat, O: OutputFormat, M: PartMap<I, O>> MapOnlyWork<'_, I, O, M> {
    /// Maps one split and writes its part file.
    pub(crate) fn run(&self) -> Result<MapResult, TaskError> {
        let MapOnlyWork {
            format,
            bad_input,
            output,
            map: prototype,
            task,
            context,
        } = *self;
        let begun = start(
            task.restore.as_deref(),
            true,
            context,
            |directory, checkpoint| {
                let state = checkpoint.user_state.clone();
                let (out, place) = resume(output, task, directory, checkpoint)?;
                let mut map = set_up(prototype, place.path(task), task, context)?;
                give_back(state.as_deref(), |state| {
                    PartMap::<I, O>::restore(&mut map, state)
                })?;
                Ok((map, out, place))
            },
            || {
                let out = output.create(&task.output)?;
                let place = ReadPosition::start_of(&task.split);
                Ok((
                    set_up(prototype, place.path(task), task, context)?,
                    out,
                    place,
                ))
            },
        )?;
        let Start {
            with: (map, out, place),
            restored,
        } = begun;
        // The map may hold resources that it releases before a stop.
        let _in_flight =
            PartMap::<I, O>::has_suspend_hooks(&map).then(|| context.begin_in_flight());
        let mut sink = LineSink {
            map,
            out,
            saved: None,
            prototype,
            task,
            context,
        };
        let input = MapInput {
            format,
            bad_input,
            task,
            context,
            place,
            restored,
        };
        match read_all(input, &mut sink)? {
            Read::ToTheEnd => {
                let restore = task.restore.as_deref().filter(|_| restored);
                let part = sink
                    .out
                    .finish()
                    .map_err(|error| part_error(error, restore))?;
                context
                    .counters()
                    .add(Counter::MapOutputRecords, part.records);
                context
                    .counters()
                    .add(Counter::OutputBytes, part.bytes + named_bytes(&part));
                Ok(MapResult::Done { part: Some(part) })
            }
            Read::UpTo(place) => {
                let saved = save(sink.out, sink.saved, place, task, context)?;
                Ok(MapResult::Checkpointed(saved))
            }
        }
    }
}

fn set_up<I: InputFormat, O: OutputFormat, M: PartMap<I, O>>(
    prototype: &M,
    path: Option<&Path>,
    task: &MapTask,
    context: &TaskContext,
) -> Result<M, TaskError> {
    let mut map = prototype.clone();
    map.setup(&TaskInfo::new(context, path, &task.scratch))?;
    Ok(map)
}

fn resume<O: OutputFormat>(
    output: &OutputDefinition<O>,
    task: &MapTask,
    directory: &Path,
    checkpoint: Checkpoint,
) -> Result<(Output<O>, ReadPosition), ResumeError> {
    let CheckpointStage::Map {
        split,
        part,
        offset,
        repeated,
        records,
        collection: None,
        ..
    } = checkpoint.stage
    else {
        return Err(ResumeError::other_stage());
    };
    check_split(&split, part, task)?;
    let base = base_of(directory);
    let state = &checkpoint.format_state;
    let out = output.resume(&task.output, &base, checkpoint.pieces, state)?;
    Ok((
        out,
        ReadPosition {
            part: part as usize,
            offset,
            repeated,
            records,
        },
    ))
}

fn save<O: OutputFormat>(
    out: Output<O>,
    saved: Option<UserState>,
    place: ReadPosition,
    task: &MapTask,
    context: &TaskContext,
) -> Result<SavedCheckpoint, TaskError> {
    let mut saving = Saving::begin(&task.checkpoint, task.durable, context)?;
    let emitted = out.records();
    let pieces = out.cut(&mut saving.directory)?;
    let ReadPosition {
        part,
        offset,
        repeated,
        records,
    } = place;
    let split = task.split.clone();
    let part = part as u32;
    let collection = None;
    let stage = CheckpointStage::Map {
        split,
        part,
        offset,
        repeated,
        records,
        emitted,
        collection,
    };
    saving.finish(stage, pieces, saved.unwrap_or_default())
}

struct LineSink<'a, M, O> {
    map: M,
    out: Output<O>,
    saved: Option<UserState>,
    prototype: &'a M,
    task: &'a MapTask,
    context: &'a TaskContext,
}

impl<I, O, M> RecordSink<I> for LineSink<'_, M, O>
where
    I: InputFormat,
    O: OutputFormat,
    M: PartMap<I, O>,
{
    #[inline(always)]
    fn take(&mut self, record: I::Record<'_>) -> Result<(), TaskError> {
        self.map.map(record, &mut self.out)
    }

    fn begin(&mut self, path: &Path) -> Result<(), TaskError> {
        self.map = set_up::<I, O, M>(self.prototype, Some(path), self.task, self.context)?;
        Ok(())
    }

    fn enter(&mut self, place: InputPlace) {
        self.out.enter(place);
    }

    fn end(&mut self) -> Result<(), TaskError> {
        PartMap::<I, O>::finish(&mut self.map, &mut self.out)
    }

    fn check(&mut self) -> Result<(), TaskError> {
        Ok(self.out.check()?)
    }

    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError> {
        PartMap::<I, O>::flush(&mut self.map, &mut self.out)?;
        self.saved = UserState::ask(
            |state| PartMap::<I, O>::save(&self.map, state),
            |state| self.out.save_format(state),
        )?;
        Ok(self.saved.is_some())
    }
}

impl<M: SuspendHooks, O> SuspendHooks for LineSink<'_, M, O> {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.map.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.map.on_resume()
    }
}
