//! Jobs as values of a program: described, run on this machine or a cluster, and read back.
//!
//! A program calls [`init`](crate::init) at the beginning of `main`; everything else is ordinary Rust. Nothing is
//! printed, no signal is handled, and any number of jobs may run at once. A program that submits jobs to a cluster names
//! them, and calls [`Program::init`](crate::Program::init).
//!
//! ```no_run
//! use napreduce::run::{Cluster, Local};
//! use napreduce::{Job, Program, words};
//!
//! fn wordcount() -> Job<(String, u64)> {
//!     Job::text().flat_map(words).count()
//! }
//!
//! fn main() -> Result<(), napreduce::program::Error> {
//!     Program::new().job("wordcount", wordcount).init();
//!     let job = napreduce::job(wordcount).inputs(["README.md"]);
//!     let counts = job.clone().run(&Local::default())?.collect()?;
//!     println!("{} words", counts.len());
//!
//!     let handle = job.output("/shared/counts").start(&Cluster::at("/shared/cluster"))?;
//!     println!("{} runs on the cluster", handle.id());
//!     println!("{:?}", handle.wait()?.report());
//!     Ok(())
//! }
//! ```

#[cfg(feature = "cluster")]
mod cluster;
mod handle;
mod join;
mod local;
mod target;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use napreduce_local::check_reads;
use serde::Serialize;

#[cfg(feature = "cluster")]
pub use cluster::Cluster;
pub use handle::{JobHandle, Progress, ProgressWatch};
pub use join::DatasetJoin;
pub use local::Local;
pub use target::Target;

use crate::input::Skip;
use crate::program::dataset::{Dataset, Files, JobInput, TextOf};
use crate::program::definition::{Definition, FoundDefinition};
use crate::program::options::RunArguments;
use crate::program::plan::{Description, Planned, PlannedJob, Surroundings, plan};
use crate::program::{ByteSize, Error, side_files, transient_name, wording};
use crate::settings::{Settings, permille};

/// Describes a run of a job: its definition, parameters, inputs and options. `Kind` is inferred.
///
/// ```
/// use napreduce::run::Local;
/// use napreduce::{Dataset, Job, words};
///
/// # fn main() -> Result<(), napreduce::program::Error> {
/// let lines = Dataset::lines(["to be", "or not to be"])?;
/// let counts = napreduce::job(|| Job::text().flat_map(words).count()).inputs([&lines]).reduces(1);
/// assert_eq!(counts.run(&Local::threads())?.collect()?[0], ("be".to_owned(), 2));
/// # Ok(())
/// # }
/// ```
pub fn job<Kind, D: Definition<Kind>>(definition: D) -> JobRequest<D::Item> {
    JobRequest {
        definition: FoundDefinition::of(&definition),
        described: Description::default(),
        output: None,
        as_records: false,
        arguments: RunArguments::silent(PathBuf::new()),
        settings: Settings::default(),
        item: PhantomData,
    }
}

/// A run of a job under construction; made by [`job`]. Its options are those of the command line.
#[must_use = "a job runs when `run` or `start` is called"]
#[derive(Clone)]
pub struct JobRequest<T> {
    definition: FoundDefinition,
    /// Without the output.
    described: Description,
    /// Named by a person.
    output: Option<PathBuf>,
    /// Whether typed pairs are records in that directory, too.
    as_records: bool,
    arguments: RunArguments,
    settings: Settings,
    item: PhantomData<fn() -> T>,
}

impl<T> JobRequest<T> {
    /// Runs the job to its end and returns its output.
    ///
    /// # Errors
    /// As [`start`](JobRequest::start), or why the job failed.
    pub fn run(self, target: &dyn Target) -> Result<Dataset<T>, Error> {
        self.start(target)?.wait()
    }

    /// Starts the job and returns while it runs. Any number of jobs may run at once.
    ///
    /// On a cluster it returns when the coordinator has accepted the job. Tasks run the executable of this program, which
    /// is copied to the workers.
    ///
    /// # Errors
    /// Returns why the job cannot run: a missing input, an existing output, no coordinator, or what the cluster refuses.
    pub fn start(self, target: &dyn Target) -> Result<JobHandle<T>, Error> {
        Ok(target.start(self.with_item())?.with_item())
    }

    /// Returns the same request, whose output is read back as another type.
    fn with_item<U>(self) -> JobRequest<U> {
        let JobRequest {
            definition,
            described,
            output,
            as_records,
            arguments,
            settings,
            item: _,
        } = self;
        JobRequest {
            definition,
            described,
            output,
            as_records,
            arguments,
            settings,
            item: PhantomData,
        }
    }

    /// Sets the parameters of the definition; without a call they are `()`.
    pub fn parameters<P: Serialize>(mut self, parameters: &P) -> Self {
        self.described.set_parameters(parameters);
        self
    }

    /// Sets the inputs: datasets, files, directories or globs.
    pub fn inputs<I>(mut self, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        self.described.set_inputs(inputs);
        self
    }

    /// Sets the files of a named input, for a job with several inputs.
    pub fn input<I>(mut self, name: &str, inputs: I) -> Self
    where
        I: IntoIterator,
        I::Item: JobInput,
    {
        self.described.add_named_inputs(name, inputs);
        self
    }

    /// Sets the directory to create for the output. It stays, and typed pairs are written there as lines of text, which
    /// is what [`TextOf`] says; [`as_records`](JobRequest::as_records) keeps them as records. Without a directory the
    /// output is temporary, and its pairs are read back with [`collect`](crate::Dataset::collect).
    pub fn output(mut self, directory: impl AsRef<Path>) -> JobRequest<TextOf<T>> {
        self.output = Some(directory.as_ref().to_owned());
        self.as_records = false;
        self.with_item()
    }

    /// Replaces an existing output when the job succeeds.
    pub fn overwrite(mut self) -> Self {
        self.arguments.overwrite = true;
        self
    }

    /// Sets the number of reduce tasks and part files.
    pub fn reduces(mut self, reduces: u32) -> Self {
        self.described.reduces = Some(reduces);
        self
    }

    /// Sets the name of the job. Default: that of the definition.
    pub fn name(mut self, name: &str) -> Self {
        self.arguments.name = Some(name.to_owned());
        self
    }

    /// Sets the bytes of input that one map task reads. Default: 64 MiB.
    pub fn split_size(mut self, bytes: u64) -> Self {
        self.arguments.split_size = ByteSize::new(bytes);
        self
    }

    /// Sets the bytes of memory that one task may use for records. Default: 256 MiB.
    pub fn task_memory(mut self, bytes: u64) -> Self {
        self.arguments.task_memory = ByteSize::new(bytes);
        self
    }

    /// Sets how much bad input a map task skips: rows that are not of the job's type, and records that the job's map
    /// rejects. Default: none, the first one fails the job.
    ///
    /// ```
    /// use napreduce::builder::BadRecord;
    /// use napreduce::input::Skip;
    /// use napreduce::run::Local;
    /// use napreduce::{Dataset, Job};
    ///
    /// fn halves() -> Job {
    ///     Job::text().map_only(|line: &str, out| -> Result<(), BadRecord> {
    ///         out.emit(line.parse::<u64>()? / 2, ());
    ///         Ok(())
    ///     })
    /// }
    ///
    /// # fn main() -> Result<(), napreduce::program::Error> {
    /// let lines = Dataset::lines(["4", "x", "6"])?;
    /// let halves = napreduce::job(halves).inputs([&lines]).on_bad_input(Skip::AtMost(20));
    /// assert_eq!(halves.run(&Local::threads())?.collect()?, ["2", "3"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_bad_input(mut self, skip: Skip) -> Self {
        self.settings.bad_input = skip;
        self
    }

    /// Sets how many failures of one task fail the job. Default: 4.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.settings.attempts_max = attempts;
        self
    }

    /// Sets the time without progress after which a task is killed and retried; zero for never. Default: 10 minutes.
    pub fn task_timeout(mut self, timeout: Duration) -> Self {
        self.settings.task_timeout = timeout;
        self
    }

    /// Sets whether one map task may read several small files. Default: true.
    pub fn combine_files(mut self, combine: bool) -> Self {
        self.settings.combine_files = combine;
        self
    }

    /// Sets the share of maps that end before reduces start, from 0 to 1. Default: 0.8.
    pub fn slowstart(mut self, share: f64) -> Self {
        match permille(share) {
            Some(share) => self.settings.slowstart_permille = share,
            None => self
                .described
                .reject(format!("slowstart {share}: use 0 to 1")),
        }
        self
    }

    /// Sets how many sorted runs are merged at once, from 2 to 1,024. Default: 256.
    pub fn fan_in(mut self, runs: u32) -> Self {
        self.settings.fan_in = runs;
        self
    }

    /// Compresses the output of maps on local disk.
    pub fn compress_map_output(mut self) -> Self {
        self.settings.compress = true;
        self
    }

    /// Syncs map output, checkpoints and output to disk. The output of jobs on a cluster always is.
    pub fn durable(mut self) -> Self {
        self.settings.durable = true;
        self
    }

    /// Sets the bytes that a [side file](JobRequest::side_file) may have on a cluster. Default: 4 GiB.
    pub fn side_file_max(mut self, bytes: u64) -> Self {
        self.settings.side_file_max = bytes;
        self
    }

    /// Adds a file that every task finds by this name, as `--files PATH#NAME` does.
    pub fn side_file(mut self, name: &str, path: impl AsRef<Path>) -> Self {
        match side_files::named(path.as_ref(), name) {
            Ok(file) => self.arguments.cluster.files.push(vec![file]),
            Err(error) => self.described.reject(error),
        }
        self
    }

    /// Sets the queue on a cluster. Default: `default`.
    pub fn queue(mut self, queue: &str) -> Self {
        self.arguments.cluster.queue = Some(queue.to_owned());
        self
    }

    /// Sets the priority on a cluster; jobs of higher priority run first. Default: 0.
    pub fn priority(mut self, priority: i32) -> Self {
        self.arguments.cluster.priority = Some(priority);
        self
    }

    /// Sets the time until the job should end, which some schedulers of clusters use.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.arguments.cluster.deadline = Some(deadline);
        self
    }

    /// Also reads files in subdirectories of the inputs.
    pub fn recursive(mut self) -> Self {
        self.arguments.recursive = true;
        self
    }

    /// Plans the job for tasks that write to `output`. `finds_files` says whether tasks find side files at their paths
    /// on this machine.
    fn plan(
        &self,
        job: &PlannedJob<'_>,
        output: &Files,
        finds_files: bool,
        surroundings: &mut dyn Surroundings,
    ) -> Result<Planned, Error> {
        wording::use_methods();
        self.settings.check().map_err(Error::Usage)?;
        let described = Description {
            output: output.path().to_owned(),
            records: self.output.is_none() || self.as_records,
            ..self.described.clone()
        };
        let files =
            side_files::by_name(&self.arguments.cluster.files.concat()).map_err(Error::Usage)?;
        let shipped = if finds_files {
            files.clone()
        } else {
            BTreeMap::new()
        };
        // The definition is also called here.
        let planned = side_files::for_thread(files.clone(), || {
            plan(
                job,
                &described,
                &self.arguments,
                &self.settings,
                &shipped,
                surroundings,
            )
        })?;
        let inputs = planned
            .plan
            .splits
            .iter()
            .flat_map(|split| &split.parts)
            .map(|part| &part.path);
        check_reads(
            &planned.plan.output,
            inputs.chain(files.values()).cloned().collect(),
        )?;
        Ok(planned)
    }
}

/// Rejects an input that tasks cannot read in splits. A library does not read the standard input of its
/// program.
fn lasting_path(path: PathBuf) -> Result<PathBuf, Error> {
    if transient_name(&path).is_none() {
        return Ok(path);
    }
    Err(Error::Usage(format!(
        "input {}: standard input, a pipe or a file of unknown size cannot be read in splits; write its data to a file \
         and name that",
        path.display()
    )))
}

impl<T> JobRequest<TextOf<T>> {
    /// Writes typed pairs to the directory of [`output`](JobRequest::output) as records, which
    /// [`collect`](crate::Dataset::collect) and [`Job::records`](crate::Job::records) read.
    pub fn as_records(mut self) -> JobRequest<T> {
        self.as_records = true;
        self.with_item()
    }
}

/// Names of earlier versions.
impl<T> JobRequest<T> {
    #[doc(hidden)]
    #[deprecated(since = "0.4.0", note = "call `run(&local)`")]
    pub fn run_local(self, local: &Local) -> Result<Dataset<T>, Error> {
        self.run(local)
    }

    #[doc(hidden)]
    #[deprecated(since = "0.4.0", note = "call `start(&local)`")]
    pub fn start_local(self, local: &Local) -> Result<JobHandle<T>, Error> {
        self.start(local)
    }

    #[doc(hidden)]
    #[deprecated(since = "0.4.0", note = "call `run(&cluster)`")]
    #[cfg(feature = "cluster")]
    pub fn run_on(self, cluster: &Cluster) -> Result<Dataset<T>, Error> {
        self.run(cluster)
    }

    #[doc(hidden)]
    #[deprecated(since = "0.4.0", note = "call `start(&cluster)`")]
    #[cfg(feature = "cluster")]
    pub fn submit(self, cluster: &Cluster) -> Result<JobHandle<T>, Error> {
        self.start(cluster)
    }

    #[doc(hidden)]
    #[deprecated(
        since = "0.4.0",
        note = "call the method of the setting: `attempts_max`, `combine_files`, `compress_map_output`, `durable`, \
                `fan_in`, `side_file_max`, `slowstart` or `task_timeout`"
    )]
    pub fn setting(mut self, setting: &str) -> Self {
        if let Err(error) = self.settings.set_pair(setting) {
            self.described.reject(error.to_string());
        }
        self
    }
}
