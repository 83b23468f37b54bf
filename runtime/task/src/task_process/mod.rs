//! The main function of a task process, from `Hello` to exit, and the same for an attempt on a thread.

mod control;
mod memory;
mod outfit;
mod panics;
mod promotion;
mod stored_checkpoints;
mod uploading;

use std::ffi::OsStr;
use std::fs::{File, create_dir};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use control::{ControlChannel, Home, Word};
use memory::sample_memory;
use napreduce_protocol::printing::{Silence, print_error};
use napreduce_protocol::{
    Counter, CounterValues, FromTask, IoResult, NamedPart, PROTOCOL_VERSION, PartOutput,
    ReduceWork, StorageScheme, TaskDescription, TaskError, ToTask, WireError, Work, read_message,
    write_message,
};
use outfit::put_on_outfit;
use panics::catch_panics_of_thread;
pub use panics::{catch_panics, catch_refusal, refusal, refuse};
use promotion::{PartPaths, Promotion, WAS_IT_CHANGED, in_output};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    Pid, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};
use rustix::stdio::{dup2_stdin, stdin};
use rustix::time::{ClockId, clock_gettime};
use stored_checkpoints::with_stored_checkpoints;
use thiserror::Error;
use uploading::upload;

use crate::command::{become_command, command_requested};
use crate::context::TaskContext;
use crate::fetch_inputs::{FetchInputs, FetchedInputs, InputEvent, StartFetch};
use crate::marker::{is_idle, parent_of_task_process};
use crate::proc::has_one_thread;
use crate::runner::{Definitions, Ended, MapResult};
use crate::signals::{heed_hang_ups, outlive_terminate};
use crate::user_counters::{CountsApart, user_counters};
use crate::watcher::{become_watcher, watcher_requested};

/// An error that prevents a task process from starting its attempt.
#[derive(Debug, Error)]
pub enum TaskProcessError {
    #[error("this command line is reserved for task processes, which the program starts itself")]
    NotStarted,
    #[error("the parent process has ended")]
    ParentGone,
    #[error("the worker closed the control channel before it sent Start")]
    NoStart,
    #[error("protocol error: the first message is not Start")]
    StartExpected,
    #[error("protocol error: the first message to a prestarted process is not Outfit")]
    OutfitExpected,
    #[error("control channel: {0}")]
    Wire(#[from] WireError),
    #[error("cannot set up the task process: {0}")]
    Io(#[from] io::Error),
}

/// Returns whether this process was started by a worker, as a task process, a watcher or to become a command. If so,
/// [`task_process_main`] must be called before anything else.
pub fn task_process_requested() -> bool {
    parent_of_task_process().is_some() || command_requested() || watcher_requested()
}

/// Runs the attempt for which this process was started, and exits. `start_fetch` fetches inputs of reduces
/// from other workers; a program that never runs on a cluster has none.
pub fn task_process_main(definitions: &dyn Definitions, start_fetch: Option<StartFetch>) -> ! {
    if command_requested() {
        become_command();
    }
    if watcher_requested() {
        become_watcher();
    }
    let status = match serve(definitions, start_fetch) {
        Ok(()) => 0,
        Err(error) => {
            print_error(format_args!("task process {}: {error}", std::process::id()));
            1
        }
    };
    // No unwinding: the kernel frees the memory faster than destructors.
    std::process::exit(status)
}

fn serve(
    definitions: &dyn Definitions,
    start_fetch: Option<StartFetch>,
) -> Result<(), TaskProcessError> {
    let parent = parent_of_task_process().ok_or(TaskProcessError::NotStarted)?;
    die_with(&parent)?;
    // Orphans of its commands stay in its tree, so that they are stopped, continued and killed with it.
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    heed_hang_ups()?;
    outlive_terminate()?;
    let stream = take_control_channel()?;
    if is_idle() {
        if !has_one_thread()? {
            // With several threads, the environment cannot be changed.
            return Ok(());
        }
        write_message(
            &stream,
            &FromTask::Hello {
                version: PROTOCOL_VERSION,
            },
        )?;
        if !put_on_outfit(&stream)? {
            return Ok(());
        }
    } else {
        write_message(
            &stream,
            &FromTask::Hello {
                version: PROTOCOL_VERSION,
            },
        )?;
    }
    let description = receive_start(&stream)?;
    run_attempt(
        stream,
        &description,
        definitions,
        start_fetch,
        Home::Process,
    )
}

/// Runs an attempt on this thread of the worker's process, from `Hello` to its outcome. `stream` is the control
/// channel. User code on this thread has counters and panics of its own; when the worker closes the channel, it
/// ends at its next boundary. With `is_silent`, warnings of this crate and of the framework are not printed.
///
/// # Errors
/// Fails if the channel breaks, or the worker closes it before the attempt is described.
pub fn run_on_thread(
    stream: UnixStream,
    definitions: &dyn Definitions,
    is_silent: bool,
) -> Result<(), TaskProcessError> {
    let _silence = is_silent.then(Silence::begin);
    write_message(
        &stream,
        &FromTask::Hello {
            version: PROTOCOL_VERSION,
        },
    )?;
    let description = receive_start(&stream)?;
    let _counts = CountsApart::begin();
    run_attempt(stream, &description, definitions, None, Home::Thread)
}

fn receive_start(stream: &UnixStream) -> Result<TaskDescription, TaskProcessError> {
    match read_message(stream)? {
        Some(ToTask::Start(description)) => Ok(*description),
        Some(_) => Err(TaskProcessError::StartExpected),
        None => Err(TaskProcessError::NoStart),
    }
}

fn run_attempt(
    stream: UnixStream,
    description: &TaskDescription,
    definitions: &dyn Definitions,
    start_fetch: Option<StartFetch>,
    home: Home,
) -> Result<(), TaskProcessError> {
    let context = Arc::new(TaskContext::new(description.attempt, description.memory));
    let (arrived, arrivals) = channel();
    let (control, granted) =
        ControlChannel::attend(stream, Arc::clone(&context), arrived.clone(), home)?;
    let arrivals = (&arrived, &arrivals);
    let setup = AttemptSetup {
        context: &context,
        control: &control,
        arrivals,
        start_fetch,
    };
    let worked = || with_stored_checkpoints(description, || work(definitions, description, &setup));
    let worked = match home {
        Home::Process => catch_panics(&context, worked),
        Home::Thread => catch_panics_of_thread(&context, worked),
    };
    let outcome = match worked {
        Ok(Ended::Checkpointed(saved)) => Ok(FromTask::Checkpointed { bytes: saved.bytes }),
        Ok(Ended::Done { part }) => match commit(description, part, &setup, &granted) {
            Ok(()) => {
                let millis = millis_of(&description.work);
                Ok(FromTask::Done {
                    counters: match home {
                        Home::Process => final_counters(millis, &context),
                        Home::Thread => thread_counters(millis, &context),
                    },
                    output_digest: context.output_digest(),
                })
            }
            Err(CommitError::Task(error)) => Ok(FromTask::Failed(error)),
            Err(CommitError::Process(error)) => Err(error),
        },
        Err(error) => Ok(FromTask::Failed(error.fatal_if_permanent())),
    };
    if home == Home::Process {
        // The attempt is complete even if its log cannot be written.
        let _ = io::stdout().flush();
    }
    let sent = outcome.and_then(|outcome| Ok(control.send(&outcome)?));
    if home == Home::Thread {
        control.close();
    }
    sent
}

/// Requests SIGKILL for the end of the thread that started this process; fails if it has ended.
pub fn die_with(parent: &OsStr) -> Result<(), TaskProcessError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
    let parent = parent
        .to_str()
        .and_then(|text| text.parse().ok())
        .and_then(Pid::from_raw);
    if parent.is_none() {
        return Err(TaskProcessError::NotStarted);
    }
    if getppid() == parent {
        Ok(())
    } else {
        Err(TaskProcessError::ParentGone)
    }
}

/// Moves the control channel from standard input to a descriptor that child processes do not inherit.
fn take_control_channel() -> Result<UnixStream, TaskProcessError> {
    let moved: OwnedFd = fcntl_dupfd_cloexec(stdin(), 3).map_err(io::Error::from)?;
    let stream = UnixStream::from(moved);
    if stream.peer_addr().is_err() {
        return Err(TaskProcessError::NotStarted);
    }
    dup2_stdin(File::open("/dev/null")?).map_err(io::Error::from)?;
    Ok(stream)
}

/// The environment of a call to the body.
struct AttemptSetup<'a> {
    context: &'a Arc<TaskContext>,
    control: &'a ControlChannel,
    arrivals: (&'a Sender<InputEvent>, &'a Receiver<InputEvent>),
    start_fetch: Option<StartFetch>,
}

impl AttemptSetup<'_> {
    /// Waits for the inputs of a reduce.
    fn fetch_inputs(&self, work: &ReduceWork) -> Result<FetchedInputs, TaskError> {
        let wanted = FetchInputs {
            maps: work.maps,
            task: &work.task,
            network: work.network.as_ref(),
            start_fetch: self.start_fetch,
            context: self.context,
            arrivals: self.arrivals,
        };
        wanted.fetch(work.inputs.clone(), |attempts, place, reason| {
            let sent = self.control.send(&FromTask::InputsLost {
                attempts,
                place,
                reason,
            });
            sent.map_err(|error| TaskError::retryable(format!("control channel: {error}")))
        })
    }
}

/// Calls the body.
fn work(
    definitions: &dyn Definitions,
    description: &TaskDescription,
    setup: &AttemptSetup<'_>,
) -> Result<MapResult, TaskError> {
    let context = setup.context;
    let body = definitions.build(&description.definition, &description.parameters)?;
    match &description.work {
        Work::Map(task) => {
            create_scratch(&task.scratch)?;
            create_part_directory(description, &task.scratch, &task.output)?;
            body.run_map(task, context)
        }
        Work::Reduce(work) => {
            create_scratch(&work.task.scratch)?;
            create_part_directory(description, &work.task.scratch, &work.task.output)?;
            let task = match setup.fetch_inputs(work)? {
                FetchedInputs::Complete(task) => task,
                FetchedInputs::Checkpointed(saved) => return Ok(Ended::Checkpointed(saved)),
            };
            Ok(match body.run_reduce(&task, context)? {
                Ended::Done { part } => Ended::Done { part: Some(part) },
                Ended::Checkpointed(saved) => Ended::Checkpointed(saved),
            })
        }
    }
}

/// Creates the scratch directory unless the worker passed one on. Parents are not created: a missing job
/// directory was removed by others.
pub fn create_scratch(scratch: &Path) -> Result<(), TaskError> {
    create_dir(scratch).unless_there().map_err(|error| {
        let asked = if error.kind() == io::ErrorKind::NotFound {
            WAS_IT_CHANGED
        } else {
            ""
        };
        TaskError::local(
            format!("cannot create {}: {error}{asked}", scratch.display()),
            &error,
        )
    })
}

/// Creates the directory of the part file. In a cluster that file is on shared storage, and all others are in
/// the worker's own directory.
fn create_part_directory(
    description: &TaskDescription,
    scratch: &Path,
    output: &Path,
) -> Result<(), TaskError> {
    match output
        .parent()
        .filter(|directory| description.promote_to.is_some() && *directory != scratch)
    {
        Some(directory) => {
            let made = create_dir(directory).unless_there();
            made.map_err(|error| in_output(format!("create {}", directory.display()), &error))
        }
        None => Ok(()),
    }
}

/// Why the output of a task is not committed.
enum CommitError {
    /// The attempt fails.
    Task(TaskError),
    /// There is no worker to report to.
    Process(TaskProcessError),
}

impl From<TaskError> for CommitError {
    fn from(error: TaskError) -> CommitError {
        CommitError::Task(error)
    }
}

/// Waits for a commit grant and promotes the part file and each named output with one rename. In a store, all
/// of it is uploaded before and becomes visible when the job commits. Waiting is a boundary; after the grant
/// the task is not stopped. A checkpoint request is ignored, since the task is about to end.
fn commit(
    description: &TaskDescription,
    part: Option<PartOutput>,
    setup: &AttemptSetup<'_>,
    granted: &Receiver<Word>,
) -> Result<(), CommitError> {
    let (target, part) = match (&description.promote_to, part) {
        (Some(target), Some(part)) => (target, part),
        (None, None) => return Ok(()),
        (Some(_), None) => {
            let error = TaskError::fatal("the map of a map-only job reported no part file");
            return Err(error.into());
        }
        (None, Some(_)) => {
            let error = TaskError::fatal("a map reported a part file in a job that has reduces");
            return Err(error.into());
        }
    };
    let written = match &description.work {
        Work::Map(task) => &task.output,
        Work::Reduce(ReduceWork { task, .. }) => &task.output,
    };
    let paths = PartPaths { written, target };
    let (part, promotions) = match StorageScheme::from_path(target) {
        // The commit of the job completes the upload.
        Some(_) => (upload(part, paths, setup.context)?, Vec::new()),
        None => {
            let promotions = promotions(&part, paths, description.sync_part);
            (part, promotions)
        }
    };
    for promotion in &promotions {
        promotion.prepare()?;
    }
    let request = FromTask::CommitRequest { part };
    if let Err(error) = setup.control.send(&request) {
        return Err(CommitError::Process(error.into()));
    }
    loop {
        if setup.context.is_asked() {
            setup.context.boundary(&mut ())?;
        }
        match granted.recv() {
            Ok(Word::Granted) => break,
            Ok(Word::Asked) => {}
            // Without the control thread there is no grant; that thread ends only with the process.
            Err(_) => return Err(CommitError::Process(TaskProcessError::ParentGone)),
        }
    }
    for promotion in &promotions {
        promotion.carry_out()?;
    }
    Ok(())
}

/// Returns the renames of a part and its named outputs.
fn promotions(part: &PartOutput, paths: PartPaths<'_>, sync: bool) -> Vec<Promotion> {
    let PartPaths { written, target } = paths;
    let named = part.named.iter().map(|NamedPart { name, bytes, .. }| {
        let [written, target] = [written, target].map(|path| NamedPart::path_next_to(path, name));
        Promotion {
            written,
            target,
            bytes: *bytes,
            sync,
        }
    });
    let part = Promotion {
        written: written.to_owned(),
        target: target.to_owned(),
        bytes: part.bytes,
        sync,
    };
    named.chain([part]).collect()
}

/// Syncs the existing files of a part, if `sync` is set.
pub fn prepare_part(part: &PartOutput, written: &Path, sync: bool) -> Result<(), TaskError> {
    promotions(
        part,
        PartPaths {
            written,
            target: written,
        },
        sync,
    )
    .iter()
    .try_for_each(Promotion::prepare)
}

/// Returns the counter of an attempt's time.
fn millis_of(work: &Work) -> Counter {
    match work {
        Work::Map(_) => Counter::MapMillis,
        Work::Reduce(_) => Counter::ReduceMillis,
    }
}

/// Returns all counters of an attempt, including its time and memory.
pub fn final_counters(millis: Counter, context: &TaskContext) -> CounterValues {
    sample_memory(context);
    counters_with_time(millis, context, ClockId::ProcessCPUTime)
}

/// Returns all counters of an attempt on this thread. Its memory is not known apart from that of the process.
fn thread_counters(millis: Counter, context: &TaskContext) -> CounterValues {
    counters_with_time(millis, context, ClockId::ThreadCPUTime)
}

fn counters_with_time(millis: Counter, context: &TaskContext, processor: ClockId) -> CounterValues {
    let counters = context.counters();
    counters.add(millis, context.active_millis());
    let processor = clock_gettime(processor);
    let millis = processor
        .tv_sec
        .saturating_mul(1_000)
        .saturating_add(processor.tv_nsec / 1_000_000);
    counters.add(Counter::CpuMillis, u64::try_from(millis).unwrap_or(0));
    let mut values = counters.values();
    values.merge(&user_counters());
    values
}
