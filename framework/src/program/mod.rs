//! Driver, local runner and task process in one executable. A task process never runs driver code.
//!
//! ```no_run
//! use napreduce::program::Error;
//! use napreduce::{Driver, Job, Program};
//!
//! fn copy() -> Job {
//!     Job::text().map_only(|line: &str, out| out.emit(line, ()))
//! }
//!
//! fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
//!     driver.job("copy").run().map(drop)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Program::new().about("Copies lines").job("copy", copy).drive(drive)
//! }
//! ```

#[cfg(feature = "cli")]
mod arguments;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
pub(crate) mod cluster;
pub mod dataset;
pub(crate) mod definition;
mod driver;
mod ended;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
mod engine;
mod envelope;
mod error;
mod executable;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "only a command line has secrets")
)]
mod invocation;
mod named_paths;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
pub(crate) mod options;
pub(crate) mod plan;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
mod report;
#[cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the flags alone name some of it")
)]
pub(crate) mod side_files;
mod stores;
pub(crate) mod typed_paths;
pub(crate) mod wording;

use std::any::TypeId;
use std::collections::BTreeMap;
#[cfg(feature = "cli")]
use std::ffi::OsString;
use std::path::Path;
#[cfg(feature = "cli")]
use std::process::ExitCode;
#[cfg(feature = "cli")]
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "cli")]
use clap::Args;
use napreduce_protocol::TaskError;
#[cfg(feature = "cli")]
use napreduce_protocol::printing::finish;
use napreduce_task::{
    Definitions, TaskRunner, serve_forks_before_main, task_process_main, task_process_requested,
};
use serde::Serialize;
#[cfg(feature = "cli")]
use serde::de::DeserializeOwned;

#[cfg(feature = "cli")]
use arguments::{CommandLine, Face};
pub use definition::Definition;
pub(crate) use driver::transient_name;
pub use driver::{Driver, JobRun};
pub use ended::{CounterValues, JobError, JobReport, PartReport};
use envelope::{Addressed, Envelope, SentParameters};
pub use error::Error;
use options::{ReportFormat, RunArguments};

/// A number of bytes with a unit, for a program's own parameters.
///
/// ```
/// use napreduce::program::ByteSize;
///
/// #[derive(clap::Args, serde::Serialize, serde::Deserialize)]
/// struct Sample {
///     /// How much to read, such as 10MiB
///     #[arg(long, value_parser = |text: &str| text.parse::<ByteSize>().map(ByteSize::bytes))]
///     most: u64,
/// }
///
/// assert_eq!("64MiB".parse::<ByteSize>().map(ByteSize::bytes), Ok(64 << 20));
/// ```
pub use napreduce_protocol::ByteSize;

/// The error for an invalid byte size.
///
/// ```
/// use napreduce::program::{ByteSize, ByteSizeError};
///
/// assert!(matches!("much".parse::<ByteSize>(), Err(ByteSizeError::Unreadable { text }) if text == "much"));
/// ```
pub use napreduce_protocol::ByteSizeError;

#[cfg(feature = "streaming")]
pub(crate) use side_files::all as all_side_files;
#[cfg(any(doc, feature = "testing"))]
pub(crate) use side_files::set_local as set_side_files;
pub use side_files::{SideFile, side_file};
pub use stores::know_stores;

use crate::builder::Pipeline;
use crate::settings::Settings;

/// Parameters of a job definition: parsed from the command line and sent to task processes. Implemented for
/// all types with these traits.
///
/// ```
/// use napreduce::program::Parameters;
/// use napreduce::Job;
///
/// #[derive(clap::Args, serde::Serialize, serde::Deserialize)]
/// struct Search {
///     /// Only lines that contain this
///     #[arg(long)]
///     pattern: String,
/// }
///
/// fn search(parameters: &Search) -> Job {
///     let pattern = parameters.pattern.clone();
///     Job::text().map_only(move |line, out| if line.contains(&pattern) { out.emit(line, ()) })
/// }
///
/// fn takes_parameters<P: Parameters>(_: fn(&P) -> Job) {}
/// takes_parameters(search);
/// ```
#[cfg(feature = "cli")]
pub trait Parameters: Args + Serialize + DeserializeOwned {}

#[cfg(feature = "cli")]
impl<P: Args + Serialize + DeserializeOwned> Parameters for P {}

/// The `main` of a program with one job: parses the command line, runs the job and prints its counters.
///
/// ```no_run
/// use napreduce::{Job, words};
///
/// fn wordcount() -> Job<(String, u64)> {
///     Job::text().flat_map(words).count()
/// }
///
/// fn main() -> std::process::ExitCode {
///     napreduce::main(wordcount)
/// }
/// ```
#[cfg(feature = "cli")]
#[must_use = "the exit status shows whether the job succeeded; return it from `main`"]
pub fn main<Kind, D>(definition: D) -> ExitCode
where
    D: Definition<Kind>,
    D::Parameters: Parameters,
{
    Program::new().main(definition)
}

/// Returns whether this process was started for a task, by a worker or by an engine that runs guests.
/// [`Program::main`] or [`Program::drive`] runs the task and must be called before anything else.
///
/// ```
/// assert!(!napreduce::program::task_requested(), "a test was started by a person");
/// ```
pub fn task_requested() -> bool {
    task_process_requested() || engine::requested()
}

/// Runs this process's task, if it was started for one by a worker or an engine, and then ends the process.
/// Otherwise it returns at once: the process is the program itself, which may run jobs.
///
/// Call it at the beginning of `main`, before anything that a task should not do. [`main`](main()) and
/// [`Program`] call it themselves.
///
/// ```no_run
/// use napreduce::run::Local;
/// use napreduce::{Job, words};
///
/// fn main() -> Result<(), napreduce::program::Error> {
///     napreduce::init();
///     let job = napreduce::job(|| Job::text().flat_map(words).count()).inputs(["README.md"]);
///     for (word, count) in job.run(&Local::default())?.collect()? {
///         println!("{count} {word}");
///     }
///     Ok(())
/// }
/// ```
pub fn init() {
    Program::new().init();
}

/// Whether this process has called [`init`], so that its executable can be run for tasks.
static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Fails if task processes of this executable would not know that they are task processes.
pub(crate) fn check_initialised() -> Result<(), Error> {
    if INITIALISED.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(Error::Usage(
        "tasks run in processes of this program, which has not called `napreduce::init()`; call it at the beginning of \
         `main`, or run the job with `Local::threads()`, as in a test"
            .to_owned(),
    ))
}

/// Runs a task or a guest, if this process was started for one.
fn run_task(program: &Program) {
    know_stores();
    if task_process_requested() {
        task_process_main(program, cluster::START_FETCH);
    }
    if engine::requested() {
        engine::run(program);
    }
    definition::register(&program.names);
    INITIALISED.store(true, Ordering::Relaxed);
}

/// Encodes parameters as the tasks of a [`Program`]'s job read them, with default settings, to submit a job
/// without a driver.
///
/// ```
/// let encoded = napreduce::program::encode_parameters(&("most", 10)).expect("they can be encoded");
/// assert!(encoded.ends_with(br#""parameters":["most",10]}"#));
/// ```
pub fn encode_parameters<P: Serialize>(parameters: &P) -> Result<Vec<u8>, Error> {
    let parameters = SentParameters::new(parameters)
        .map_err(|error| Error::Usage(format!("parameters cannot be encoded: {error}")))?;
    let envelope = Envelope {
        code: None,
        settings: Settings::default(),
        files: BTreeMap::new(),
        parameters,
    };
    Ok(envelope.encode())
}

type Build = Box<dyn Fn(&[u8]) -> Result<Box<dyn Pipeline>, TaskError>>;

/// An executable with one or several job definitions and a driver.
///
/// ```no_run
/// use napreduce::program::Error;
/// use napreduce::{Driver, Job, Program, words};
///
/// fn count() -> Job<(String, u64)> {
///     Job::text().flat_map(words).count()
/// }
///
/// fn by_count() -> Job {
///     Job::records::<String, u64>()
///         .flat_map(|(word, count): (&str, u64)| [(count, word.to_owned())])
///         .total_order()
///         .reduce(|count, words, out| while let Some(word) = words.next() { out.emit(word, count) })
/// }
///
/// fn drive(driver: &mut Driver, _: &()) -> Result<(), Error> {
///     let counts = driver.job(count).dataset()?;
///     driver.job(by_count).inputs([&counts]).run().map(drop)
/// }
///
/// fn main() -> std::process::ExitCode {
///     Program::new().about("Sorts the words of text by their counts").drive(drive)
/// }
/// ```
#[derive(Default)]
#[must_use = "a program runs when its `main`, `drive`, `run` or `init` is called"]
pub struct Program {
    #[cfg(feature = "cli")]
    face: Face,
    definitions: BTreeMap<String, Build>,
    /// The names of definitions by their types.
    names: BTreeMap<TypeId, String>,
    /// The program has the name of its only job.
    has_one_job: bool,
}

impl Program {
    /// Creates a program without jobs.
    pub fn new() -> Program {
        Program::default()
    }

    /// Adds a job definition under a name. Tasks find it by this name, also if the job is given as the function: by
    /// [`Driver::job`] or [`napreduce::job`](crate::job). So name the jobs that run on a cluster. A definition without a
    /// name is found by its place in the executable, and only the very executable that submitted the job runs it.
    pub fn job<Kind, D: Definition<Kind>>(mut self, name: &str, definition: D) -> Program {
        self.names.insert(TypeId::of::<D>(), name.to_owned());
        let build = move |bytes: &[u8]| definition::build(&definition, bytes);
        self.definitions.insert(name.to_owned(), Box::new(build));
        self
    }

    /// As [`init`], for a program that names its jobs.
    ///
    /// ```no_run
    /// use napreduce::run::Cluster;
    /// use napreduce::{Job, Program, words};
    ///
    /// fn wordcount() -> Job<(String, u64)> {
    ///     Job::text().flat_map(words).count()
    /// }
    ///
    /// fn main() -> Result<(), napreduce::program::Error> {
    ///     Program::new().job("wordcount", wordcount).init();
    ///     let cluster = Cluster::at("/shared/cluster").temporary_directory("/shared/tmp");
    ///     let counts = napreduce::job(wordcount).inputs(["/shared/books"]).run(&cluster)?;
    ///     println!("{} words", counts.collect()?.len());
    ///     Ok(())
    /// }
    /// ```
    pub fn init(self) {
        run_task(&self);
    }

    /// Runs a driver without a command line, for programs that parse their arguments differently or have
    /// none. The last job writes `output`; nothing is printed.
    ///
    /// Tasks execute this program again. In a task process this function runs the task and does not return.
    /// Call it before anything that a task should not do.
    ///
    /// ```no_run
    /// use napreduce::program::Error;
    /// use napreduce::{Job, Program};
    ///
    /// fn errors() -> Job {
    ///     Job::text().map_only(|line: &str, out| if line.contains("ERROR") { out.emit(line, ()) })
    /// }
    ///
    /// fn main() -> Result<(), Error> {
    ///     Program::new().job("errors", errors).run("found", |driver| {
    ///         let report = driver.job("errors").inputs(["service.log"]).run()?;
    ///         println!("took {:?}", report.wall);
    ///         Ok(())
    ///     })
    /// }
    /// ```
    pub fn run<T, E: From<Error>>(
        self,
        output: impl AsRef<Path>,
        drive: impl FnOnce(&mut Driver) -> Result<T, E>,
    ) -> Result<T, E> {
        serve_forks_before_main();
        run_task(&self);
        let name = options::program_name();
        let run = RunArguments::silent(output.as_ref().to_owned());
        drive(&mut Driver::new(
            &self,
            &name,
            run,
            ReportFormat::Text,
            Settings::default(),
        )?)
    }

    /// Builds the job of a named definition.
    fn build(&self, definition: &str, bytes: &[u8]) -> Result<Box<dyn Pipeline>, TaskError> {
        // A program of one job is named after its file, but an engine stores the file under another name.
        let only = self
            .definitions
            .values()
            .next()
            .filter(|_| self.has_one_job);
        let build = self.definitions.get(definition).or(only).ok_or_else(|| {
            let known: Vec<_> = self.definitions.keys().map(String::as_str).collect();
            let known = match &known[..] {
                [] => {
                    "no job under a name before it runs tasks; give the driver the function instead of a name"
                        .to_owned()
                }
                known => known.join(", "),
            };
            TaskError::fatal(format!("job {definition:?} is not defined; this program defines {known}"))
        })?;
        build(bytes)
    }
}

#[cfg(feature = "cli")]
impl Program {
    /// Sets the one-line description for `--help`.
    pub fn about(mut self, about: &str) -> Program {
        self.face.about = about.to_owned();
        self
    }

    /// Sets example command lines for the end of `--help`, one per line.
    ///
    /// ```
    /// let program = napreduce::Program::new()
    ///     .about("Counts words")
    ///     .examples("count README.md --output counts\ncount 'logs/*.gz' --output counts --reduces 4");
    /// # let _ = program;
    /// ```
    pub fn examples(mut self, examples: &str) -> Program {
        self.face.examples = examples.to_owned();
        self
    }

    /// Takes inputs as `--input INPUT`, which may be repeated.
    ///
    /// ```
    /// let program = napreduce::Program::new().inputs_by_name().examples("count --input README.md --output counts");
    /// # let _ = program;
    /// ```
    pub fn inputs_by_name(mut self) -> Program {
        self.face.names_inputs = true;
        self
    }

    /// Makes this the subcommand of another program: the name shown to users, and the arguments.
    ///
    /// In a task process that program's `main` must call [`Program::drive`] or [`Program::main`] with the
    /// same jobs and without this, before it parses its own arguments.
    ///
    /// ```no_run
    /// use napreduce::{Job, Program};
    ///
    /// fn copy() -> Job {
    ///     Job::text().map_only(|line: &str, out| out.emit(line, ()))
    /// }
    ///
    /// /// Runs `tool copy INPUT... --output DIR`; in a task process, `tool` calls the other function first.
    /// fn copy_command(arguments: Vec<std::ffi::OsString>) -> std::process::ExitCode {
    ///     Program::new().called("tool copy", arguments).main(copy)
    /// }
    ///
    /// fn copy_task() -> std::process::ExitCode {
    ///     Program::new().main(copy)
    /// }
    /// ```
    pub fn called(mut self, name: &str, arguments: impl IntoIterator<Item = OsString>) -> Program {
        self.face.called = Some((name.to_owned(), arguments.into_iter().collect()));
        self
    }

    /// Runs as the program of one job, whose parameters come from the command line.
    #[must_use = "the exit status shows whether the job succeeded; return it from `main`"]
    pub fn main<Kind, D>(mut self, definition: D) -> ExitCode
    where
        D: Definition<Kind>,
        D::Parameters: Parameters,
    {
        let name = options::program_name();
        let names = move || {
            Some(
                definition
                    .job(&arguments::default_parameters()?)
                    .pipeline
                    .input_names(),
            )
        };
        self.face.input_names = Some(Rc::new(names));
        self.has_one_job = self.definitions.is_empty();
        self.job(&name, definition)
            .drive(move |driver: &mut Driver, parameters: &D::Parameters| {
                driver.job(&name).parameters(parameters).run().map(drop)
            })
    }

    /// Runs a driver. In a task process the driver is never called.
    #[must_use = "the exit status shows whether the job succeeded; return it from `main`"]
    pub fn drive<P, F, E>(self, drive: F) -> ExitCode
    where
        P: Args,
        F: FnOnce(&mut Driver, &P) -> Result<(), E>,
        E: Into<Box<dyn std::error::Error>>,
    {
        serve_forks_before_main();
        run_task(&self);
        let name = self.face.name();
        let status = match arguments::parse::<P>(&self.face) {
            Ok(line) => self.run_line(&name, line, drive),
            Err(status) => status,
        };
        finish(&name, status)
    }

    /// Runs the driver and returns its exit status.
    fn run_line<P, F, E>(&self, name: &str, line: CommandLine<P>, drive: F) -> ExitCode
    where
        F: FnOnce(&mut Driver, &P) -> Result<(), E>,
        E: Into<Box<dyn std::error::Error>>,
    {
        wording::use_flags();
        let settings = match Settings::parse(&line.run.conf) {
            Ok(settings) => Settings {
                bad_input: line.run.bad_input,
                ..settings
            },
            Err(error) => return report::failure(name, &Error::from(error)),
        };
        let mut driver = match Driver::new(self, name, line.run, line.report, settings) {
            Ok(driver) => driver,
            Err(error) => return report::failure(name, &error),
        };
        let quiet = driver.is_quiet();
        let result = drive(&mut driver, &line.parameters);
        drop(driver);
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report::ending(name, &*error.into(), quiet),
        }
    }
}

impl Definitions for Program {
    fn build(&self, definition: &str, parameters: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError> {
        let Addressed { code, files } = Addressed::of(parameters)?;
        if !files.is_empty() {
            side_files::set_local(files);
        }
        let pipeline: Box<dyn TaskRunner> = match code {
            Some(place) => place.build(parameters)?,
            None => Program::build(self, definition, parameters)?,
        };
        Ok(pipeline)
    }
}

/// The definitions that tasks on threads find by their code; there are no names.
pub(crate) struct CodeOnly;

impl Definitions for CodeOnly {
    fn build(&self, definition: &str, parameters: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError> {
        let Addressed { code, files } = Addressed::of(parameters)?;
        // The thread runs this task and no other one at the same time.
        side_files::set_of_thread(files);
        let place = code.ok_or_else(|| {
            TaskError::fatal(format!("job {definition:?} was sent without its code"))
        })?;
        let pipeline: Box<dyn TaskRunner> = place.build(parameters)?;
        Ok(pipeline)
    }
}
