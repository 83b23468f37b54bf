//! One run of one job of a driver.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use napreduce_protocol::JobReport;
use napreduce_protocol::printing::print_error;
use serde::Serialize;

use super::Driver;
use crate::program::dataset::{Dataset, Files, JobInput};
use crate::program::plan::{Description, PlannedJob, Surroundings, plan};
use crate::program::{Error, report};

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
#[must_use = "a job runs when its `run` or `dataset` is called"]
pub struct JobRun<'d, 'p, T = String> {
    driver: &'d mut Driver<'p>,
    job: PlannedJob<'p>,
    described: Description,
    item: PhantomData<fn() -> T>,
}

impl<'d, 'p, T> JobRun<'d, 'p, T> {
    /// Creates a run with the options of the command line.
    pub(super) fn new(driver: &'d mut Driver<'p>, job: PlannedJob<'p>) -> JobRun<'d, 'p, T> {
        let described = Description {
            inputs: driver.run.inputs.clone(),
            output: driver.run.output.clone(),
            ..Description::default()
        };
        JobRun {
            driver,
            job,
            described,
            item: PhantomData,
        }
    }

    /// Sets the parameters of the definition; without a call they are `()`.
    pub fn parameters<P: Serialize>(mut self, parameters: &P) -> Self {
        self.described.set_parameters(parameters);
        self
    }

    /// Sets the inputs: datasets of earlier jobs, or files, directories or globs, as INPUT on the command line.
    pub fn inputs<I>(mut self, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        self.described.set_inputs(inputs);
        self
    }

    /// Sets the files of a named input, for a job with several inputs. This replaces all inputs of the
    /// command line, so call it for each name.
    ///
    /// ```
    /// use napreduce::program::Error;
    /// use napreduce::{Driver, Job};
    /// # fn users() -> Job { Job::text().map_only(|line: &str, out| out.emit(line, ())) }
    /// # fn join() -> Job { Job::text().map_only(|line: &str, out| out.emit(line, ())) }
    ///
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     let users = driver.job(users).dataset()?;
    ///     driver.job(join).input("users", [&users]).input("orders", ["orders.csv"]).run().map(drop)
    /// }
    /// # let _ = drive;
    /// ```
    pub fn input<I>(mut self, name: &str, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        if self.described.named_inputs.is_empty() {
            self.described.inputs.clear();
        }
        self.described.add_named_inputs(name, inputs);
        self
    }

    /// Sets the output directory.
    pub fn output(mut self, output: impl AsRef<Path>) -> Self {
        self.described.output = output.as_ref().to_owned();
        self
    }

    /// Sets the number of reduce tasks; overrides the command line.
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.described.reduces = Some(reduces);
        self
    }

    /// Runs the job to its end, with its output in `--output` or in the directory of [`output`](JobRun::output), and
    /// prints its report.
    pub fn run(self) -> Result<JobReport, Error> {
        let driver = self.driver;
        driver.check_output(&self.described.output)?;
        // Workers place side files themselves.
        let files = if driver.is_elsewhere() {
            Default::default()
        } else {
            driver.files.clone()
        };
        let arguments = driver.run.clone();
        let settings = driver.settings.clone();
        let planned = plan(
            &self.job,
            &self.described,
            &arguments,
            &settings,
            &files,
            driver,
        )?;
        if !driver.run.quiet {
            for warning in planned.warnings {
                print_error(format_args!("{}: {warning}", driver.name));
            }
        }
        let mut plan = planned.plan;
        driver.check_reads(&plan)?;
        plan.chain = driver.begin_chain(&plan.output)?;
        driver.share_deadline(self.job.name(), &mut plan);
        let began = Instant::now();
        driver.give_way(&plan.output)?;
        let is_intermediate = plan.output.starts_with(driver.chain.root())
            && !driver.run.cluster.leaves_interrupted();
        let ran = driver.execute(plan);
        if driver.run.cluster.leaves_interrupted() {
            // A detached job still needs its intermediate input.
            self.described.files.into_iter().for_each(std::mem::forget);
        }
        let report = if is_intermediate {
            ran.map_err(Error::of_intermediate)?
        } else {
            ran?
        };
        if let Some(deadline) = &mut driver.deadline {
            deadline.ended(self.job.name(), began.elapsed());
        }
        report::success(&report, driver.report, driver.run.quiet);
        Ok(report)
    }

    /// Runs the job to its end, with its output in a new directory for data between jobs, and prints its report.
    /// Typed pairs are written as records there, which [`Job::records`](crate::Job::records) reads.
    ///
    /// The directory is removed when the last clone of the dataset is dropped.
    ///
    /// ```
    /// use napreduce::program::Error;
    /// use napreduce::{Driver, Job, words};
    ///
    /// fn count() -> Job<(String, u64)> {
    ///     Job::text().flat_map(words).count()
    /// }
    ///
    /// fn frequent() -> Job {
    ///     Job::records::<String, u64>().map_only(|(word, count), out| if count > 1 { out.emit(word, count) })
    /// }
    ///
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     let counts = driver.job(count).dataset()?;
    ///     driver.job(frequent).inputs([&counts]).run().map(drop)
    /// }
    /// # let _ = drive;
    /// ```
    pub fn dataset(mut self) -> Result<Dataset<T>, Error> {
        self.driver.datasets += 1;
        let name = format!(
            "{}-{}",
            self.job.name().replace('/', "-"),
            self.driver.datasets
        );
        self.described.output = self.driver.intermediate(&name);
        self.described.records = true;
        let files = Arc::new(Files::intermediate(self.described.output.clone()));
        let report = self.run()?;
        Ok(Dataset::new(files, Some(report)))
    }
}

impl Surroundings for Driver<'_> {
    fn default_reduces(&mut self) -> Result<u32, Error> {
        let slots = self.slots();
        match (self.run.slots, &mut self.cluster) {
            (None, Some(cluster)) => cluster.reduce_slots(),
            _ => Ok(slots),
        }
    }

    fn readable_path(&mut self, path: PathBuf) -> Result<PathBuf, Error> {
        self.spooled_path(path)
    }
}
