//! The loop of a map task: read a batch, map its records, let the collector sort and seal.
//!
//! Owns the order of calls and the counters of a map. Does not own batches (input formats) nor what a batch costs.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use napreduce_data::{CollectorSettings, RecordEncoding};
use napreduce_live::{Counter, MapResult, MapTask, PositionUnit, Split, TaskContext, TaskError};

use super::TaskInfo;
use super::errors::collect_error;
use crate::codec::Value;
use crate::emit::Emit;
use crate::input::{InputError, InputFormat, RecordReader};
use crate::job::{CombineStage, Mapper, PartitionChoice, Settings};

/// Runs the map of one split and seals its output.
pub(crate) fn run<M: Mapper, C: CombineStage<M::Value>>(
    input: &M::Input,
    mapper: &M,
    combine: &C,
    partition: &PartitionChoice<M::Key>,
    settings: &Settings,
    task: &MapTask,
    context: &TaskContext,
) -> Result<MapResult, TaskError> {
    let collector = combine
        .collector(CollectorSettings {
            memory: context.memory() as usize,
            scratch: task.scratch.clone(),
            output: task.output.clone(),
            label: context.attempt().to_string(),
            encoding: encoding::<M::Key, M::Value>(),
            compression: settings.compression(),
            partitioning: partition.partitioning(task.partitions, &task.cuts),
            fan_in: settings.fan_in as usize,
            durable: settings.durable,
            resume: None,
        })
        .map_err(collect_error)?;
    let mut out = Emit::<M::Key, M::Value>::into_collector(collector);
    let mut mapper = mapper.clone();
    let info = TaskInfo::new(context.attempt(), Some(&task.split.path));
    mapper.setup(&info)?;
    // The map function and the collector fill the memory; the reader may use it for one huge record.
    read_all::<M::Input, _>(
        input,
        task,
        context,
        &mut out,
        |record, out| mapper.map(record, out),
        Emit::check,
    )?;
    mapper.finish(&mut out)?;
    out.check()?;
    context.counters().add(Counter::MapOutputRecords, out.records());
    let (segment, statistics) = out.seal()?;
    let counters = context.counters();
    counters.add(Counter::MapOutputBytes, statistics.bytes_in);
    counters.add(Counter::MapOutputMaterializedBytes, segment.file_len);
    counters.add(Counter::SpilledRecords, statistics.spilled_records + statistics.records_out);
    counters.add(Counter::CombineInputRecords, statistics.combine_records_in);
    counters.add(Counter::CombineOutputRecords, statistics.combine_records_out);
    Ok(MapResult::Done { part: None })
}

/// Fixed records need no lengths on disk; anything else carries them.
pub(crate) fn encoding<K: Value, V: Value>() -> RecordEncoding {
    match (K::FIXED, V::FIXED) {
        (Some(key), Some(value)) if key + value > 0 => {
            RecordEncoding::Fixed { key: key as u32, value: value as u32 }
        }
        _ => RecordEncoding::Variable,
    }
}

/// Reads the whole split, batch by batch; after each batch asks the sink for errors and tells the progress.
pub(crate) fn read_all<I: InputFormat, S>(
    input: &I,
    task: &MapTask,
    context: &TaskContext,
    sink: &mut S,
    mut map: impl FnMut(I::Record<'_>, &mut S) -> Result<(), TaskError>,
    check: impl Fn(&mut S) -> Result<(), TaskError>,
) -> Result<(), TaskError> {
    let split = &task.split;
    context.position().enter(split.path.display().to_string(), PositionUnit::Byte);
    context.progress().set_total(split.length);
    let mut reader = input.open(split, context.memory() as usize)?;
    let mut records = 0u64;
    loop {
        let batch = catch_unwind(AssertUnwindSafe(|| {
            reader.read_batch(&mut |record: I::Record<'_>| {
                records += 1;
                map(record, sink).map_err(Stop::User)
            })
        }));
        let more = match batch {
            Ok(Ok(more)) => more,
            Ok(Err(Stop::Input(error))) => return Err(error.into()),
            Ok(Err(Stop::User(error))) => return Err(located(error, split, reader.offset())),
            Err(panic) => {
                // The message of the panic is completed with the record it happened at.
                context.position().at(reader.offset());
                resume_unwind(panic)
            }
        };
        check(sink)?;
        context.progress().set_done(reader.consumed());
        if !more {
            break;
        }
    }
    // What comes after, the last folds and the mapper's finish, is about any record of the split.
    context.position().at_range(split.offset, split.end());
    let counters = context.counters();
    counters.add(Counter::MapInputRecords, records);
    counters.add(Counter::InputBytes, reader.consumed());
    Ok(())
}

/// Why a batch ends before its time.
enum Stop {
    /// The error names its place already.
    Input(InputError),
    User(TaskError),
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Stop {
        Stop::Input(error)
    }
}

fn located(error: TaskError, split: &Split, offset: u64) -> TaskError {
    let message = format!("{}, reading {} byte {offset}", error.message, split.path.display());
    TaskError { message, ..error }
}
