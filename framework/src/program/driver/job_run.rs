//! One run of one job, and its planning: from inputs to splits, with the sample for a total order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobPlan, JobReport};
use serde::Serialize;
use serde_json::Value;

use super::Driver;
use super::named_paths::{NamedPath, by_input};
use crate::builder::Job;
use crate::input::{about_empty, expand, stamp};
use crate::program::{Envelope, Error, report};
use crate::settings::Settings;

/// One run of one job, under construction.
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
    /// As typed, with names.
    inputs: Vec<PathBuf>,
    named_inputs: Vec<NamedPath>,
    output: PathBuf,
    reduces: Option<u32>,
}

impl<'d, 'p> JobRun<'d, 'p> {
    /// Creates a run with the options of the command line.
    pub(super) fn new(driver: &'d mut Driver<'p>, definition: &str) -> JobRun<'d, 'p> {
        JobRun {
            definition: definition.to_owned(),
            parameters: Ok(Value::Null),
            inputs: driver.run.inputs.clone(),
            named_inputs: Vec::new(),
            output: driver.run.output.clone(),
            reduces: None,
            driver,
        }
    }
}

impl JobRun<'_, '_> {
    /// Sets the parameters of the definition; without a call they are `()`.
    pub fn parameters<P: Serialize>(mut self, parameters: &P) -> Self {
        self.parameters = serde_json::to_value(parameters);
        self
    }

    /// Sets the inputs: files, directories or globs, as INPUT on the command line.
    pub fn inputs<I>(mut self, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<Path>,
    {
        self.inputs = inputs.into_iter().map(|input| input.as_ref().to_owned()).collect();
        self
    }

    /// Sets the files of a named input, for a job with several inputs. This replaces all inputs of the
    /// command line, so call it for each name.
    ///
    /// ```
    /// use napreduce::Driver;
    /// use napreduce::program::Error;
    ///
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     let users = driver.intermediate("users");
    ///     driver.job("users").output(&users).run()?;
    ///     driver.job("join").input("users", [&users]).input("orders", ["orders.csv"]).run().map(drop)
    /// }
    /// # let _ = drive;
    /// ```
    pub fn input<I>(mut self, name: &str, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<Path>,
    {
        if self.named_inputs.is_empty() {
            self.inputs.clear();
        }
        let paths = inputs.into_iter().map(|path| (Some(name.to_owned()), path.as_ref().to_owned()));
        self.named_inputs.extend(paths);
        self
    }

    /// Sets the output directory.
    pub fn output(mut self, output: impl AsRef<Path>) -> Self {
        self.output = output.as_ref().to_owned();
        self
    }

    /// Sets the number of reduce tasks; overrides the command line.
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.reduces = Some(reduces);
        self
    }

    /// Runs the job to its end and prints its report.
    pub fn run(mut self) -> Result<JobReport, Error> {
        self.driver.check_output(&self.output)?;
        let mut plan = self.plan()?;
        let driver = self.driver;
        driver.check_reads(&plan)?;
        plan.chain = driver.begin_chain(&plan.output)?;
        driver.share_deadline(&self.definition, &mut plan);
        let began = Instant::now();
        driver.give_way(&plan.output)?;
        // A detached job still needs its intermediate input.
        let is_intermediate =
            plan.output.starts_with(driver.chain.root()) && !driver.run.cluster.leaves_interrupted();
        let ran = driver.execute(plan);
        let report = if is_intermediate { ran.map_err(Error::of_intermediate)? } else { ran? };
        if let Some(deadline) = &mut driver.deadline {
            deadline.ended(&self.definition, began.elapsed());
        }
        report::success(&report, driver.report, driver.run.quiet);
        Ok(report)
    }

    /// Returns the number of reduces: that of this run, else of the command line, else of the definition,
    /// else as many as can run at once.
    fn reduce_count(&mut self, job: &Job) -> Result<u32, Error> {
        let said = match job.pipeline.reduces() {
            Some(0) => return Ok(0),
            of_definition => self.reduces.or(self.driver.run.reduces).or(of_definition),
        };
        match said {
            Some(reduces) => Ok(reduces),
            None => self.driver.default_reduces(),
        }
    }

    /// Returns the encoded parameters for tasks.
    fn envelope(&self, settings: &Settings) -> Result<Vec<u8>, Error> {
        let unencodable = |error: &serde_json::Error| {
            Error::Usage(format!("parameters of {} cannot be encoded: {error}", self.definition))
        };
        let parameters = self.parameters.as_ref().map_err(unencodable)?;
        let driver = &*self.driver;
        // Workers place side files themselves.
        let files = if driver.is_elsewhere() { BTreeMap::new() } else { driver.files.clone() };
        let envelope = Envelope { settings: settings.clone(), files, parameters };
        serde_json::to_vec(&envelope).map_err(|error| unencodable(&error))
    }

    fn plan(&mut self) -> Result<JobPlan, Error> {
        let mut settings = self.driver.settings.clone();
        let built = self.driver.program.build(&self.definition, &self.envelope(&settings)?);
        let mut job = built.map_err(|error| Error::Usage(error.message))?;
        let reduces = self.reduce_count(&job)?;
        let paths = by_input(&job.pipeline.input_names(), &self.inputs, &self.named_inputs);
        let mut paths = paths.map_err(Error::Usage)?;
        for path in paths.iter_mut().flatten() {
            *path = self.driver.spooled_path(std::mem::take(path))?;
        }
        let driver = &*self.driver;
        let split_size = driver.run.split_size.bytes();
        if split_size == 0 {
            return Err(Error::Usage("--split-size 0: must be positive (default 64MiB)".to_owned()));
        }
        let files = paths.iter().map(|paths| expand(paths, driver.run.recursive));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let mut splits = job.split(&files, split_size, &mut settings)?;
        stamp(&mut splits)?;
        if !driver.run.quiet {
            if let Some(warning) = about_empty(&files) {
                print_error(format_args!("{}: {warning}", driver.name));
            }
            for refusal in job.pipeline.refusals(&files, split_size) {
                print_error(format_args!("{}: {refusal}; one map task reads all of it", driver.name));
            }
        }
        let task_memory = driver.run.task_memory.bytes();
        let cuts = job.pipeline.cuts(&splits, reduces, task_memory).map_err(Error::Sample)?;
        let mut plan = JobPlan {
            name: driver.run.name.clone().unwrap_or_else(|| self.definition.clone()),
            parameters: self.envelope(&settings)?,
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
