//! The driver's side of a program: runs jobs one after another, outputs of one being inputs of the next.
//!
//! Owns planning (inputs to splits, sampling) and intermediate directories. Does not own how a plan runs (live
//! runtime).

use std::path::{Path, PathBuf};

use napreduce_live::{EmbeddedSettings, JobPlan, JobReport, run_embedded};
use serde::Serialize;
use serde_json::Value;

use super::arguments::{ReportFormat, RunArguments};
use super::error::Error;
use super::{Envelope, Program, report};
use crate::input::expand;
use crate::job::Settings;

/// Runs the jobs of a program. Intermediate directories are removed when it is dropped.
pub struct Driver<'p> {
    program: &'p Program,
    name: &'p str,
    run: RunArguments,
    report: ReportFormat,
    settings: Settings,
    intermediate: Option<PathBuf>,
}

impl<'p> Driver<'p> {
    pub(crate) fn new(
        program: &'p Program,
        name: &'p str,
        run: RunArguments,
        report: ReportFormat,
        settings: Settings,
    ) -> Driver<'p> {
        Driver { program, name, run, report, settings, intermediate: None }
    }

    /// The INPUT arguments as typed.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.run.inputs
    }

    /// The `--output` argument.
    pub fn output(&self) -> &Path {
        &self.run.output
    }

    /// A directory beside the output for what passes from one job to the next; removed at the end of the program.
    pub fn intermediate(&mut self, name: &str) -> PathBuf {
        let root = self.intermediate.get_or_insert_with(|| {
            let output = &self.run.output;
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(output.file_name().unwrap_or("output".as_ref()));
            hidden.push(format!(".intermediate-{}", std::process::id()));
            output.with_file_name(hidden)
        });
        root.join(name)
    }

    /// A run of the job defined under this name; without more said it takes the arguments of the command line.
    pub fn job<'d>(&'d mut self, definition: &str) -> JobRun<'d, 'p> {
        JobRun {
            definition: definition.to_owned(),
            parameters: Ok(Value::Null),
            inputs: self.run.inputs.clone(),
            output: self.run.output.clone(),
            reduces: self.run.reduces,
            driver: self,
        }
    }

    fn slots(&self) -> u32 {
        self.run.slots.unwrap_or_else(|| EmbeddedSettings::default().slots)
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if let Some(root) = self.intermediate.take()
            && root.exists()
            && let Err(error) = std::fs::remove_dir_all(&root)
        {
            eprintln!("{}: cannot remove {}: {error}; remove it by hand", self.name, root.display());
        }
    }
}

/// One run of one job, being put together.
pub struct JobRun<'d, 'p> {
    driver: &'d mut Driver<'p>,
    definition: String,
    parameters: Result<Value, serde_json::Error>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    reduces: Option<u32>,
}

impl JobRun<'_, '_> {
    /// What the definition is called with; none means `()`.
    pub fn parameters<P: Serialize>(mut self, parameters: &P) -> Self {
        self.parameters = serde_json::to_value(parameters);
        self
    }

    /// Input files, directories or globs.
    pub fn inputs<I>(mut self, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<Path>,
    {
        self.inputs = inputs.into_iter().map(|input| input.as_ref().to_owned()).collect();
        self
    }

    /// The output directory.
    pub fn output(mut self, output: impl AsRef<Path>) -> Self {
        self.output = output.as_ref().to_owned();
        self
    }

    /// How many reduce tasks, whatever the command line says.
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.reduces = Some(reduces);
        self
    }

    /// Runs the job to its end and prints its report.
    pub fn run(self) -> Result<JobReport, Error> {
        let driver = &*self.driver;
        let plan = self.plan()?;
        let settings = EmbeddedSettings {
            slots: driver.slots(),
            progress: driver.run.progress_mode(),
            quiet: driver.run.quiet,
        };
        if driver.intermediate.as_ref().is_some_and(|root| plan.output.starts_with(root))
            && let Some(parent) = plan.output.parent()
        {
            std::fs::create_dir_all(parent).map_err(|error| {
                Error::Usage(format!("cannot create {}: {error}; choose another --output", parent.display()))
            })?;
        }
        let report = run_embedded(plan, &settings)?;
        report::success(&report, driver.report, driver.run.quiet)
            .map_err(|error| Error::Usage(format!("cannot print the report: {error}")))?;
        Ok(report)
    }

    fn plan(&self) -> Result<JobPlan, Error> {
        let driver = &*self.driver;
        let parameters = match &self.parameters {
            Ok(parameters) => parameters.clone(),
            Err(error) => {
                return Err(Error::Usage(format!(
                    "parameters of {} cannot be encoded: {error}",
                    self.definition
                )));
            }
        };
        let settings = driver.settings.clone();
        let envelope = Envelope { settings: settings.clone(), parameters };
        let bytes = serde_json::to_vec(&envelope).map_err(|error| {
            Error::Usage(format!("parameters of {} cannot be encoded: {error}", self.definition))
        })?;
        let job =
            driver.program.build(&self.definition, &bytes).map_err(|error| Error::Usage(error.message))?;
        let split_size = driver.run.split_size.bytes();
        if split_size == 0 {
            return Err(Error::Usage("--split-size 0 leaves nothing to read; 64MiB is usual".to_owned()));
        }
        let files = expand(&self.inputs)?;
        let splits = job.pipeline.plan(&files, split_size)?;
        if !driver.run.quiet {
            for refusal in job.pipeline.refusals(&files, split_size) {
                eprintln!("{}: {refusal}; one map task reads all of it", driver.name);
            }
        }
        let reduces =
            if job.pipeline.map_only() { 0 } else { self.reduces.unwrap_or_else(|| driver.slots()) };
        let task_memory = driver.run.task_memory.bytes();
        let cuts = if job.pipeline.wants_cuts() {
            job.pipeline.sample(&splits, reduces, task_memory).map_err(Error::Sample)?
        } else {
            Vec::new()
        };
        Ok(JobPlan {
            name: driver.run.name.clone().unwrap_or_else(|| self.definition.clone()),
            parameters: bytes,
            splits,
            reduces,
            cuts,
            overwrite: driver.run.overwrite,
            attempts_max: settings.attempts_max,
            task_memory,
            compress: settings.compress,
            ..JobPlan::new(self.definition.clone(), self.output.clone())
        })
    }
}
