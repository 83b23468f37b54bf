//! A map task: read the split, map its records, and let the collector sort and seal the output, or save all
//! of it in a checkpoint.

use std::path::{Path, PathBuf};

use napreduce_data::{Collector, CollectorSettings, RecordEncoding, SavedCollection};
use napreduce_protocol::{Counter, InputSplit, MapTask, TaskError};
use napreduce_task::{
    Checkpoint, CheckpointStage, InFlight, MapResult, SavedCheckpoint, SuspendHooks, TaskContext,
};

use super::errors::{collect_error, collect_error_after};
use super::reading::{MapInput, Read, ReadPosition, RecordSink, read_all};
use super::saving::{Saving, Start, UserState, base_of, give_back, start};
use crate::codec::{Key, Value};
use crate::emit::Emit;
use crate::input::{InputFormat, InputPlace, Skip};
use crate::output::ResumeError;
use crate::settings::Settings;
use crate::state::{Save, unsaved};
use crate::user_code::{Combining, Mapper, PartitionChoice, TaskInfo};

/// The loop of a map and its start position.
type Begun<'a, K, V> = (Box<dyn MapLoop<K, V> + 'a>, ReadPosition);

/// The map of a job with a reduce.
pub(crate) struct MapWork<'a, K: Key, V: Value, C> {
    /// The input of the split.
    pub(crate) input: &'a dyn OpenMap<K, V>,
    pub(crate) combine: &'a C,
    pub(crate) partition: &'a PartitionChoice,
    pub(crate) grouping: Option<fn(&[u8]) -> usize>,
    pub(crate) settings: &'a Settings,
    pub(crate) task: &'a MapTask,
    pub(crate) context: &'a TaskContext,
}

impl<K: Key, V: Value, C: Combining<V>> MapWork<'_, K, V, C> {
    /// Maps one split and seals its output.
    pub(crate) fn run(&self) -> Result<MapResult, TaskError> {
        let begun = start(
            self.task.restore.as_deref(),
            true,
            self.context,
            |directory, checkpoint| self.resume(directory, checkpoint),
            || self.fresh(),
        )?;
        let Start {
            with: (mut map, place),
            restored,
        } = begun;
        let read = map.read(place, restored)?;
        let (out, saved) = map.into_output();
        match read {
            Read::ToTheEnd => self.seal(out, restored),
            Read::UpTo(place) => Ok(MapResult::Checkpointed(self.save(out, saved, place)?)),
        }
    }

    fn open(
        &self,
        out: Emit<K, V>,
        place: ReadPosition,
    ) -> Result<Box<dyn MapLoop<K, V> + '_>, TaskError> {
        self.input.open(out, place, self.task, self.context)
    }

    fn fresh(&self) -> Result<Begun<'_, K, V>, TaskError> {
        let collector = self.collector(None).map_err(collect_error)?;
        let place = ReadPosition::start_of(&self.task.split);
        Ok((self.open(Emit::into_collector(collector, 0), place)?, place))
    }

    fn resume(
        &self,
        directory: &Path,
        checkpoint: Checkpoint,
    ) -> Result<Begun<'_, K, V>, ResumeError> {
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
        let collector = self
            .collector(Some((collection, base_of(directory))))
            .map_err(|error| {
                if error.blames_checkpoint() {
                    ResumeError::Checkpoint(error.to_string())
                } else {
                    ResumeError::Task(collect_error(error))
                }
            })?;
        let place = ReadPosition {
            part: part as usize,
            offset,
            repeated,
            records,
        };
        let mut map = self.open(Emit::into_collector(collector, emitted), place)?;
        give_back(checkpoint.user_state.as_deref(), |state| map.restore(state))?;
        Ok((map, place))
    }

    // The map function and the collector fill the memory; the reader may use it for one huge record.
    fn collector(
        &self,
        resume: Option<(SavedCollection, PathBuf)>,
    ) -> Result<Collector<V::Owned>, napreduce_data::CollectError> {
        let MapWork {
            task,
            context,
            settings,
            ..
        } = self;
        self.combine.collector(CollectorSettings {
            memory: context.memory() as usize,
            scratch: task.scratch.clone(),
            output: task.output.clone(),
            memory_file: task
                .memory_file
                .clone()
                .map(|memory| (memory.path, memory.bytes)),
            label: context.attempt().to_string(),
            encoding: encoding::<K, C::Total>(),
            compression: settings.compression(),
            partitioning: self
                .partition
                .partitioning(task.partitions, &task.cuts, self.grouping),
            fan_in: settings.fan_in as usize,
            durable: settings.durable,
            resume,
        })
    }

    fn seal(&self, out: Emit<K, V>, restored: bool) -> Result<MapResult, TaskError> {
        let counters = self.context.counters();
        counters.add(Counter::MapOutputRecords, out.records());
        let restore = self.task.restore.as_deref().filter(|_| restored);
        let (segment, statistics) = out
            .seal()
            .map_err(|error| collect_error_after(error, restore))?;
        counters.add(Counter::MapOutputBytes, statistics.bytes_in);
        counters.add(Counter::MapOutputMaterializedBytes, segment.file_len);
        if let Some(digest) = segment.digest {
            self.context.set_output_digest(digest);
        }
        if segment.is_in_memory {
            counters.add(Counter::MapOutputMemoryBytes, segment.file_len);
        }
        counters.add(
            Counter::SpilledRecords,
            statistics.spilled_records + statistics.records_out,
        );
        counters.add(Counter::CombineInputRecords, statistics.combine_records_in);
        counters.add(
            Counter::CombineOutputRecords,
            statistics.combine_records_out,
        );
        Ok(MapResult::Done { part: None })
    }

    fn save(
        &self,
        out: Emit<K, V>,
        saved: Option<UserState>,
        place: ReadPosition,
    ) -> Result<SavedCheckpoint, TaskError> {
        let task = self.task;
        let mut saving = Saving::begin(&task.checkpoint, task.durable, self.context)?;
        let emitted = out.records();
        let collection = out.save(&saving.place()).map_err(unsaved)?;
        saving.count(collection.files());
        let ReadPosition {
            part,
            offset,
            repeated,
            records,
        } = place;
        let split = task.split.clone();
        let part = part as u32;
        let collection = Some(collection);
        let stage = CheckpointStage::Map {
            split,
            part,
            offset,
            repeated,
            records,
            emitted,
            collection,
        };
        saving.finish(stage, Vec::new(), saved.unwrap_or_default())
    }
}

/// Rejects a checkpoint of another split.
pub(crate) fn check_split(
    split: &InputSplit,
    part: u32,
    task: &MapTask,
) -> Result<(), ResumeError> {
    let ranges = |split: &InputSplit| -> Vec<(u64, u64, u64)> {
        split
            .parts
            .iter()
            .map(|part| (part.offset, part.length, part.file_length))
            .collect()
    };
    if ranges(split) == ranges(&task.split) && (part as usize) < split.parts.len() {
        return Ok(());
    }
    Err(ResumeError::Checkpoint(format!(
        "it belongs to another split of {split}"
    )))
}

/// An input with any format and mapper; opened once for each task.
pub(crate) trait OpenMap<K: Key, V: Value>: Send + Sync {
    /// Opens the map of one split, which emits into `out` from `place` on; sets its mapper up.
    fn open<'a>(
        &'a self,
        out: Emit<K, V>,
        place: ReadPosition,
        task: &'a MapTask,
        context: &'a TaskContext,
    ) -> Result<Box<dyn MapLoop<K, V> + 'a>, TaskError>;
}

/// The loop of one map task over its records, with erased types.
pub(crate) trait MapLoop<K: Key, V: Value> {
    /// Restores the saved state of a mapper.
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError>;

    /// Maps the records of the split from `place` on.
    fn read(&mut self, place: ReadPosition, restored: bool) -> Result<Read, TaskError>;

    /// Returns the output, and the state of the mapper if the loop ended at a checkpoint.
    fn into_output(self: Box<Self>) -> (Emit<K, V>, Option<UserState>);
}

/// A format and the mapper of its records.
pub(crate) struct TypedMap<M: Mapper> {
    pub(crate) format: M::Input,
    pub(crate) mapper: M,
    pub(crate) bad_input: Skip,
}

impl<M: Mapper> OpenMap<M::Key, M::Value> for TypedMap<M> {
    fn open<'a>(
        &'a self,
        out: Emit<M::Key, M::Value>,
        place: ReadPosition,
        task: &'a MapTask,
        context: &'a TaskContext,
    ) -> Result<Box<dyn MapLoop<M::Key, M::Value> + 'a>, TaskError> {
        let mapper = self.set_up(place.path(task), task, context)?;
        let in_flight = mapper
            .has_suspend_hooks()
            .then(|| context.begin_in_flight());
        Ok(Box::new(MapSink {
            typed: self,
            task,
            context,
            mapper,
            out,
            saved: None,
            _in_flight: in_flight,
        }))
    }
}

impl<M: Mapper> TypedMap<M> {
    /// Sets up a mapper for one file.
    fn set_up(
        &self,
        path: Option<&Path>,
        task: &MapTask,
        context: &TaskContext,
    ) -> Result<M, TaskError> {
        let mut mapper = self.mapper.clone();
        mapper.setup(&TaskInfo::new(context, path, &task.scratch))?;
        Ok(mapper)
    }
}

struct MapSink<'a, M: Mapper> {
    typed: &'a TypedMap<M>,
    task: &'a MapTask,
    context: &'a TaskContext,
    mapper: M,
    out: Emit<M::Key, M::Value>,
    saved: Option<UserState>,
    /// The mapper may hold resources that it releases before a stop.
    _in_flight: Option<InFlight>,
}

impl<M: Mapper> MapLoop<M::Key, M::Value> for MapSink<'_, M> {
    fn restore(&mut self, state: &[u8]) -> Result<(), TaskError> {
        self.mapper.restore(state)
    }

    fn read(&mut self, place: ReadPosition, restored: bool) -> Result<Read, TaskError> {
        let MapSink {
            typed,
            task,
            context,
            ..
        } = *self;
        let format = &typed.format;
        let bad_input = typed.bad_input;
        read_all(
            MapInput {
                format,
                bad_input,
                task,
                context,
                place,
                restored,
            },
            self,
        )
    }

    fn into_output(self: Box<Self>) -> (Emit<M::Key, M::Value>, Option<UserState>) {
        (self.out, self.saved)
    }
}

impl<M: Mapper> RecordSink<M::Input> for MapSink<'_, M> {
    #[inline(always)]
    fn take(&mut self, record: <M::Input as InputFormat>::Record<'_>) -> Result<(), TaskError> {
        self.mapper.map(record, &mut self.out)
    }

    fn begin(&mut self, path: &Path) -> Result<(), TaskError> {
        self.mapper = self.typed.set_up(Some(path), self.task, self.context)?;
        Ok(())
    }

    fn enter(&mut self, place: InputPlace) {
        self.out.enter(place);
    }

    fn end(&mut self) -> Result<(), TaskError> {
        self.mapper.finish(&mut self.out)
    }

    fn check(&mut self) -> Result<(), TaskError> {
        self.out.check().map_err(collect_error)
    }

    fn prepare_checkpoint(&mut self) -> Result<bool, TaskError> {
        self.mapper.flush(&mut self.out)?;
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

/// Returns the encoding: fixed-length records are stored without lengths.
pub(crate) fn encoding<K: Value, V: Value>() -> RecordEncoding {
    match (K::FIXED, V::FIXED) {
        (Some(key), Some(value)) if key + value > 0 => RecordEncoding::Fixed {
            key: key as u32,
            value: value as u32,
        },
        _ => RecordEncoding::Variable,
    }
}
