//! A map task: read the split, map its records, let the collector sort and seal, or leave all of it in a checkpoint.
//!
//! Owns the order of calls and the counters of a map. Does not own the loop over records (`reading`), batches (input
//! formats) nor what a batch costs.

use std::path::{Path, PathBuf};

use napreduce_data::{Collector, CollectorSettings, RecordEncoding, SavedCollection};
use napreduce_live::{
    Checkpoint, CheckpointStage, Counter, InputSplit, MapResult, MapTask, SavedCheckpoint, SuspendHooks,
    TaskContext, TaskError,
};

use super::errors::{collect_error, collect_error_after};
use super::reading::{Read, ReadPosition, RecordSink, read_all};
use super::saving::{ResumeError, Saving, Start, UserState, base_of, give_back, start, unsaved};
use crate::codec::Value;
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::settings::Settings;
use crate::state::Save;
use crate::user_code::{CombineStage, Mapper, PartitionChoice, TaskInfo};

/// The map of a job with a reduce.
pub(crate) struct MapWork<'a, M: Mapper, C> {
    pub(crate) input: &'a M::Input,
    pub(crate) mapper: &'a M,
    pub(crate) combine: &'a C,
    pub(crate) partition: &'a PartitionChoice<M::Key>,
    pub(crate) settings: &'a Settings,
    pub(crate) task: &'a MapTask,
    pub(crate) context: &'a TaskContext,
}

impl<M: Mapper, C: CombineStage<M::Value>> MapWork<'_, M, C> {
    /// Runs the map of one split and seals its output.
    pub(crate) fn run(&self) -> Result<MapResult, TaskError> {
        let (task, context) = (self.task, self.context);
        let begun = start(
            (task.restore.as_deref(), true),
            context,
            |directory, checkpoint| self.resume(directory, checkpoint),
            || self.fresh(),
        )?;
        let Start { with: (mut sink, place), restored } = begun;
        match read_all::<M::Input, _>(self.input, task, context, (place, restored), &mut sink)? {
            Read::ToTheEnd => self.seal(sink, restored),
            Read::UpTo(place) => Ok(MapResult::Checkpointed(self.save(sink, place)?)),
        }
    }

    fn fresh(&self) -> Result<(MapSink<'_, M>, ReadPosition), TaskError> {
        let collector = self.collector(None).map_err(collect_error)?;
        let place = ReadPosition::start_of(&self.task.split);
        Ok((self.sink(Emit::into_collector(collector), place)?, place))
    }

    fn resume(
        &self,
        directory: &Path,
        checkpoint: Checkpoint,
    ) -> Result<(MapSink<'_, M>, ReadPosition), ResumeError> {
        let CheckpointStage::Map {
            split,
            part,
            offset,
            repeated,
            records,
            emitted,
            collection: Some(collection),
        } = checkpoint.stage
        else {
            return Err(ResumeError::other_stage());
        };
        check_split(&split, part, self.task)?;
        let collector =
            self.collector(Some((collection, base_of(directory)))).map_err(|error| {
                match error.blames_checkpoint() {
                    true => ResumeError::Checkpoint(error.to_string()),
                    false => ResumeError::Task(collect_error(error)),
                }
            })?;
        let place = ReadPosition { part: part as usize, offset, repeated, records };
        let mut sink = self.sink(Emit::resuming(collector, emitted), place)?;
        give_back(checkpoint.user_state.as_deref(), |state| sink.mapper.restore(state))?;
        Ok((sink, place))
    }

    fn sink(&self, out: Emit<M::Key, M::Value>, place: ReadPosition) -> Result<MapSink<'_, M>, TaskError> {
        let fresh = Fresh { prototype: self.mapper, task: self.task, context: self.context };
        Ok(MapSink { mapper: fresh.set_up(place.path(self.task))?, out, saved: None, fresh })
    }

    // The map function and the collector fill the memory; the reader may use it for one huge record.
    fn collector(
        &self,
        resume: Option<(SavedCollection, PathBuf)>,
    ) -> Result<Collector<<M::Value as Value>::Owned>, napreduce_data::CollectError> {
        let MapWork { task, context, settings, .. } = self;
        self.combine.collector(CollectorSettings {
            memory: context.memory() as usize,
            scratch: task.scratch.clone(),
            output: task.output.clone(),
            memory_file: task.memory_file.clone().map(|memory| (memory.path, memory.bytes)),
            label: context.attempt().to_string(),
            encoding: encoding::<M::Key, M::Value>(),
            compression: settings.compression(),
            partitioning: self.partition.partitioning(task.partitions, &task.cuts),
            fan_in: settings.fan_in as usize,
            durable: settings.durable,
            resume,
        })
    }

    fn seal(&self, sink: MapSink<'_, M>, restored: bool) -> Result<MapResult, TaskError> {
        let MapSink { out, .. } = sink;
        let counters = self.context.counters();
        counters.add(Counter::MapOutputRecords, out.records());
        let restore = self.task.restore.as_deref().filter(|_| restored);
        let (segment, statistics) = out.seal().map_err(|error| collect_error_after(error, restore))?;
        counters.add(Counter::MapOutputBytes, statistics.bytes_in);
        counters.add(Counter::MapOutputMaterializedBytes, segment.file_len);
        if segment.is_in_memory {
            counters.add(Counter::MapOutputMemoryBytes, segment.file_len);
        }
        counters.add(Counter::SpilledRecords, statistics.spilled_records + statistics.records_out);
        counters.add(Counter::CombineInputRecords, statistics.combine_records_in);
        counters.add(Counter::CombineOutputRecords, statistics.combine_records_out);
        Ok(MapResult::Done { part: None })
    }

    fn save(&self, sink: MapSink<'_, M>, place: ReadPosition) -> Result<SavedCheckpoint, TaskError> {
        let task = self.task;
        let mut saving = Saving::begin(&task.checkpoint, task.durable, self.context)?;
        let emitted = sink.out.records();
        let collection = sink.out.save(&saving.place()).map_err(unsaved)?;
        saving.count(collection.files());
        let ReadPosition { part, offset, repeated, records } = place;
        let (split, part, collection) = (task.split.clone(), part as u32, Some(collection));
        let stage = CheckpointStage::Map { split, part, offset, repeated, records, emitted, collection };
        saving.finish(stage, Vec::new(), sink.saved.unwrap_or_default())
    }
}

/// A checkpoint of another split would be none of this task.
pub(crate) fn check_split(split: &InputSplit, part: u32, task: &MapTask) -> Result<(), ResumeError> {
    let ranges = |split: &InputSplit| -> Vec<(u64, u64, u64)> {
        split.parts.iter().map(|part| (part.offset, part.length, part.file_length)).collect()
    };
    if ranges(split) == ranges(&task.split) && (part as usize) < split.parts.len() {
        return Ok(());
    }
    Err(ResumeError::Checkpoint(format!("it is of another split of {split}")))
}

/// Where mappers come from, one for each file.
struct Fresh<'a, M> {
    prototype: &'a M,
    task: &'a MapTask,
    context: &'a TaskContext,
}

impl<M: Mapper> Fresh<'_, M> {
    fn set_up(&self, path: Option<&Path>) -> Result<M, TaskError> {
        let mut mapper = self.prototype.clone();
        mapper.setup(&TaskInfo::new(self.context, path, &self.task.scratch))?;
        Ok(mapper)
    }
}

struct MapSink<'a, M: Mapper> {
    mapper: M,
    out: Emit<M::Key, M::Value>,
    saved: Option<UserState>,
    fresh: Fresh<'a, M>,
}

impl<M: Mapper> RecordSink<M::Input> for MapSink<'_, M> {
    #[inline(always)]
    fn take(&mut self, record: <M::Input as InputFormat>::Record<'_>) -> Result<(), TaskError> {
        self.mapper.map(record, &mut self.out)
    }

    fn begin(&mut self, path: &Path) -> Result<(), TaskError> {
        self.mapper = self.fresh.set_up(Some(path))?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), TaskError> {
        self.mapper.finish(&mut self.out)
    }

    fn check(&mut self) -> Result<(), TaskError> {
        self.out.check().map_err(collect_error)
    }

    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError> {
        self.saved = UserState::ask(|state| self.mapper.save(state), |_| Ok(Save::Stateless))?;
        Ok(self.saved.is_some())
    }
}

impl<M: Mapper> SuspendHooks for MapSink<'_, M> {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        self.mapper.on_suspend()
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        self.mapper.on_resume()
    }
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
