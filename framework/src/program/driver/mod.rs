//! The driver of a program: it runs jobs in sequence, with outputs of one as inputs of the next. It manages
//! intermediate directories and checks the output before the first job.

mod deadline;
mod job_run;
mod reading;
mod standard_input;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use napreduce_local::{
    Chain, EmbeddedSettings, KeepChain, OutputReservation, check_output, check_reads, run_embedded,
};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{JobPlan, JobReport, StorageScheme};

use self::deadline::ChainDeadline;
pub(crate) use self::standard_input::transient_name;
use self::standard_input::{DASH, SpooledInput, compared_path};
use super::cluster::{Following, Submit};
use super::definition::{Definition, FoundDefinition};
use super::engine::{Engine, EngineKind};
use super::error::Error;
use super::options::{ReportFormat, RunArguments};
use super::plan::PlannedJob;
use super::{Program, report, side_files};
use crate::settings::Settings;
pub use job_run::JobRun;

/// Runs the jobs of a program. Intermediate directories are removed when it is dropped.
///
/// ```
/// use napreduce::program::Error;
/// use napreduce::{Driver, Job};
///
/// fn numbers() -> Job<(u64, u64)> {
///     Job::text().flat_map(|line: &str| [line.parse::<u64>().map(|number| (number, number))]).sum()
/// }
///
/// fn add_neighbours() -> Job<(u64, u64)> {
///     Job::records::<u64, u64>().flat_map(|(place, sum): (u64, u64)| [(place / 2, sum)]).sum()
/// }
///
/// /// Adds up numbers until there is only one sum left.
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     let mut sums = driver.job(numbers).dataset()?;
///     while sums.fold(0, |count, _| count + 1)? > 1 {
///         sums = driver.job(add_neighbours).inputs([&sums]).dataset()?;
///     }
///     driver.job(add_neighbours).inputs([&sums]).run().map(drop)
/// }
/// # let _ = drive;
/// ```
#[must_use = "a driver runs jobs: call `job`"]
pub struct Driver<'p> {
    program: &'p Program,
    name: &'p str,
    run: RunArguments,
    report: ReportFormat,
    settings: Settings,
    /// Side files by name, with their current paths.
    files: BTreeMap<String, PathBuf>,
    chain: Chain,
    /// Whether data passes from one job to another.
    is_chain: bool,
    /// The `--deadline` that all its jobs share.
    deadline: Option<ChainDeadline>,
    /// Whether `--output` was checked before the first job.
    output_checked: bool,
    /// Whether a job has written there, or tried to.
    output_used: bool,
    /// Claims `--output` until the job that writes there does.
    reservation: Option<OutputReservation>,
    /// The cluster to run on; `None` for this program's own processes.
    cluster: Option<Box<dyn Submit>>,
    /// The external engine to run on, if any.
    engine_kind: Option<EngineKind>,
    /// Started when the first job needs it.
    engine: Option<Engine>,
    /// Files that the jobs so far have read but not written.
    reads: BTreeSet<PathBuf>,
    /// The outputs of the jobs so far.
    written: Vec<PathBuf>,
    /// Inputs that can be read only once, by name; read when the first job needs them.
    spooled: BTreeMap<PathBuf, SpooledInput>,
    /// How many datasets its jobs have made.
    datasets: u32,
}

impl<'p> Driver<'p> {
    pub(crate) fn new(
        program: &'p Program,
        name: &'p str,
        run: RunArguments,
        report: ReportFormat,
        settings: Settings,
    ) -> Result<Driver<'p>, Error> {
        let files = side_files::by_name(&run.cluster.files.concat()).map_err(Error::Usage)?;
        // Definitions are also called here, for planning.
        side_files::set_local(files.clone());
        let engine_kind = run.engine.kind()?;
        let cluster = match &engine_kind {
            Some(_) => {
                run.engine.beside(&run.cluster, run.slots)?;
                None
            }
            None => run.cluster.cluster(Following {
                progress: run.progress_mode(),
                quiet: run.quiet,
                file_bytes_max: settings.side_file_max,
            })?,
        };
        if cluster.is_some() && run.slots.is_some() && !run.quiet {
            print_error(format_args!(
                "{name}: --slots does not change the slots of a cluster's workers; it only sets the number of reduces \
                 unless --reduces is given"
            ));
        }
        let chain = Chain::next_to(&chain_place(&run))?;
        let deadline = run.cluster.deadline.and_then(ChainDeadline::of);
        Ok(Driver {
            program,
            name,
            run,
            report,
            settings,
            files,
            chain,
            is_chain: false,
            deadline,
            output_checked: false,
            output_used: false,
            reservation: None,
            cluster,
            engine_kind,
            engine: None,
            reads: BTreeSet::new(),
            written: Vec::new(),
            spooled: BTreeMap::new(),
            datasets: 0,
        })
    }

    #[cfg(feature = "cli")]
    pub(crate) fn is_quiet(&self) -> bool {
        self.run.quiet
    }

    /// Returns the INPUT arguments as typed.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.run.inputs
    }

    /// Returns the `--output` argument.
    pub fn output(&self) -> &Path {
        &self.run.output
    }

    /// Returns a directory for data between jobs, next to the output or below `--intermediate`. It is removed
    /// when the program and its jobs on a cluster have ended.
    #[must_use = "jobs find the directory by this path"]
    pub fn intermediate(&mut self, name: &str) -> PathBuf {
        self.is_chain = true;
        self.chain.root().join(name)
    }

    /// Sets how many jobs this program will still run. With `--deadline` on a cluster each job of a chain
    /// gets its own deadline. It leaves the later jobs as much time as runs of the same definition took, or
    /// an equal part. By default one more job is expected until one writes to `--output`.
    ///
    /// ```
    /// fn drive(driver: &mut napreduce::Driver) {
    ///     driver.expect_jobs(3);
    /// }
    /// ```
    pub fn expect_jobs(&mut self, jobs: u32) {
        if let Some(deadline) = &mut self.deadline {
            deadline.expect(jobs);
        }
    }

    /// Creates a run of a job; by default it uses the arguments of the command line. The job is a definition,
    /// or the name of one that was added with [`Program::job`].
    pub fn job<'d, Kind, J: DriverJob<Kind>>(&'d mut self, job: J) -> JobRun<'d, 'p, J::Item> {
        let FoundJob(job) = job.find(self.program);
        JobRun::new(self, job)
    }

    /// Returns the path of a side file given with `--files`.
    #[cfg(feature = "streaming")]
    pub(crate) fn side_file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// Adds a side file, as `--files` does.
    pub(crate) fn ship_file(&mut self, path: &Path, name: &str) -> Result<(), Error> {
        self.run
            .cluster
            .files
            .push(vec![side_files::named(path, name).map_err(Error::Usage)?]);
        self.files = side_files::by_name(&self.run.cluster.files.concat()).map_err(Error::Usage)?;
        side_files::set_local(self.files.clone());
        if let Some(cluster) = &mut self.cluster {
            cluster.set_side_files(&self.run.cluster.files.concat());
        }
        Ok(())
    }

    /// Adds a side file for all later jobs, as `--files PATH#NAME` does; replaces one of the same name. Its
    /// content is read when a job begins.
    ///
    /// ```
    /// use napreduce::program::Error;
    /// use napreduce::Driver;
    ///
    /// /// The second job finds what the first one wrote by `SideFile::new("frequent", load)`.
    /// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
    ///     let frequent = driver.intermediate("frequent");
    ///     driver.job("frequent").output(&frequent).reduces(1).run()?;
    ///     driver.set_side_file("frequent", frequent.join("part-r-00000"))?;
    ///     driver.job("pairs").run().map(drop)
    /// }
    /// # let _ = drive;
    /// ```
    pub fn set_side_file(&mut self, name: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        for listed in &mut self.run.cluster.files {
            listed.retain(|before| before.name != name);
        }
        self.ship_file(path.as_ref(), name)
    }

    /// Checks `--output` before the first job, so that a program does not fail after hours in its last job. A
    /// job that writes there itself claims it.
    fn check_output(&mut self, of_job: &Path) -> Result<(), Error> {
        let output = &self.run.output;
        if !std::mem::replace(&mut self.output_checked, true) && !lies_within(of_job, output) {
            check_output(output, self.run.overwrite)?;
        }
        Ok(())
    }

    /// Rejects an output directory with a file that this job or an earlier one reads, including side files. A
    /// later job may replace the output of an earlier one.
    fn check_reads(&mut self, plan: &JobPlan) -> Result<(), Error> {
        let inputs = plan
            .splits
            .iter()
            .flat_map(|split| &split.parts)
            .map(|part| &part.path);
        let reads = inputs.chain(self.files.values());
        let reads =
            reads.filter(|path| !self.written.iter().any(|output| path.starts_with(output)));
        self.reads.extend(reads.cloned());
        check_reads(&plan.output, self.reads.iter().cloned().collect())?;
        self.written.push(plan.output.clone());
        Ok(())
    }

    /// Prepares the first job of a chain: claims `--output`, unless this job does, and creates the
    /// intermediate directory. Returns the chain of the job on a cluster.
    fn begin_chain(&mut self, output: &Path) -> Result<Option<u128>, Error> {
        if !self.is_chain {
            return Ok(None);
        }
        let has_no_directory =
            self.run.intermediate.is_none() && StorageScheme::from_path(&self.run.output).is_some();
        if self.cluster.is_some() && has_no_directory {
            return Err(Error::Usage(
                "this program runs several jobs, so it needs a directory for intermediate data that all workers \
                 see, and the output is in a store; name the directory with --intermediate DIR"
                    .to_owned(),
            ));
        }
        if let Some(directory) = self
            .run
            .intermediate
            .as_ref()
            .filter(|directory| !directory.is_dir())
        {
            let directory = directory.display();
            return Err(Error::Usage(format!(
                "--intermediate {directory} is not a directory; create it, or name another"
            )));
        }
        let is_due = self.reservation.is_none() && !self.output_used;
        if is_due && !lies_within(output, &self.run.output) {
            self.reservation = Some(OutputReservation::take(
                &self.run.output,
                self.run.overwrite,
            )?);
        }
        let cluster = self.cluster.as_deref();
        let keep = cluster.map(|cluster| move |chain, root| cluster.keep_chain(chain, root));
        for line in self
            .chain
            .begin(keep.as_ref().map(|keep| keep as KeepChain<'_>))?
        {
            if !self.run.quiet {
                print_error(format_args!("{}: {line}", self.name));
            }
        }
        Ok(self.chain.token())
    }

    /// Releases the claim on `--output` for a job that writes there.
    fn give_way(&mut self, output: &Path) -> Result<(), Error> {
        if !lies_within(output, &self.run.output) {
            return Ok(());
        }
        self.output_used = true;
        self.reservation
            .take()
            .map_or(Ok(()), OutputReservation::give_back)
            .map_err(Error::from)
    }

    /// Returns the copy that tasks read, if `path` can be read only once.
    fn spooled_path(&mut self, path: PathBuf) -> Result<PathBuf, Error> {
        let Some(name) = transient_name(&path) else {
            return Ok(path);
        };
        if self.is_elsewhere() {
            let shown = if name == Path::new(DASH) {
                "standard input (-)".into()
            } else {
                name.to_string_lossy()
            };
            return Err(Error::Usage(format!(
                "{shown} is not visible to the tasks of a cluster; write it to a file that all workers see, and name \
                 path"
            )));
        }
        // The copy is a file of its own; what it was copied from must not be part of the output either.
        self.reads.insert(compared_path(&name).to_owned());
        if let Some(spooled) = self.spooled.get(&name) {
            return Ok(spooled.path());
        }
        let spooled = SpooledInput::read(&name)?;
        Ok(self.spooled.entry(name).or_insert(spooled).path())
    }

    /// Returns whether tasks are not children of this process and have another working directory.
    fn is_elsewhere(&self) -> bool {
        self.cluster.is_some() || self.engine_kind.is_some()
    }

    /// Starts the engine if necessary and returns it; `None` without `--on`.
    fn engine(&mut self) -> Result<Option<&mut Engine>, Error> {
        let Some(kind) = &self.engine_kind else {
            return Ok(None);
        };
        if self.engine.is_none() {
            let progress = self.run.progress_mode();
            let quiet = self.run.quiet;
            let attempts_max = self.settings.attempts_max;
            self.engine = Some(Engine::start(
                kind,
                self.name,
                attempts_max,
                progress,
                quiet,
            )?);
        }
        Ok(self.engine.as_mut())
    }

    /// Sets the next job's part of `--deadline`, which all jobs of a chain share.
    fn share_deadline(&self, definition: &str, plan: &mut JobPlan) {
        if let Some(deadline) = self.deadline.as_ref().filter(|_| self.is_chain) {
            let is_last = lies_within(&plan.output, &self.run.output);
            plan.deadline = Some(deadline.next(definition, is_last));
        }
    }

    fn slots(&self) -> u32 {
        self.run
            .slots
            .unwrap_or_else(|| EmbeddedSettings::default().slots)
    }

    fn execute(&mut self, plan: JobPlan) -> Result<JobReport, Error> {
        let settings = EmbeddedSettings {
            slots: self.slots(),
            progress: self.run.progress_mode(),
            quiet: self.run.quiet,
        };
        let feeds_another = self.is_chain;
        let files = self.files.clone();
        if let Some(engine) = self.engine()? {
            return engine.run(plan, &files);
        }
        let Some(cluster) = &mut self.cluster else {
            return Ok(run_embedded(plan, &settings)?);
        };
        if self.run.cluster.detach && feeds_another {
            return Err(Error::Usage(
                "this program runs several jobs and must keep running to start each one; remove \
                 --detach"
                    .to_owned(),
            ));
        }
        let ran = cluster.run(plan);
        if let Err(Error::Detached { job }) = &ran {
            report::detached(*job);
        }
        ran
    }
}

/// A job that a driver runs: a [`Definition`], or the name of one.
pub trait DriverJob<Kind> {
    /// The type as which a record of the output is read back.
    type Item;

    /// Finds the definition in the program.
    fn find(self, program: &Program) -> FoundJob<'_>;
}

/// The job that a driver is to run.
#[derive(Clone)]
pub struct FoundJob<'p>(PlannedJob<'p>);

impl<Kind, D: Definition<Kind>> DriverJob<Kind> for D {
    type Item = D::Item;

    fn find(self, _: &Program) -> FoundJob<'_> {
        FoundJob(PlannedJob::of(FoundDefinition::of(&self)))
    }
}

/// The kind of a job that is found by its name.
#[derive(Debug)]
pub enum ByName {}

impl DriverJob<ByName> for &str {
    type Item = String;

    fn find(self, program: &Program) -> FoundJob<'_> {
        FoundJob(PlannedJob::Named(program, self.to_owned()))
    }
}

impl DriverJob<ByName> for &String {
    type Item = String;

    fn find(self, program: &Program) -> FoundJob<'_> {
        FoundJob(PlannedJob::Named(program, self.clone()))
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        if let Err(left) = self.chain.end() {
            print_error(format_args!("{}: {left}", self.name));
        }
    }
}

/// Returns the path next to which a chain's directory is created: the output by default.
fn chain_place(run: &RunArguments) -> PathBuf {
    let name = run.output.file_name().unwrap_or("output".as_ref());
    match (&run.intermediate, StorageScheme::from_path(&run.output)) {
        (Some(directory), _) => directory.join(name),
        (None, None) => run.output.clone(),
        (None, Some(_)) => std::env::temp_dir().join(name),
    }
}

/// Returns whether a path is a directory or inside it, after resolving both.
fn lies_within(path: &Path, directory: &Path) -> bool {
    let resolved = directory.canonicalize().ok();
    path.ancestors().any(|part| {
        part == directory || (resolved.is_some() && part.canonicalize().ok() == resolved)
    })
}
