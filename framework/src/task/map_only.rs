//! The loop of a map-only task: what the map emits goes straight to a part file, in input order.
//!
//! Owns the order of calls. Does not own the format of the part file nor its promotion.

use napreduce_live::{Counter, MapResult, MapTask, TaskContext, TaskError};

use super::map::read_all;
use crate::input::InputFormat;
use crate::output::{Output, OutputFormat};

/// Runs one map and writes its part file.
pub(crate) fn run<I: InputFormat, O: OutputFormat>(
    input: &I,
    format: &O,
    map: impl Fn(I::Record<'_>, &mut Output<O>) -> Result<(), TaskError>,
    task: &MapTask,
    context: &TaskContext,
) -> Result<MapResult, TaskError> {
    let mut out = Output::create(format.clone(), &task.output)?;
    read_all::<I, _>(input, task, context, &mut out, map, |out| Ok(out.check()?))?;
    let part = out.finish()?;
    context.counters().add(Counter::MapOutputRecords, part.records);
    context.counters().add(Counter::OutputBytes, part.bytes);
    Ok(MapResult::Done { part: Some(part) })
}
