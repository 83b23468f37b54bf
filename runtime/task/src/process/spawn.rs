//! Starting task processes: this program again or a job's, with a process group and a control channel of its own.
//!
//! Owns the thread that forks, the shape of the command line, and the handle by which a process is killed and reaped
//! without ever signalling a process number that was given to somebody else. Does not own what a task process does.
#![allow(unsafe_code)] // Only to have a descriptor watched, which tokio cannot check.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use super::orphans::{adopt, sweep};

/// First argument of a task process; the second is the process number of its parent.
const MARKER: &str = "--napreduce-task-process";

/// A variable of a task process's environment; `None` takes it away.
pub type Variable = (&'static str, Option<OsString>);

/// The parent's process number, when this process was started as a task process.
pub fn parent_of_task_process() -> Option<OsString> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == MARKER).then(|| arguments.next().unwrap_or_default())
}

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
    Start(Box<Launch>, oneshot::Sender<io::Result<Started>>),
    /// The attempt of this name has ended; nothing that it started is to go on.
    Sweep(String),
}

struct Started {
    child: Child,
    pidfd: OwnedFd,
    control: StdUnixStream,
}

/// Starts task processes from one thread, begun with the first of them, that lives as long as this value: the kernel
/// kills a task process when the thread that forked it ends.
#[derive(Debug, Default)]
pub struct Spawner {
    forking: Mutex<Option<ForkingThread>>,
    /// Whether orphans of tasks become children of this process.
    adopts: bool,
    /// Whether what tasks print to this program's standard error is dropped.
    is_silent: bool,
    own: Own,
}

/// Task processes that are not reaped.
type Own = Arc<Mutex<BTreeSet<i32>>>;

/// A panic while it was held can only have come between whole changes.
fn lock(own: &Own) -> MutexGuard<'_, BTreeSet<i32>> {
    own.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct ForkingThread {
    requests: mpsc::Sender<Request>,
    thread: JoinHandle<()>,
}

impl Spawner {
    /// One whose process takes in the orphans of its tasks, and ends them: for a daemon, which has no other children.
    pub fn adopting() -> io::Result<Spawner> {
        adopt()?;
        close_on_execution()?;
        let mut spawner = Spawner::default();
        spawner.adopts = true;
        Ok(spawner)
    }

    /// One for a program that runs a job by itself.
    pub fn for_one_job(is_silent: bool) -> Spawner {
        let mut spawner = Spawner::default();
        spawner.is_silent = is_silent;
        spawner
    }

    /// An attempt has ended, and its process is reaped: ends what it has started in other process groups.
    pub fn sweep(&self, attempt: &str) {
        if self.adopts
            && let Ok(requests) = self.requests()
        {
            // A thread that is gone has taken its children along.
            let _ = requests.send(Request::Sweep(attempt.to_owned()));
        }
    }

    /// Starts a task process; it runs when this returns, and has been killed and reaped when the result is dropped.
    pub async fn spawn(&self, mut launch: Launch) -> io::Result<TaskProcess> {
        launch.is_silent |= self.is_silent;
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the spawner thread is gone");
        self.requests()?.send(Request::Start(Box::new(launch), reply)).map_err(|_| gone())?;
        TaskProcess::adopt(answer.await.map_err(|_| gone())??, &self.own)
    }

    fn requests(&self) -> io::Result<mpsc::Sender<Request>> {
        // A panic while it was held can only have come before a thread was put in.
        let mut forking = self.forking.lock().unwrap_or_else(PoisonError::into_inner);
        if forking.is_none() {
            *forking = Some(ForkingThread::begin(Arc::clone(&self.own))?);
        }
        let requests = forking.as_ref().map(|forking| forking.requests.clone());
        requests.ok_or_else(|| io::Error::other("there is no spawner thread"))
    }
}

impl ForkingThread {
    fn begin(own: Own) -> io::Result<ForkingThread> {
        let (requests, inbox) = mpsc::channel::<Request>();
        let thread = std::thread::Builder::new().name("spawner".into()).spawn(move || {
            for request in inbox {
                match request {
                    Request::Start(launch, reply) => answer(*launch, reply, &own),
                    Request::Sweep(attempt) => {
                        let own = lock(&own).clone();
                        sweep(&own, &attempt);
                    }
                }
            }
        })?;
        Ok(ForkingThread { requests, thread })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let forking = self.forking.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(ForkingThread { requests, thread }) = forking.take() {
            drop(requests);
            // A panic of that thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

fn answer(launch: Launch, reply: oneshot::Sender<io::Result<Started>>, own: &Own) {
    let started = start(launch);
    let process = started.as_ref().ok().map(|started| pid_of(&started.child).as_raw_nonzero().get());
    lock(own).extend(process);
    // A requester that is gone drops the process, which ends it: its control channel closes.
    if let Err(Ok(mut unwanted)) = reply.send(started) {
        end_unwanted(&mut unwanted.child);
        lock(own).retain(|other| Some(*other) != process);
    }
}

/// Standard input is the control channel; without files for it, standard output is the job's standard error. No
/// `pre_exec`, so that the standard library takes posix_spawn, whose cost does not grow with the memory of this process.
fn start(launch: Launch) -> io::Result<Started> {
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
        .arg(MARKER)
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
    let mut child = execute(&mut command)?;
    // The child is not reaped yet, so its number is still its own.
    match pidfd_open(pid_of(&child), PidfdFlags::NONBLOCK) {
        Ok(pidfd) => Ok(Started { child, pidfd, control }),
        Err(error) => {
            end_unwanted(&mut child);
            Err(error.into())
        }
    }
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

fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Kills and reaps; errors only say that it is gone already.
fn end_unwanted(child: &mut Child) {
    let _ = kill_process_group(pid_of(child), Signal::KILL);
    let _ = child.wait();
}

/// A task process that has not been reaped.
pub struct TaskProcess {
    child: Child,
    pidfd: AsyncFd<OwnedFd>,
    control: UnixStream,
    reaped: bool,
    own: Own,
}

impl TaskProcess {
    fn adopt(started: Started, own: &Own) -> io::Result<TaskProcess> {
        let own = Arc::clone(own);
        let Started { mut child, pidfd, control } = started;
        let registered = UnixStream::from_std(control).and_then(|control| {
            // SAFETY: the descriptor is open, and owned by the result until that is dropped; nobody else gets at it.
            let pidfd = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
            Ok((control, pidfd?))
        });
        match registered {
            Ok((control, pidfd)) => Ok(TaskProcess { child, pidfd, control, reaped: false, own }),
            Err(error) => {
                end_unwanted(&mut child);
                lock(&own).remove(&pid_of(&child).as_raw_nonzero().get());
                Err(error)
            }
        }
    }

    /// The control channel.
    pub fn control(&self) -> &UnixStream {
        &self.control
    }

    /// Waits until the process has ended; it is a zombie then, and its number still its own.
    pub async fn ended(&self) -> io::Result<()> {
        self.pidfd.readable().await.map(|_| ())
    }

    /// Kills the process and every descendant in its group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Signals the process and every descendant in its group.
    pub fn signal(&self, signal: Signal) {
        if !self.reaped {
            // Not reaped, so the group's number is its own; an error says that no member is left to signal.
            let _ = kill_process_group(pid_of(&self.child), signal);
        }
    }

    /// Its number, which is its own as long as it is not reaped.
    pub fn id(&self) -> Pid {
        pid_of(&self.child)
    }

    /// A descriptor by which its turns can be waited for apart from this value.
    pub fn to_await(&self) -> io::Result<OwnedFd> {
        Ok(pidfd_open(self.id(), PidfdFlags::empty())?)
    }

    /// Reaps the process once it has ended, after killing what it left behind in its group.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        self.kill();
        let status = self.child.wait()?;
        self.reaped = true;
        lock(&self.own).remove(&self.id().as_raw_nonzero().get());
        Ok(status)
    }
}

impl Drop for TaskProcess {
    fn drop(&mut self) {
        if !self.reaped {
            end_unwanted(&mut self.child);
            lock(&self.own).remove(&self.id().as_raw_nonzero().get());
        }
    }
}
