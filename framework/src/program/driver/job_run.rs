//! One run of one job: what is said about it, and the plan it becomes.
//!
//! Owns planning: inputs to splits, the sample for a total order. Does not own directories between jobs
//! (`driver`) nor how a plan runs (live runtime).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use napreduce_live::{JobPlan, JobReport};
use serde::Serialize;
use serde_json::Value;

use super::{Driver, cannot_print};
use crate::input::{combine, expand, stamp};
use crate::program::{Envelope, Error, report};

/// One run of one job, being put together.
///
/// ```
/// use napreduce::Driver;
/// use napreduce::program::{Error, JobRun};
///
/// fn drive(driver: &mut Driver, most: &u64) -> Result<(), Error> {
///     let counts = driver.intermediate("counts");
///     let run: JobRun = driver.job("top").parameters(most).inputs([&counts]).output("top").reduces(1);
///     run.run().map(drop)
/// }
/// # let _ = drive;
/// ```
#[must_use = "a job runs when its `run` is called"]
pub struct JobRun<'d, 'p> {
    driver: &'d mut Driver<'p>,
    definition: String,
    parameters: Result<Value, serde_json::Error>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    reduces: Option<u32>,
}

impl<'d, 'p> JobRun<'d, 'p> {
    /// With what the command line says.
    pub(super) fn new(driver: &'d mut Driver<'p>, definition: &str) -> JobRun<'d, 'p> {
        JobRun {
            definition: definition.to_owned(),
            parameters: Ok(Value::Null),
            inputs: driver.run.inputs.clone(),
            output: driver.run.output.clone(),
            reduces: driver.run.reduces,
            driver,
        }
    }
}

impl JobRun<'_, '_> {
    /// What the definition is called with; none means `()`.
    pub fn parameters<P: Serialize>(mut self, parameters: &P) -> Self {
        self.parameters = serde_json::to_value(parameters);
        self
    }

    /// Input files, directories or globs, as INPUT on the command line.
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
        self.driver.check_output(&self.output)?;
        let default_reduces = match self.reduces {
            Some(reduces) => reduces,
            None => self.driver.default_reduces()?,
        };
        let mut plan = self.plan(default_reduces)?;
        let driver = self.driver;
        plan.chain = driver.begin_chain(&plan.output)?;
        driver.share_deadline(&self.definition, &mut plan);
        let began = Instant::now();
        driver.give_way(&plan.output)?;
        // One that is left to itself keeps what it reads.
        let is_intermediate =
            plan.output.starts_with(driver.chain.root()) && !driver.run.cluster.leaves_interrupted();
        let ran = driver.execute(plan);
        let report = if is_intermediate { ran.map_err(Error::of_intermediate)? } else { ran? };
        if let Some(deadline) = &mut driver.deadline {
            deadline.ended(&self.definition, began.elapsed());
        }
        report::success(&report, driver.report, driver.run.quiet).map_err(cannot_print)?;
        Ok(report)
    }

    fn plan(&self, reduces: u32) -> Result<JobPlan, Error> {
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
        // Workers put them where they know.
        let files = if driver.place.is_some() { BTreeMap::new() } else { driver.files.clone() };
        let envelope = Envelope { settings: settings.clone(), files, parameters };
        let bytes = serde_json::to_vec(&envelope).map_err(|error| {
            Error::Usage(format!("parameters of {} cannot be encoded: {error}", self.definition))
        })?;
        let job =
            driver.program.build(&self.definition, &bytes).map_err(|error| Error::Usage(error.message))?;
        let split_size = driver.run.split_size.bytes();
        if split_size == 0 {
            return Err(Error::Usage("--split-size 0 leaves nothing to read; 64MiB is usual".to_owned()));
        }
        let files = expand(&self.inputs, driver.run.recursive)?;
        let mut splits = job.pipeline.plan(&files, split_size)?;
        if settings.combine_files {
            splits = combine(splits, split_size);
        }
        stamp(&mut splits)?;
        if !driver.run.quiet {
            for refusal in job.pipeline.refusals(&files, split_size) {
                eprintln!("{}: {refusal}; one map task reads all of it", driver.name);
            }
        }
        let reduces = if job.pipeline.map_only() { 0 } else { reduces };
        let task_memory = driver.run.task_memory.bytes();
        let cuts = if job.pipeline.wants_cuts() {
            job.pipeline.sample(&splits, reduces, task_memory).map_err(Error::Sample)?
        } else {
            Vec::new()
        };
        let mut plan = JobPlan {
            name: driver.run.name.clone().unwrap_or_else(|| self.definition.clone()),
            parameters: bytes,
            splits,
            reduces,
            cuts,
            overwrite: driver.run.overwrite,
            attempts_max: settings.attempts_max,
            task_memory,
            compress: settings.compress,
            slowstart_permille: settings.slowstart_permille,
            task_timeout: settings.task_timeout,
            checkpoint: job.pipeline.checkpoint_support(),
            durable: settings.durable,
            ..JobPlan::new(self.definition.clone(), self.output.clone())
        };
        driver.run.cluster.apply(&mut plan);
        Ok(plan)
    }
}
