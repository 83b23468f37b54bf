//! Planning one run of a job: from inputs to splits, with the sample for a total order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use napreduce_protocol::{ByteSize, JobPlan, TaskError};
use serde::Serialize;

use super::Program;
use super::dataset::{Files, InputFiles, JobInput};
use super::definition::{CodePlace, FoundDefinition};
use super::envelope::{Envelope, SentParameters};
use super::error::Error;
use super::invocation::invocation;
use super::named_paths::{NamedPath, by_input};
use super::options::RunArguments;
use crate::builder::Pipeline;
use crate::input::{about_empty, expand, stamp};
use crate::limits;
use crate::settings::Settings;

/// The job that is to run.
#[derive(Clone)]
pub(crate) enum PlannedJob<'p> {
    /// One of the definitions that a program has under names.
    Named(&'p Program, String),
    /// A definition that was given itself, and the name by which tasks find it.
    Registered(FoundDefinition, &'static str),
    /// A definition that was given itself. Tasks find its code.
    Found(FoundDefinition),
}

impl PlannedJob<'_> {
    /// A definition that tasks find by its name, if the program has named it.
    pub(crate) fn of(definition: FoundDefinition) -> PlannedJob<'static> {
        match definition.registered_name() {
            Some(name) => PlannedJob::Registered(definition, name),
            None => PlannedJob::Found(definition),
        }
    }

    /// The name of the definition.
    pub(crate) fn name(&self) -> &str {
        match self {
            PlannedJob::Named(_, name) => name,
            PlannedJob::Registered(_, name) => name,
            PlannedJob::Found(definition) => definition.name(),
        }
    }

    fn build(&self, bytes: &[u8]) -> Result<Box<dyn Pipeline>, TaskError> {
        match self {
            PlannedJob::Named(program, name) => program.build(name, bytes),
            PlannedJob::Registered(definition, _) | PlannedJob::Found(definition) => {
                definition.build(bytes)
            }
        }
    }

    /// Returns where tasks find a definition that has no name.
    fn code(&self) -> Result<Option<CodePlace>, Error> {
        match self {
            PlannedJob::Named(..) | PlannedJob::Registered(..) => Ok(None),
            PlannedJob::Found(definition) => definition
                .place()
                .map(Some)
                .map_err(|error| Error::Usage(error.message)),
        }
    }
}

/// One run of a job, as its author describes it.
#[derive(Clone, Default)]
pub(crate) struct Description {
    /// Parameters of the definition; `()` by default.
    pub(crate) parameters: SentParameters,
    /// The first mistake in the description.
    pub(crate) fault: Option<String>,
    /// The datasets that the job reads.
    pub(crate) files: Vec<Arc<Files>>,
    /// As typed, with names.
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) named_inputs: Vec<NamedPath>,
    pub(crate) output: PathBuf,
    /// Overrides the definition.
    pub(crate) reduces: Option<u32>,
    /// Whether typed pairs are written as records, for a program to read them.
    pub(crate) records: bool,
}

impl Description {
    pub(crate) fn set_parameters<P: Serialize>(&mut self, parameters: &P) {
        match SentParameters::new(parameters) {
            Ok(sent) => self.parameters = sent,
            Err(error) => self.reject(format!("parameters of the job cannot be encoded: {error}")),
        }
    }

    /// Replaces the inputs without names.
    pub(crate) fn set_inputs<I>(&mut self, inputs: I)
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        self.inputs = inputs
            .into_iter()
            .map(|input| self.path_of(input))
            .collect();
    }

    pub(crate) fn add_named_inputs<I>(&mut self, name: &str, inputs: I)
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        for input in inputs {
            let path = self.path_of(input);
            self.named_inputs.push((Some(name.to_owned()), path));
        }
    }

    fn path_of(&mut self, input: impl JobInput) -> PathBuf {
        let InputFiles { path, files } = input.named();
        self.files.extend(files);
        path
    }

    /// Keeps a mistake for the time when the job is planned.
    pub(crate) fn reject(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

/// The machines on which a job is to run, as far as its plan depends on them.
pub(crate) trait Surroundings {
    /// Returns as many reduces as can run at once.
    fn default_reduces(&mut self) -> Result<u32, Error>;

    /// Returns a path from which tasks can read the input at `path`.
    fn readable_path(&mut self, path: PathBuf) -> Result<PathBuf, Error>;
}

/// A planned job, and what its author may want to know of the inputs.
pub(crate) struct Planned {
    pub(crate) plan: JobPlan,
    pub(crate) warnings: Vec<String>,
}

/// Checks the numbers of a run before anything is read.
fn check_numbers(described: &Description, arguments: &RunArguments) -> Result<(), String> {
    if let Some(reduces) = described.reduces.or(arguments.reduces) {
        limits::check("reduces", reduces, &limits::REDUCES)?;
    }
    if arguments.split_size == ByteSize::new(0) {
        return Err("--split-size 0: must be positive (default 64MiB)".to_owned());
    }
    limits::check("task memory", arguments.task_memory, &limits::TASK_MEMORY)?;
    if let Some(deadline) = arguments.cluster.deadline {
        limits::check_time("deadline", deadline)?;
    }
    Ok(())
}

/// Plans a run of `job`, with the options of `arguments`. `files` are the side files that tasks find by their paths;
/// those that workers place are not among them.
pub(crate) fn plan(
    job: &PlannedJob<'_>,
    described: &Description,
    arguments: &RunArguments,
    settings: &Settings,
    files: &BTreeMap<String, PathBuf>,
    surroundings: &mut dyn Surroundings,
) -> Result<Planned, Error> {
    if let Some(fault) = &described.fault {
        return Err(Error::Usage(fault.clone()));
    }
    check_numbers(described, arguments).map_err(Error::Usage)?;
    let mut settings = Settings {
        records: described.records,
        ..settings.clone()
    };
    let code = job.code()?;
    let envelope = |settings: &Settings| -> Vec<u8> {
        let envelope = Envelope {
            code: code.clone(),
            settings: settings.clone(),
            files: files.clone(),
            parameters: described.parameters.clone(),
        };
        envelope.encode()
    };
    let mut pipeline = job
        .build(&envelope(&settings))
        .map_err(|error| Error::Usage(error.message))?;
    let reduces = match pipeline.reduces() {
        Some(0) => 0,
        of_definition => match described.reduces.or(arguments.reduces).or(of_definition) {
            Some(reduces) => reduces,
            None => surroundings.default_reduces()?,
        },
    };
    let paths = by_input(
        &pipeline.input_names(),
        &described.inputs,
        &described.named_inputs,
    );
    let mut paths = paths.map_err(Error::Usage)?;
    let inputs: Vec<String> = paths
        .iter()
        .flatten()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    for path in paths.iter_mut().flatten() {
        *path = surroundings.readable_path(std::mem::take(path))?;
    }
    let split_size = arguments.split_size.bytes();
    let files = paths.iter().map(|paths| expand(paths, arguments.recursive));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut splits = pipeline.split(&files, split_size, &mut settings)?;
    stamp(&mut splits)?;
    let mut warnings: Vec<String> = about_empty(&files).into_iter().collect();
    let whole = pipeline.refusals(&files, split_size).into_iter();
    warnings.extend(whole.map(|refusal| format!("{refusal}; one map task reads all of it")));
    let task_memory = arguments.task_memory.bytes();
    let cuts = pipeline
        .cuts(&splits, reduces, task_memory)
        .map_err(Error::Sample)?;
    let mut plan = JobPlan {
        name: arguments
            .name
            .clone()
            .unwrap_or_else(|| job.name().to_owned()),
        parameters: envelope(&settings),
        splits,
        reduces,
        cuts,
        overwrite: arguments.overwrite,
        attempts_max: settings.attempts_max,
        task_memory,
        compress: settings.compress,
        slowstart_permille: settings.slowstart_permille,
        task_timeout: settings.task_timeout,
        checkpoint: pipeline.checkpoint_support(),
        durable: settings.durable,
        invocation: invocation(arguments, &inputs),
        ..JobPlan::new(job.name().to_owned(), described.output.clone())
    };
    arguments.cluster.apply(&mut plan);
    Ok(Planned { plan, warnings })
}
