//! The driver's side of a program: runs jobs one after another, outputs of one being inputs of the next.
//!
//! Owns planning (inputs to splits, sampling) and intermediate directories. Does not own how a plan runs (live
//! runtime).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use napreduce_live::{ClusterPlace, EmbeddedSettings, JobPlan, JobReport, run_embedded};
use serde::Serialize;
use serde_json::Value;

use super::arguments::{ReportFormat, RunArguments};
use super::cluster::Cluster;
use super::error::Error;
use super::side_files::SideFileArgument;
use super::{Envelope, Program, report, side_files};
use crate::input::expand;
use crate::job::Settings;

/// Runs the jobs of a program. Intermediate directories are removed when it is dropped.
pub struct Driver<'p> {
    program: &'p Program,
    name: &'p str,
    run: RunArguments,
    report: ReportFormat,
    settings: Settings,
    /// Side files by name, where they are now.
    files: BTreeMap<String, PathBuf>,
    intermediate: Option<PathBuf>,
    place: Option<ClusterPlace>,
    /// Connected when the first job needs it.
    cluster: Option<Cluster>,
}

impl<'p> Driver<'p> {
    pub(crate) fn new(
        program: &'p Program,
        name: &'p str,
        run: RunArguments,
        report: ReportFormat,
        settings: Settings,
    ) -> Result<Driver<'p>, Error> {
        let files = side_files::by_name(&run.cluster.files).map_err(Error::Usage)?;
        // Definitions are called here, too, to be planned.
        side_files::know(files.clone());
        let place = run.cluster.place()?;
        if place.is_some() && run.slots.is_some() && !run.quiet {
            eprintln!(
                "{name}: the workers of a cluster have their own slots; --slots only says how many reduces there are \
                 unless --reduces does"
            );
        }
        let (intermediate, cluster) = (None, None);
        Ok(Driver { program, name, run, report, settings, files, intermediate, place, cluster })
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.run.quiet
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

    /// Where a side file is that was given with `--files`.
    pub(crate) fn side_file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// Adds a side file, as `--files` does.
    pub(crate) fn take_along(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        self.run.cluster.files.push(SideFileArgument::new(path, name));
        self.files = side_files::by_name(&self.run.cluster.files).map_err(Error::Usage)?;
        side_files::know(self.files.clone());
        Ok(())
    }

    fn slots(&self) -> u32 {
        self.run.slots.unwrap_or_else(|| EmbeddedSettings::default().slots)
    }

    /// The cluster to run on, connected; `None` for this program's own processes.
    fn cluster(&mut self) -> Result<Option<&mut Cluster>, Error> {
        let Some(place) = &self.place else { return Ok(None) };
        if self.cluster.is_none() {
            let (progress, quiet) = (self.run.progress_mode(), self.run.quiet);
            let file_bytes_max = self.settings.side_file_max;
            let connected =
                Cluster::connect(place.clone(), &self.run.cluster, progress, quiet, file_bytes_max)?;
            self.cluster = Some(connected);
        }
        Ok(self.cluster.as_mut())
    }

    /// As many reduces as can run at once.
    fn default_reduces(&mut self) -> Result<u32, Error> {
        let slots = self.slots();
        match (self.run.slots, self.cluster()?) {
            (None, Some(cluster)) => cluster.reduce_slots(),
            _ => Ok(slots),
        }
    }

    fn execute(&mut self, plan: JobPlan) -> Result<JobReport, Error> {
        let settings = EmbeddedSettings {
            slots: self.slots(),
            progress: self.run.progress_mode(),
            quiet: self.run.quiet,
        };
        let feeds_another = self.intermediate.is_some();
        let Some(cluster) = self.cluster()? else { return Ok(run_embedded(plan, &settings)?) };
        if cluster.detaches() && feeds_another {
            return Err(Error::Usage(
                "this program runs several jobs, one on the output of the other, and must stay for that; leave out \
                 --detach"
                    .to_owned(),
            ));
        }
        let ran = cluster.run(plan);
        if let Err(Error::Detached { job }) = &ran {
            report::detached(*job).map_err(cannot_print)?;
        }
        ran
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

fn cannot_print(error: std::io::Error) -> Error {
    Error::Usage(format!("cannot print the report: {error}"))
}

/// One run of one job, being put together.
#[must_use = "a job runs when its `run` is called"]
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
        let default_reduces = match self.reduces {
            Some(reduces) => reduces,
            None => self.driver.default_reduces()?,
        };
        let plan = self.plan(default_reduces)?;
        let driver = self.driver;
        if driver.intermediate.as_ref().is_some_and(|root| plan.output.starts_with(root))
            && let Some(parent) = plan.output.parent()
        {
            std::fs::create_dir_all(parent).map_err(|error| {
                Error::Usage(format!("cannot create {}: {error}; choose another --output", parent.display()))
            })?;
        }
        let is_intermediate = driver.intermediate.as_ref().is_some_and(|root| plan.output.starts_with(root));
        let ran = driver.execute(plan);
        let report = if is_intermediate { ran.map_err(Error::of_intermediate)? } else { ran? };
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
        let splits = job.pipeline.plan(&files, split_size)?;
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
