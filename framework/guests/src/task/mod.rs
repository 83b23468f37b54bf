//! Guests: task processes that another engine starts, such as Spark. They have no worker and no control
//! channel. Their input is the arguments and a plan file, their result a report and an exit status.
//!
//! For authors of engines, see docs/spark.md.

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
use napreduce_local::process::raise_descriptors;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Counter, PartOutput, TaskError};
use napreduce_task::{
    Definitions, TaskContext, TaskRunner, catch_panics, die_with, exit_when_told, final_counters,
    prepare_part,
};
use rounds::{Round, Saving};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use crate::forms::{GuestFrameError, GuestPart, GuestPlan, GuestReport, MapsReport};

/// The first argument of a guest.
const MARKER: &str = "--napreduce-guest";

/// The task failed; a retry may help.
const FAILED: i32 = 64;
/// Retries cannot help.
const FATAL: i32 = 65;
/// The input of a reduce is lost or damaged.
const INPUT_LOST: i32 = 66;
/// Terminated by SIGTERM, with the status of a shell.
const TERMINATED: i32 = 143;

/// The error of a guest.
#[derive(Debug, thiserror::Error)]
enum GuestError {
    #[error("{0}")]
    Arguments(String),
    #[error("cannot use the plan {path}: {why}")]
    Plan { path: String, why: String },
    #[error("{0}")]
    Task(TaskError),
    #[error("invalid frames for this reduce: {0}")]
    Frames(#[from] GuestFrameError),
    #[error("cannot {doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("terminated; {left}")]
    Terminated { left: String },
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
            GuestError::Task(_)
            | GuestError::Io { .. }
            | GuestError::Frames(GuestFrameError::Io(_)) => FAILED,
            GuestError::Frames(_) => INPUT_LOST,
            GuestError::Terminated { .. } => TERMINATED,
        }
    }
}

impl From<TaskError> for GuestError {
    fn from(error: TaskError) -> GuestError {
        GuestError::Task(error)
    }
}

/// Returns whether this process was started as a guest.
pub fn guest_requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == MARKER)
}

/// Runs the attempt given by the arguments, and exits.
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

/// The attempt of a guest.
struct Guest {
    plan: GuestPlan,
    arguments: GuestArguments,
    attempt: AttemptId,
    began: Instant,
    /// Set if it saves checkpoints.
    saving: Option<Saving>,
}

fn serve(definitions: &dyn Definitions) -> Result<(), GuestError> {
    let began = Instant::now();
    let arguments = GuestArguments::try_parse_from(std::env::args_os().skip(2))
        .map_err(|error| GuestError::Arguments(error.to_string().trim_end().to_owned()))?;
    if let Some(parent) = arguments.die_with {
        die_with(OsStr::new(&parent.to_string()))
            .map_err(|error| TaskError::retryable(error.to_string()))?;
    }
    exit_when_told().map_err(GuestError::io("handle signals"))?;
    // A reduce may receive all maps at once, with a file for each.
    raise_descriptors();
    let plan = read_plan(&arguments.plan)?;
    let task = TaskId {
        job: plan.job,
        kind: arguments.kind(),
        index: arguments.task,
    };
    let attempt = AttemptId {
        task,
        number: arguments.attempt,
    };
    let saving = plan.checkpoints.as_ref().map(Saving::begin).transpose()?;
    let guest = Guest {
        plan,
        arguments,
        attempt,
        began,
        saving,
    };
    guest.check()?;
    // The engine must not read output of user code.
    let mut out = take_output().map_err(GuestError::io("take standard output"))?;
    let input = match guest.arguments.kind() {
        TaskKind::Map => None,
        TaskKind::Reduce => Some(take_input().map_err(GuestError::io("take standard input"))?),
    };
    fs::create_dir_all(&guest.arguments.scratch).map_err(GuestError::io(format!(
        "create {}",
        guest.arguments.scratch.display()
    )))?;
    match input {
        None => map::run(&guest, definitions, &mut out)?,
        Some(input) => reduce::run(&guest, definitions, input, &mut out)?,
    }
    out.flush().map_err(GuestError::io("write to the engine"))
}

impl Guest {
    /// Checks that the plan has such a task, and that a part has a path.
    fn check(&self) -> Result<(), GuestError> {
        let kind = self.arguments.kind();
        let GuestArguments { task, part, .. } = &self.arguments;
        let (tasks, writes) = match kind {
            TaskKind::Map => (self.plan.maps(), self.plan.reduces == 0),
            TaskKind::Reduce => (self.plan.reduces, true),
        };
        if *task >= tasks {
            let why = format!("--task {task}: the plan has {tasks} {kind}s");
            return Err(GuestError::Arguments(why));
        }
        match (writes, part) {
            (true, None) => Err(GuestError::Arguments("--part is missing".to_owned())),
            (false, Some(_)) => Err(GuestError::Arguments(
                "--part: this map writes no part; its output goes to the reduces".to_owned(),
            )),
            (true, Some(_)) | (false, None) => Ok(()),
        }
    }

    /// Calls user code; a panic becomes the error of the task.
    fn call<T>(
        &self,
        definitions: &dyn Definitions,
        round: &Round,
        body: impl FnOnce(&dyn TaskRunner, &Round) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let called = catch_panics(&round.context, || {
            body(
                &*definitions.build(&self.plan.definition, self.plan.parameters.as_bytes())?,
                round,
            )
        });
        called.map_err(TaskError::fatal_if_permanent)
    }

    /// Returns the report of a completed attempt, with its part if any.
    fn report(
        &self,
        context: &TaskContext,
        frames: u64,
        maps: MapsReport,
        part: Option<PartOutput>,
    ) -> Result<Vec<u8>, GuestError> {
        let path = &self.arguments.part;
        let millis = match self.arguments.kind() {
            TaskKind::Map => Counter::MapMillis,
            TaskKind::Reduce => Counter::ReduceMillis,
        };
        let part = match (part, path) {
            (Some(part), Some(path)) => {
                // With `durable` the part must survive a power loss.
                prepare_part(&part, path, self.plan.durable)?;
                Some(GuestPart::in_file(part, path.clone()))
            }
            (part, _) if part.is_some() != path.is_some() => {
                return Err(TaskError::fatal(
                    "the task wrote an unexpected part, or did not write its part",
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
            .map_err(|error| TaskError::fatal(format!("cannot encode the report: {error}")).into())
    }

    /// Returns a path for a file of this attempt.
    fn scratch(&self, name: &str) -> std::path::PathBuf {
        self.arguments.scratch.join(name)
    }
}

fn read_plan(path: &Path) -> Result<GuestPlan, GuestError> {
    let unusable = |why: String| GuestError::Plan {
        path: path.display().to_string(),
        why,
    };
    let text = fs::read(path).map_err(|error| unusable(error.to_string()))?;
    GuestPlan::from_json(&text).map_err(|error| unusable(error.to_string()))
}

/// Duplicates standard output for exclusive use, not inherited by commands; later prints go to standard
/// error.
fn take_output() -> io::Result<File> {
    let moved = fcntl_dupfd_cloexec(stdout(), 3)?;
    dup2_stdout(stderr())?;
    Ok(File::from(moved))
}

/// The same for standard input; later reads return nothing.
fn take_input() -> io::Result<File> {
    let moved = fcntl_dupfd_cloexec(stdin(), 3)?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(File::from(moved))
}
