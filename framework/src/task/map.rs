//! A map task: read the split, map its records, let the collector sort and seal, or leave all of it in a checkpoint.
//!
//! Owns the order of calls and the counters of a map. Does not own the loop over records (`reading`), batches (input
//! formats) nor what a batch costs.

use std::path::{Path, PathBuf};

use napreduce_data::{Collector, CollectorSettings, RecordEncoding, SavedCollection};
use napreduce_live::{
    Checkpoint, Counter, MapResult, MapTask, SavedCheckpoint, Stage, SuspendHooks, TaskContext, TaskError,
};

use super::TaskInfo;
use super::errors::{collect_error, collect_error_after};
use super::reading::{Place, Read, RecordSink, read_all};
use super::saving::{Refusal, Saving, Start, UserState, base_of, give_back, start, unsaved};
use crate::codec::Value;
use crate::emit::Emit;
use crate::input::InputFormat;
use crate::job::{CombineStage, Mapper, PartitionChoice, Settings};
use crate::state::Save;

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

    fn fresh(&self) -> Result<(MapSink<M>, Place), TaskError> {
        let collector = self.collector(None).map_err(collect_error)?;
        let mapper = self.set_up()?;
        let sink = MapSink { mapper, out: Emit::into_collector(collector), saved: None };
        Ok((sink, Place::start_of(&self.task.split)))
    }

    fn resume(&self, directory: &Path, checkpoint: Checkpoint) -> Result<(MapSink<M>, Place), Refusal> {
        let Stage::Map { split, offset, repeated, records, emitted, collection: Some(collection) } =
            checkpoint.stage
        else {
            return Err(Refusal::other_stage());
        };
        check_split(&split, self.task)?;
        let collector =
            self.collector(Some((collection, base_of(directory)))).map_err(|error| {
                match error.blames_checkpoint() {
                    true => Refusal::Checkpoint(error.to_string()),
                    false => Refusal::Task(collect_error(error)),
                }
            })?;
        let mut mapper = self.set_up()?;
        give_back(checkpoint.user_state.as_deref(), |state| mapper.restore(state))?;
        let sink = MapSink { mapper, out: Emit::resuming(collector, emitted), saved: None };
        Ok((sink, Place { offset, repeated, records }))
    }

    fn set_up(&self) -> Result<M, TaskError> {
        let mut mapper = self.mapper.clone();
        mapper.setup(&TaskInfo::new(self.context, Some(&self.task.split.path), &self.task.scratch))?;
        Ok(mapper)
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
            label: context.attempt().to_string(),
            encoding: encoding::<M::Key, M::Value>(),
            compression: settings.compression(),
            partitioning: self.partition.partitioning(task.partitions, &task.cuts),
            fan_in: settings.fan_in as usize,
            durable: settings.durable,
            resume,
        })
    }

    fn seal(&self, sink: MapSink<M>, restored: bool) -> Result<MapResult, TaskError> {
        let MapSink { mut mapper, mut out, .. } = sink;
        mapper.finish(&mut out)?;
        out.check()?;
        let counters = self.context.counters();
        counters.add(Counter::MapOutputRecords, out.records());
        let restore = self.task.restore.as_deref().filter(|_| restored);
        let (segment, statistics) = out.seal().map_err(|error| collect_error_after(error, restore))?;
        counters.add(Counter::MapOutputBytes, statistics.bytes_in);
        counters.add(Counter::MapOutputMaterializedBytes, segment.file_len);
        counters.add(Counter::SpilledRecords, statistics.spilled_records + statistics.records_out);
        counters.add(Counter::CombineInputRecords, statistics.combine_records_in);
        counters.add(Counter::CombineOutputRecords, statistics.combine_records_out);
        Ok(MapResult::Done { part: None })
    }

    fn save(&self, sink: MapSink<M>, place: Place) -> Result<SavedCheckpoint, TaskError> {
        let task = self.task;
        let mut saving = Saving::begin(&task.checkpoint, task.durable, self.context)?;
        let emitted = sink.out.records();
        let collection = sink.out.save(&saving.place()).map_err(unsaved)?;
        saving.count(collection.files());
        let Place { offset, repeated, records } = place;
        let split = task.split.clone();
        let stage = Stage::Map { split, offset, repeated, records, emitted, collection: Some(collection) };
        saving.finish(stage, Vec::new(), sink.saved.unwrap_or_default())
    }
}

/// A checkpoint of another split would be none of this task.
pub(crate) fn check_split(split: &napreduce_live::Split, task: &MapTask) -> Result<(), Refusal> {
    if (split.offset, split.length, split.file_length)
        == (task.split.offset, task.split.length, task.split.file_length)
    {
        return Ok(());
    }
    Err(Refusal::Checkpoint(format!("it is of another split of {}", split.path.display())))
}

struct MapSink<M: Mapper> {
    mapper: M,
    out: Emit<M::Key, M::Value>,
    saved: Option<UserState>,
}

impl<M: Mapper> RecordSink<M::Input> for MapSink<M> {
    #[inline(always)]
    fn take(&mut self, record: <M::Input as InputFormat>::Record<'_>) -> Result<(), TaskError> {
        self.mapper.map(record, &mut self.out)
    }

    fn check(&mut self) -> Result<(), TaskError> {
        self.out.check()
    }

    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError> {
        self.saved = UserState::ask(|state| self.mapper.save(state), |_| Ok(Save::Stateless))?;
        Ok(self.saved.is_some())
    }
}

impl<M: Mapper> SuspendHooks for MapSink<M> {
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
