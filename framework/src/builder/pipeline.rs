//! A finished job behind one interface with erased types: task loops for task processes, planning for the
//! submitter.

use napreduce_protocol::{CheckpointSupport, MapTask, ReduceTask, TaskError};
use napreduce_task::{MapResult, ReduceResult, TaskContext, TaskRunner};

use crate::codec::Value;
use crate::emit::Emit;
use crate::input::{
    InputError, InputFile, InputFormat, InputSplit, Skip, Split, Splitting, check_files, combine,
    plan_splits,
};
use crate::limits::REDUCES;
use crate::output::{OutputDefinition, OutputFormat};
use crate::settings::Settings;
use crate::state::Save;
use crate::task::map::MapWork;
use crate::task::map_only::MapOnlyWork;
use crate::task::reduce::ReduceWork;
use crate::user_code::{Combining, Grouping, PartMap, PartitionChoice, Reducer};

use super::error::DefinitionError;
use super::inputs::InputMaps;
use super::sampling;

/// The interface of a job to the submitter and the task processes.
pub(crate) trait Pipeline: TaskRunner {
    /// Checks the definition.
    fn check(&self) -> Result<(), DefinitionError>;

    /// Returns the names of the inputs; `None` for one whose paths are given without a name.
    fn input_names(&self) -> Vec<Option<String>>;

    /// Plans splits of about `split_size` bytes for the files of each input. Fails if a format rejects a
    /// file.
    fn plan(
        &self,
        files: &[Vec<InputFile>],
        split_size: u64,
    ) -> Result<Vec<Vec<InputSplit>>, InputError>;

    /// Returns messages about files larger than a split that cannot be divided, with reasons.
    fn refusals(&self, files: &[Vec<InputFile>], split_size: u64) -> Vec<String>;

    /// Returns how many reduces the definition requests; 0 for a job without reduce.
    fn reduces(&self) -> Option<u32>;

    /// Returns the encoded cuts of a total order from a sample of the splits: `partitions - 1`, ascending;
    /// none for other partitioners. Call it after `set`.
    fn cuts(
        &self,
        splits: &[InputSplit],
        partitions: u32,
        memory: u64,
    ) -> Result<Vec<Vec<u8>>, TaskError>;

    /// Returns which of its tasks can be checkpointed.
    fn checkpoint_support(&self) -> CheckpointSupport;

    /// Applies the settings of this run.
    fn set(&mut self, settings: Settings);
}

impl dyn Pipeline {
    /// Splits the files of each input, in the order of the inputs, and records how many splits each has.
    pub(crate) fn split(
        &mut self,
        files: &[Vec<InputFile>],
        split_size: u64,
        settings: &mut Settings,
    ) -> Result<Vec<InputSplit>, InputError> {
        let mut of_inputs = self.plan(files, split_size)?;
        if settings.combine_files {
            of_inputs = of_inputs
                .into_iter()
                .map(|splits| combine(splits, split_size))
                .collect();
        }
        settings.split_counts = of_inputs.iter().map(|splits| splits.len() as u32).collect();
        self.set(settings.clone());
        Ok(of_inputs.concat())
    }
}

/// An error from `save` still means that saving is supported.
pub(super) fn saves(answer: Result<Save, TaskError>) -> bool {
    !matches!(answer, Ok(Save::Unsupported))
}

/// Warn only about compressed files; whole-file inputs are unsplittable by design.
pub(super) fn refusals<I: InputFormat>(
    input: &I,
    files: &[InputFile],
    split_size: u64,
) -> Vec<String> {
    let large = files.iter().filter(|file| file.size > split_size);
    large
        .filter_map(|file| match input.splitting(&file.path) {
            splitting @ (Splitting::Compressed(_) | Splitting::FromStart) => {
                splitting.refusal(&file.path)
            }
            _ => None,
        })
        .collect()
}

/// A job with a reduce. Its maps emit values of type `V`.
pub(crate) struct MapReduce<V: Value, C, R: Reducer> {
    pub inputs: InputMaps<R::Key, V>,
    pub combine: C,
    pub partition: PartitionChoice,
    pub grouping: Grouping<R::Group>,
    pub reducer: R,
    pub reduces: Option<u32>,
    pub output: OutputDefinition<R::Output>,
    pub settings: Settings,
}

impl<V: Value, C: Combining<V, Total = R::Value>, R: Reducer> TaskRunner for MapReduce<V, C, R> {
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
        let MapReduce {
            inputs,
            combine,
            partition,
            settings,
            ..
        } = self;
        let grouping = self.grouping.prefix_length;
        let input = inputs.of_split(context.attempt().task.index, &settings.split_counts)?;
        MapWork {
            input,
            combine,
            partition,
            grouping,
            settings,
            task,
            context,
        }
        .run()
    }

    fn run_reduce(
        &self,
        task: &ReduceTask,
        context: &TaskContext,
    ) -> Result<ReduceResult, TaskError> {
        let MapReduce {
            combine,
            reducer,
            output,
            grouping,
            settings,
            ..
        } = self;
        ReduceWork {
            combine,
            reducer,
            output,
            grouping,
            settings,
            task,
            context,
        }
        .run()
    }
}

impl<V: Value, C: Combining<V, Total = R::Value>, R: Reducer> Pipeline for MapReduce<V, C, R> {
    fn check(&self) -> Result<(), DefinitionError> {
        self.inputs.check()?;
        self.output.check()?;
        if matches!(self.partition, PartitionChoice::BeforeGrouping) {
            return Err(DefinitionError::PartitionBeforeGrouping);
        }
        match self.reduces {
            Some(reduces) if !REDUCES.contains(&reduces) => {
                Err(DefinitionError::Reduces { reduces })
            }
            _ => Ok(()),
        }
    }

    fn input_names(&self) -> Vec<Option<String>> {
        self.inputs.names()
    }

    fn plan(
        &self,
        files: &[Vec<InputFile>],
        split_size: u64,
    ) -> Result<Vec<Vec<InputSplit>>, InputError> {
        self.inputs.plan(files, split_size)
    }

    fn refusals(&self, files: &[Vec<InputFile>], split_size: u64) -> Vec<String> {
        self.inputs.refusals(files, split_size)
    }

    fn reduces(&self) -> Option<u32> {
        self.reduces
    }

    fn cuts(
        &self,
        splits: &[InputSplit],
        partitions: u32,
        memory: u64,
    ) -> Result<Vec<Vec<u8>>, TaskError> {
        if !matches!(self.partition, PartitionChoice::TotalOrder) {
            return Ok(Vec::new());
        }
        let counts = &self.settings.split_counts;
        let sample = |index: u32, split: &Split, wanted: usize| {
            let sampled = self.inputs.of_split(index, counts)?.sample(
                split,
                wanted,
                memory,
                Emit::into_sample(),
            )?;
            Ok(sampled.into_sampled_keys())
        };
        sampling::cuts(sample, self.grouping.prefix_length, splits, partitions)
    }

    fn checkpoint_support(&self) -> CheckpointSupport {
        CheckpointSupport {
            map: self.inputs.saves(),
            reduce: saves(self.reducer.save(&mut Vec::new())) && self.output.saves(),
        }
    }

    fn set(&mut self, settings: Settings) {
        self.inputs.set(&settings);
        self.output.set(&settings);
        self.settings = settings;
    }
}

/// A job without a reduce.
pub(crate) struct MapOnly<I, O, F> {
    pub input: I,
    pub output: OutputDefinition<O>,
    pub map: F,
    pub bad_input: Skip,
}

impl<I, O, F> TaskRunner for MapOnly<I, O, F>
where
    I: InputFormat,
    O: OutputFormat,
    F: PartMap<I, O>,
{
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
        let format = &self.input;
        let output = &self.output;
        let map = &self.map;
        MapOnlyWork {
            format,
            bad_input: self.bad_input,
            output,
            map,
            task,
            context,
        }
        .run()
    }

    fn run_reduce(&self, _: &ReduceTask, _: &TaskContext) -> Result<ReduceResult, TaskError> {
        Err(TaskError::fatal("a reduce task of a job without reduce"))
    }
}

impl<I, O, F> Pipeline for MapOnly<I, O, F>
where
    I: InputFormat,
    O: OutputFormat,
    F: PartMap<I, O>,
{
    fn check(&self) -> Result<(), DefinitionError> {
        Ok(self.output.check()?)
    }

    fn input_names(&self) -> Vec<Option<String>> {
        vec![None]
    }

    fn plan(
        &self,
        files: &[Vec<InputFile>],
        split_size: u64,
    ) -> Result<Vec<Vec<InputSplit>>, InputError> {
        let plan = |files: &Vec<InputFile>| {
            check_files(files, &self.input)?;
            plan_splits(files, split_size, &self.input)
        };
        files.iter().map(plan).collect()
    }

    fn refusals(&self, files: &[Vec<InputFile>], split_size: u64) -> Vec<String> {
        files
            .iter()
            .flat_map(|files| refusals(&self.input, files, split_size))
            .collect()
    }

    fn reduces(&self) -> Option<u32> {
        Some(0)
    }

    fn cuts(&self, _: &[InputSplit], _: u32, _: u64) -> Result<Vec<Vec<u8>>, TaskError> {
        Ok(Vec::new())
    }

    fn checkpoint_support(&self) -> CheckpointSupport {
        CheckpointSupport {
            map: saves(self.map.save(&mut Vec::new())) && self.output.saves(),
            reduce: false,
        }
    }

    /// The other settings only affect jobs that sort.
    fn set(&mut self, settings: Settings) {
        self.input.on_bad_input(settings.bad_input);
        self.output.set(&settings);
        self.bad_input = settings.bad_input;
    }
}
