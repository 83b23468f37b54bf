//! A finished job behind one object: its task loops for task processes, its planning for the submitter.
//!
//! Owns the erasure of the builder's types. Does not own the loops themselves (`task`).

use napreduce_live::{
    CheckpointSupport, MapResult, MapTask, ReduceResult, ReduceTask, TaskContext, TaskError, TaskRunner,
};

use crate::input::{InputError, InputFile, InputFormat, InputSplit, Splitting, check_files, plan_splits};
use crate::output::OutputFormat;
use crate::settings::Settings;
use crate::state::Save;
use crate::task;
use crate::task::map::MapWork;
use crate::task::reduce::ReduceWork;
use crate::user_code::{CombineStage, Grouping, Mapper, PartMap, PartitionChoice, Reducer};

use super::sampling;

/// What the submitter and the task processes need of a job, whatever its types.
pub(crate) trait Pipeline: TaskRunner {
    /// Refuses files that the input format does not read, and divides the others into splits of about `split_size` bytes.
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError>;

    /// Which files larger than a split are read by one task all the same, and why, for people.
    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String>;

    /// Whether there is no reduce.
    fn map_only(&self) -> bool;

    /// Whether the splits are to be sampled for the cuts of a total order.
    fn wants_cuts(&self) -> bool;

    /// The encoded cuts, `partitions - 1` of them, ascending.
    fn sample(&self, splits: &[InputSplit], partitions: u32, memory: u64) -> Result<Vec<Vec<u8>>, TaskError>;

    /// Which of its tasks can be checkpointed.
    fn checkpoint_support(&self) -> CheckpointSupport;

    /// Takes over the settings of this run.
    fn set(&mut self, settings: Settings);
}

/// Of a prototype, that an error is answered says at least that there is something to save.
fn saves(answer: Result<Save, TaskError>) -> bool {
    !matches!(answer, Ok(Save::Unsupported))
}

/// A file that is one record is meant to be read whole; one that is compressed may be a surprise.
fn refusals<I: InputFormat>(input: &I, files: &[InputFile], split_size: u64) -> Vec<String> {
    let large = files.iter().filter(|file| file.size > split_size);
    large
        .filter_map(|file| match input.splitting(&file.path) {
            splitting @ (Splitting::Compressed(_) | Splitting::FromStart) => splitting.refusal(&file.path),
            _ => None,
        })
        .collect()
}

/// A job with a reduce.
pub(crate) struct MapReduce<M: Mapper, C, R: Reducer> {
    pub input: M::Input,
    pub mapper: M,
    pub combine: C,
    pub partition: PartitionChoice<M::Key>,
    pub grouping: Grouping<R::Group>,
    pub reducer: R,
    pub output: R::Output,
    pub settings: Settings,
}

impl<M, C, R> TaskRunner for MapReduce<M, C, R>
where
    M: Mapper,
    C: CombineStage<M::Value>,
    R: Reducer<Key = M::Key, Value = M::Value>,
{
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
        let MapReduce { input, mapper, combine, partition, settings, .. } = self;
        MapWork { input, mapper, combine, partition, settings, task, context }.run()
    }

    fn run_reduce(&self, task: &ReduceTask, context: &TaskContext) -> Result<ReduceResult, TaskError> {
        let MapReduce { combine, reducer, output: format, grouping, settings, .. } = self;
        ReduceWork { combine, reducer, format, grouping, settings, task, context }.run()
    }
}

impl<M, C, R> Pipeline for MapReduce<M, C, R>
where
    M: Mapper,
    C: CombineStage<M::Value>,
    R: Reducer<Key = M::Key, Value = M::Value>,
{
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError> {
        check_files(files, &self.input)?;
        plan_splits(files, split_size, &self.input)
    }

    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String> {
        refusals(&self.input, files, split_size)
    }

    fn map_only(&self) -> bool {
        false
    }

    fn wants_cuts(&self) -> bool {
        self.partition.wants_cuts()
    }

    fn sample(&self, splits: &[InputSplit], partitions: u32, memory: u64) -> Result<Vec<Vec<u8>>, TaskError> {
        sampling::cuts(&self.input, &self.mapper, self.grouping.prefix_length, splits, partitions, memory)
    }

    fn checkpoint_support(&self) -> CheckpointSupport {
        CheckpointSupport {
            map: saves(self.mapper.save(&mut Vec::new())),
            reduce: saves(self.reducer.save(&mut Vec::new())) && saves(self.output.save(&mut Vec::new())),
        }
    }

    fn set(&mut self, settings: Settings) {
        self.input.take_bad_rows(settings.bad_rows);
        self.settings = settings;
    }
}

/// A job without a reduce.
pub(crate) struct MapOnly<I, O, F> {
    pub input: I,
    pub output: O,
    pub map: F,
}

impl<I, O, F> TaskRunner for MapOnly<I, O, F>
where
    I: InputFormat,
    O: OutputFormat,
    F: PartMap<I, O>,
{
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
        task::map_only::run(&self.input, &self.output, &self.map, task, context)
    }

    fn run_reduce(&self, _: &ReduceTask, _: &TaskContext) -> Result<ReduceResult, TaskError> {
        Err(TaskError::fatal("a reduce task was ordered of a job without reduce"))
    }
}

impl<I, O, F> Pipeline for MapOnly<I, O, F>
where
    I: InputFormat,
    O: OutputFormat,
    F: PartMap<I, O>,
{
    fn plan(&self, files: &[InputFile], split_size: u64) -> Result<Vec<InputSplit>, InputError> {
        check_files(files, &self.input)?;
        plan_splits(files, split_size, &self.input)
    }

    fn refusals(&self, files: &[InputFile], split_size: u64) -> Vec<String> {
        refusals(&self.input, files, split_size)
    }

    fn map_only(&self) -> bool {
        true
    }

    fn wants_cuts(&self) -> bool {
        false
    }

    fn sample(&self, _: &[InputSplit], _: u32, _: u64) -> Result<Vec<Vec<u8>>, TaskError> {
        Ok(Vec::new())
    }

    fn checkpoint_support(&self) -> CheckpointSupport {
        CheckpointSupport {
            map: saves(Ok(self.map.save())) && saves(self.output.save(&mut Vec::new())),
            reduce: false,
        }
    }

    /// Nothing else of the settings concerns a job that sorts nothing.
    fn set(&mut self, settings: Settings) {
        self.input.take_bad_rows(settings.bad_rows);
    }
}
