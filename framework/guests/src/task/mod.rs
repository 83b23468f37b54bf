//! Guests: task processes that another engine starts, such as Spark. They have no worker and no control
//! channel: they are told all by their arguments and a plan file, and say how it went by a report and their
//! exit status.
//!
//! Owns the order of things around one attempt, and the statuses. Does not own the work itself, which the
//! same two calls do as under a worker, nor what engines do about a status. docs/guests.md is for those who
//! write them.

mod arguments;
mod map;
mod reduce;
mod rounds;
mod saves;
mod stored;
mod watch;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use arguments::GuestArguments;
use clap::Parser;
use napreduce_engine::{AttemptId, FailureClass, TaskId, TaskKind};
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, PartOutput, TaskError};
use napreduce_task::{
    Definitions, TaskContext, TaskRunner, catch_panics, die_with, exit_when_told, final_counters,
    prepare_part, raise_descriptors,
};
use rounds::{Round, Saving};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use crate::forms::{GuestFrameError, GuestPart, GuestPlan, GuestReport, MapsReport};

/// The first argument of a guest.
const MARKER: &str = "--napreduce-guest";

/// The task failed; another try may help.
const FAILED: i32 = 64;
/// No other try can help.
const FATAL: i32 = 65;
/// What a reduce was given is lost or damaged.
const INPUT_LOST: i32 = 66;
/// It was told to end (SIGTERM), as a shell would say it.
const TOLD_TO_END: i32 = 143;

/// How a guest ends that has not done its task.
#[derive(Debug, thiserror::Error)]
enum GuestError {
    #[error("{0}")]
    Arguments(String),
    #[error("cannot use the plan {path}: {why}")]
    Plan { path: String, why: String },
    #[error("{0}")]
    Task(TaskError),
    #[error("the frames of this reduce break a rule: {0}")]
    Frames(#[from] GuestFrameError),
    #[error("cannot {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("told to end; {left}")]
    ToldToEnd { left: String },
}

impl GuestError {
    fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> GuestError {
        let doing = doing.into();
        move |source| GuestError::Io { doing, source }
    }

    fn status(&self) -> i32 {
        match self {
            GuestError::Arguments(_) | GuestError::Plan { .. } => FATAL,
            GuestError::Task(error) if !error.lost_inputs.is_empty() => INPUT_LOST,
            GuestError::Task(error) if error.class == FailureClass::Fatal => FATAL,
            GuestError::Task(_) | GuestError::Io { .. } | GuestError::Frames(GuestFrameError::Io(_)) => {
                FAILED
            }
            GuestError::Frames(_) => INPUT_LOST,
            GuestError::ToldToEnd { .. } => TOLD_TO_END,
        }
    }
}

impl From<TaskError> for GuestError {
    fn from(error: TaskError) -> GuestError {
        GuestError::Task(error)
    }
}

/// Whether this process was started as a guest.
pub fn guest_requested() -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == MARKER)
}

/// Runs the one attempt that the arguments name, and exits.
pub fn guest_main(definitions: &dyn Definitions) -> ! {
    let status = match serve(definitions) {
        Ok(()) => 0,
        Err(error) => {
            // Last, where an engine looks for the reason.
            print_error(&error);
            error.status()
        }
    };
    std::process::exit(status)
}

/// What a guest knows of its attempt.
struct Guest {
    plan: GuestPlan,
    arguments: GuestArguments,
    attempt: AttemptId,
    began: Instant,
    /// How it saves its work, if that is wanted.
    saving: Option<Saving>,
}

fn serve(definitions: &dyn Definitions) -> Result<(), GuestError> {
    let began = Instant::now();
    let arguments = GuestArguments::try_parse_from(std::env::args_os().skip(2))
        .map_err(|error| GuestError::Arguments(error.to_string().trim_end().to_owned()))?;
    if let Some(parent) = arguments.die_with {
        die_with(OsStr::new(&parent.to_string())).map_err(|error| TaskError::retryable(error.to_string()))?;
    }
    exit_when_told().map_err(GuestError::io("handle signals"))?;
    // A reduce may be given all maps at once, and has a file for each.
    raise_descriptors();
    let plan = read_plan(&arguments.plan)?;
    let task = TaskId { job: plan.job, kind: arguments.kind(), index: arguments.task };
    let attempt = AttemptId { task, number: arguments.attempt };
    let saving = plan.checkpoints.as_ref().map(Saving::begin).transpose()?;
    let guest = Guest { plan, arguments, attempt, began, saving };
    guest.check()?;
    // What user code prints is not what the engine reads.
    let mut out = take_output().map_err(GuestError::io("take standard output"))?;
    let input = match guest.arguments.kind() {
        TaskKind::Map => None,
        TaskKind::Reduce => Some(take_input().map_err(GuestError::io("take standard input"))?),
    };
    fs::create_dir_all(&guest.arguments.scratch)
        .map_err(GuestError::io(format!("create {}", guest.arguments.scratch.display())))?;
    match input {
        None => map::run(&guest, definitions, &mut out)?,
        Some(input) => reduce::run(&guest, definitions, input, &mut out)?,
    }
    out.flush().map_err(GuestError::io("write to the engine"))
}

impl Guest {
    /// Before anything is done: whether the plan has such a task, and the part of it a place.
    fn check(&self) -> Result<(), GuestError> {
        let kind = self.arguments.kind();
        let GuestArguments { task, part, .. } = &self.arguments;
        let (tasks, writes) = match kind {
            TaskKind::Map => (self.plan.maps(), self.plan.reduces == 0),
            TaskKind::Reduce => (self.plan.reduces, true),
        };
        if *task >= tasks {
            let why = format!("there is no {kind} {task}: the plan has {tasks}");
            return Err(GuestError::Arguments(why));
        }
        match (writes, part) {
            (true, None) => Err(GuestError::Arguments("--part is missing".to_owned())),
            (false, Some(_)) => Err(GuestError::Arguments(
                "--part is for tasks that write a part, and this map's output goes to the reduces".to_owned(),
            )),
            (true, Some(_)) | (false, None) => Ok(()),
        }
    }

    /// A call to the user's code, whose panic is the error of the task.
    fn call<T>(
        &self,
        definitions: &dyn Definitions,
        round: &Round,
        body: impl FnOnce(&dyn TaskRunner, &Round) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let called = catch_panics(&round.context, || {
            body(&*definitions.build(&self.plan.definition, self.plan.parameters.as_bytes())?, round)
        });
        called.map_err(TaskError::unless_hopeless)
    }

    /// The report of an attempt that is done, with its part if it has one.
    fn report(
        &self,
        context: &TaskContext,
        (frames, maps): (u64, MapsReport),
        part: Option<PartOutput>,
    ) -> Result<Vec<u8>, GuestError> {
        let path = &self.arguments.part;
        let millis = match self.arguments.kind() {
            TaskKind::Map => Counter::MapMillis,
            TaskKind::Reduce => Counter::ReduceMillis,
        };
        let part = match (part, path) {
            (Some(part), Some(path)) => {
                // One that counts survives the loss of power, where that is wanted.
                prepare_part(&part, path, self.plan.durable)?;
                Some(GuestPart::in_file(part, path.clone()))
            }
            (part, _) if part.is_some() != path.is_some() => {
                return Err(TaskError::fatal(
                    "the task wrote a part where there is none, or none where there is one",
                )
                .into());
            }
            (_, _) => None,
        };
        let counters = final_counters(millis, context);
        let mut report = GuestReport::new(self.attempt.task, counters, frames);
        (report.maps, report.part) = (maps, part);
        report
            .to_json()
            .map_err(|error| TaskError::fatal(format!("the report cannot be written: {error}")).into())
    }

    /// Where this attempt keeps something of its own.
    fn scratch(&self, name: &str) -> std::path::PathBuf {
        self.arguments.scratch.join(name)
    }
}

fn read_plan(path: &Path) -> Result<GuestPlan, GuestError> {
    let unusable = |why: String| GuestError::Plan { path: path.display().to_string(), why };
    let text = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    GuestPlan::from_json(&text).map_err(|error| unusable(error.to_string()))
}

/// Standard output as a file of its own that no command inherits; what is printed from here on goes where
/// errors go.
fn take_output() -> io::Result<File> {
    let moved = fcntl_dupfd_cloexec(stdout(), 3)?;
    dup2_stdout(stderr())?;
    Ok(File::from(moved))
}

/// The same of standard input, from which nothing more can be read.
fn take_input() -> io::Result<File> {
    let moved = fcntl_dupfd_cloexec(stdin(), 3)?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(File::from(moved))
}
