//! Starting task processes: this program again or a job's, with a process group and a control channel of its own.
//!
//! Owns the thread that forks and the shape of the command line. Does not own the handle of a process (`child`), which are
//! started ahead (`prestart`), nor what a task process does.
#![allow(unsafe_code)] // Only to name descriptors that this process was started with.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::child::{Own, Started, TaskProcess};
use super::marker::{IDLE_MARKER, MARKER};
use super::orphans::{adopt, sweep};
use super::prestart::{KEPT_FOR, Model, PRESTART_VARIABLE, Prestarts, give_outfit};

/// The variable by which whatever an attempt has started is known to belong to it.
const ATTEMPT_VARIABLE: &str = "NAPREDUCE_ATTEMPT_ID";

/// A variable of a task process's environment; `None` takes it away.
pub type Variable = (&'static str, Option<OsString>);

/// A process that was started ahead and has not come to its hello by then is given up.
const HELLO_MAX: Duration = Duration::from_secs(2);

/// A program is busy while a process that is being started holds the descriptor it was written through: a moment.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// What a task process is started with.
#[derive(Debug, Default)]
pub struct Launch {
    pub variables: Vec<Variable>,
    /// The environment beside these variables; `None` for this program's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// `None` for this program.
    pub program: Option<Executable>,
    /// Where it starts; `None` for where this program is.
    pub directory: Option<PathBuf>,
    /// Where its output goes; `None` for this program's standard error.
    pub output: Option<TaskOutput>,
    /// Where it goes nowhere instead.
    pub is_silent: bool,
}

/// A program of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// What it finds as its own name.
    pub name: OsString,
}

/// Files that a task process prints to.
#[derive(Debug)]
pub struct TaskOutput {
    pub stdout: File,
    pub stderr: File,
}

enum Request {
    Start(Box<Launch>, oneshot::Sender<io::Result<AnswerToStart>>),
    /// Processes like this will be wanted.
    Prestart(Box<Model>),
    /// What has these marks is not to go on.
    Sweep(Vec<String>),
}

/// A process, and what it is to be made use of for, if it was started ahead.
struct AnswerToStart {
    started: Started,
    unused: Option<Box<Launch>>,
}

/// Starts task processes from one thread, begun with the first of them, that lives as long as this value: the kernel
/// kills a task process when the thread that forked it ends.
#[derive(Debug)]
pub struct Spawner {
    forking: Mutex<Option<mpsc::Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether orphans of tasks become children of this process.
    adopts: bool,
    /// Whether what tasks print to this program's standard error is dropped.
    is_silent: bool,
    prestarts: Arc<Prestarts>,
}

impl Spawner {
    /// One whose process takes in the orphans of its tasks, and ends them: for a daemon, which has no other children. So many
    /// processes of a program are kept ready once one was started.
    pub fn adopting(ready: usize) -> io::Result<Spawner> {
        adopt()?;
        close_on_execution()?;
        Ok(Spawner::new(true, false, Prestarts::new(ready, None)))
    }

    /// One for a program that runs a job by itself, of so many tasks, so many at a time.
    pub fn for_one_job(is_silent: bool, slots: usize, tasks: u64) -> Spawner {
        let spawner = Spawner::new(false, is_silent, Prestarts::new(slots, Some(tasks)));
        // The first are under way while the job is planned; an error meets whoever wants one.
        let _ = spawner.prestart(Model::of(&Launch { is_silent, ..Launch::default() }));
        spawner
    }

    fn new(adopts: bool, is_silent: bool, prestarts: Prestarts) -> Spawner {
        Spawner {
            forking: Mutex::default(),
            thread: Mutex::default(),
            adopts,
            is_silent,
            prestarts: Arc::new(prestarts),
        }
    }

    /// An attempt has ended, and its process is reaped: ends what it has started in other process groups.
    pub fn sweep(&self, marks: Vec<String>) {
        if self.adopts && !marks.is_empty() {
            // A thread that is gone has taken its children along.
            let _ = self.request(Request::Sweep(marks));
        }
    }

    /// Starts a task process, or takes one that was started ahead; it runs when this returns, and has been killed and reaped
    /// when the result is dropped.
    pub async fn spawn(&self, mut launch: Launch) -> io::Result<TaskProcess> {
        launch.is_silent |= self.is_silent;
        let model = Model::of(&launch);
        self.prestarts.expect_one_less(&model);
        let process = loop {
            let started = match self.prestarts.take(&model) {
                Some(started) => AnswerToStart { started, unused: Some(Box::new(launch)) },
                None => self.start(launch).await?,
            };
            match started {
                AnswerToStart { started, unused: None } => break TaskProcess::watch(started)?,
                AnswerToStart { started, unused: Some(outfit) } => {
                    match self.make_use_of(started, &model, &outfit).await {
                        Some(process) => break process,
                        None => launch = *outfit,
                    }
                }
            }
        };
        self.prestart(model)?;
        Ok(process)
    }

    async fn start(&self, launch: Launch) -> io::Result<AnswerToStart> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Start(Box::new(launch), reply))?;
        answer.await.map_err(|_| gone())?
    }

    fn prestart(&self, model: Model) -> io::Result<()> {
        match self.prestarts.lacking(&model) {
            0 => Ok(()),
            _ => self.request(Request::Prestart(Box::new(model))),
        }
    }

    /// Nothing where that cannot be done; then no more are started ahead.
    async fn make_use_of(&self, started: Started, model: &Model, launch: &Launch) -> Option<TaskProcess> {
        let marks = started.marks().to_vec();
        let made = async {
            let mut process = TaskProcess::watch(started)?;
            timeout(HELLO_MAX, process.control().readable()).await??;
            give_outfit(&process, launch)?;
            process.add_marks(marks_of(launch));
            io::Result::Ok(process)
        };
        match made.await {
            Ok(process) => Some(process),
            // An attempt that is started as usual meets what is wrong, and can say it.
            Err(_) => {
                let unwanted = self.prestarts.give_up(model);
                let marks = unwanted.iter().flat_map(Started::marks).cloned().chain(marks).collect();
                drop(unwanted);
                self.sweep(marks);
                None
            }
        }
    }

    fn request(&self, request: Request) -> io::Result<()> {
        // A panic while it was held can only have come before a thread was put in.
        let mut forking = self.forking.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = match forking.take() {
            Some(requests) => requests,
            None => self.begin_thread()?,
        };
        forking.insert(requests).send(request).map_err(|_| gone())
    }

    fn begin_thread(&self) -> io::Result<mpsc::Sender<Request>> {
        let (requests, inbox) = mpsc::channel::<Request>();
        let forking = Forking {
            own: Own::default(),
            adopts: self.adopts,
            prestarts: Arc::clone(&self.prestarts),
            count: 0,
        };
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(move || forking.run(&inbox))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(requests)
    }
}

fn gone() -> io::Error {
    io::Error::other("the spawner thread is gone")
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.forking.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            // A panic of that thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// The state of the thread that forks.
struct Forking {
    own: Own,
    adopts: bool,
    prestarts: Arc<Prestarts>,
    /// Processes that were started ahead.
    count: u64,
}

impl Forking {
    fn run(mut self, inbox: &mpsc::Receiver<Request>) {
        loop {
            let request = match self.prestarts.is_empty() {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inbox.recv_timeout(KEPT_FOR),
            };
            match request {
                // A requester that is gone drops the process, which ends it.
                Ok(Request::Start(launch, reply)) => drop(reply.send(self.start(launch))),
                Ok(Request::Prestart(model)) => self.prestart(&model),
                Ok(Request::Sweep(marks)) => sweep(&self.own.numbers(), &marks),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.end(self.prestarts.retire(Instant::now()));
        }
    }

    /// One that was being started ahead when this was asked is there by now.
    fn start(&self, launch: Box<Launch>) -> io::Result<AnswerToStart> {
        match self.prestarts.take(&Model::of(&launch)) {
            Some(started) => Ok(AnswerToStart { started, unused: Some(launch) }),
            None => Ok(AnswerToStart { started: start(*launch, &self.own)?, unused: None }),
        }
    }

    fn prestart(&mut self, model: &Model) {
        for _ in 0..self.prestarts.lacking(model) {
            self.count += 1;
            let started = model.launch(self.count).and_then(|launch| start(launch, &self.own));
            // Whoever wants one meets the error, and can say it.
            let unwanted = self.prestarts.put(model.clone(), started.ok());
            self.end(unwanted);
        }
    }

    fn end(&self, unwanted: Vec<Started>) {
        let marks: Vec<String> = unwanted.iter().flat_map(Started::marks).cloned().collect();
        drop(unwanted);
        if self.adopts && !marks.is_empty() {
            sweep(&self.own.numbers(), &marks);
        }
    }
}

/// The variables by which all that a process starts is known, as they stand in an environment.
fn marks_of(launch: &Launch) -> Vec<String> {
    let marking =
        launch.variables.iter().filter(|(name, _)| [ATTEMPT_VARIABLE, PRESTART_VARIABLE].contains(name));
    marking.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?.to_str()?))).collect()
}

/// Standard input is the control channel; without files for it, standard output is the job's standard error. No
/// `pre_exec`, so that the standard library takes posix_spawn, whose cost does not grow with the memory of this process.
fn start(launch: Launch, own: &Own) -> io::Result<Started> {
    let marks = marks_of(&launch);
    let is_ahead = launch.variables.iter().any(|(name, _)| *name == PRESTART_VARIABLE);
    let (control, theirs) = StdUnixStream::pair()?;
    control.set_nonblocking(true)?;
    let mut command = match launch.program {
        Some(Executable { path, name }) => {
            let mut command = Command::new(path);
            command.arg0(name);
            command
        }
        None => {
            let mut command = Command::new("/proc/self/exe");
            if let Some(name) = std::env::args_os().next() {
                command.arg0(name);
            }
            command
        }
    };
    let (stdout, stderr) = match launch.output {
        Some(TaskOutput { stdout, stderr }) => (Stdio::from(stdout), Stdio::from(stderr)),
        None if launch.is_silent => (Stdio::null(), Stdio::null()),
        None => (Stdio::from(io::stderr().as_fd().try_clone_to_owned()?), Stdio::inherit()),
    };
    command
        .arg(if is_ahead { IDLE_MARKER } else { MARKER })
        .arg(std::process::id().to_string())
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    if let Some(directory) = launch.directory {
        command.current_dir(directory);
    }
    if let Some(environment) = launch.environment {
        command.env_clear().envs(environment);
    }
    for (name, value) in launch.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Started::begin(execute(&mut command)?, control, marks, own)
}

fn execute(command: &mut Command) -> io::Result<Child> {
    let mut tries = 1;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            other => return other,
        }
    }
}

/// Descriptors that this process was started with, by a shell or a service, are no business of its tasks.
fn close_on_execution() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|number| *number > 2) else { continue };
        // SAFETY: it was open a moment ago, and is not used beyond this call; if it was that of the listing, or is closed by
        // now, the call changes nothing or fails.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}
