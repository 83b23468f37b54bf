//! A map-only task: what the map emits goes straight to a part file, in input order.
//!
//! Owns the order of calls. Does not own the loop over records (`reading`), the format of the part file nor its promotion.

use std::path::Path;

use napreduce_live::{
    Checkpoint, Counter, MapResult, MapTask, SavedCheckpoint, Stage, SuspendHooks, TaskContext, TaskError,
};

use super::map::check_split;
use super::reading::{Place, Read, RecordSink, read_all};
use super::saving::{Refusal, Saving, Start, UserState, base_of, part_error, restored_format, start};
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat, Pieces};
use crate::state::Save;

/// Runs one map and writes its part file.
pub(crate) fn run<I: InputFormat, O: OutputFormat>(
    input: &I,
    format: &O,
    map: impl Fn(I::Record<'_>, &mut Output<O>) -> Result<(), TaskError>,
    task: &MapTask,
    context: &TaskContext,
) -> Result<MapResult, TaskError> {
    let begun = start(
        (task.restore.as_deref(), true),
        context,
        |directory, checkpoint| resume(format, task, directory, checkpoint),
        || Ok((Output::create(format.clone(), &task.output)?, Place::start_of(&task.split))),
    )?;
    let Start { with: (out, place), restored } = begun;
    let mut sink = LineSink { map, out, saved: None };
    match read_all::<I, _>(input, task, context, (place, restored), &mut sink)? {
        Read::ToTheEnd => {
            let restore = task.restore.as_deref().filter(|_| restored);
            let part = sink.out.finish().map_err(|error| part_error(error, restore))?;
            context.counters().add(Counter::MapOutputRecords, part.records);
            context.counters().add(Counter::OutputBytes, part.bytes);
            Ok(MapResult::Done { part: Some(part) })
        }
        Read::UpTo(place) => Ok(MapResult::Checkpointed(save(sink.out, sink.saved, place, task, context)?)),
    }
}

fn resume<O: OutputFormat>(
    format: &O,
    task: &MapTask,
    directory: &Path,
    checkpoint: Checkpoint,
) -> Result<(Output<O>, Place), Refusal> {
    let Stage::Map { split, offset, repeated, records, collection: None, .. } = checkpoint.stage else {
        return Err(Refusal::other_stage());
    };
    check_split(&split, task)?;
    let pieces = Pieces::find(&base_of(directory), checkpoint.pieces)?;
    let format = restored_format(format, &checkpoint.format_state)?;
    let out = Output::after(format, pieces, &task.output).map_err(TaskError::from)?;
    Ok((out, Place { offset, repeated, records }))
}

fn save<O: OutputFormat>(
    out: Output<O>,
    saved: Option<UserState>,
    place: Place,
    task: &MapTask,
    context: &TaskContext,
) -> Result<SavedCheckpoint, TaskError> {
    let mut saving = Saving::begin(&task.checkpoint, task.durable, context)?;
    let emitted = out.records();
    let pieces = out.cut(&mut saving.directory)?;
    let Place { offset, repeated, records } = place;
    let stage =
        Stage::Map { split: task.split.clone(), offset, repeated, records, emitted, collection: None };
    saving.finish(stage, pieces, saved.unwrap_or_default())
}

struct LineSink<F, O> {
    map: F,
    out: Output<O>,
    saved: Option<UserState>,
}

impl<I, O, F> RecordSink<I> for LineSink<F, O>
where
    I: InputFormat,
    O: OutputFormat,
    F: Fn(I::Record<'_>, &mut Output<O>) -> Result<(), TaskError>,
{
    #[inline(always)]
    fn take(&mut self, record: I::Record<'_>) -> Result<(), TaskError> {
        (self.map)(record, &mut self.out)
    }

    fn check(&mut self) -> Result<(), TaskError> {
        Ok(self.out.check()?)
    }

    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError> {
        self.saved = UserState::ask(|_| Ok(Save::Stateless), |state| self.out.save_format(state))?;
        Ok(self.saved.is_some())
    }
}

/// A closure has no hooks.
impl<F, O> SuspendHooks for LineSink<F, O> {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}
