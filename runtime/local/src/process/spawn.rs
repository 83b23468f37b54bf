//! Starts task processes: this program or a job's, each with its own process group and control channel.
#![allow(unsafe_code)] // Only to name descriptors that this process was started with.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::child::{Started, TaskProcess};
use super::control_groups::ControlGroups;
use super::forking::{AnswerToStart, Forking, Request, marks_of};
use super::orphans::adopt;
use super::prestart::{Model, Prestarts, give_outfit};

/// An environment variable of a task process; `None` removes it.
pub type Variable = (&'static str, Option<OsString>);

/// A prestarted process without a `Hello` after this time is given up.
const HELLO_MAX: Duration = Duration::from_secs(2);

/// The parameters of a task process.
#[derive(Debug, Default)]
pub struct Launch {
    pub variables: Vec<Variable>,
    /// The environment without these variables; `None` for this program's own.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// `None` for this program.
    pub program: Option<Executable>,
    /// The working directory; `None` for this program's.
    pub directory: Option<PathBuf>,
    /// The output files; `None` for this program's standard error.
    pub output: Option<TaskOutput>,
    /// Whether output without files is dropped.
    pub is_silent: bool,
}

/// A program of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    pub path: PathBuf,
    /// The program's own name, `argv[0]`.
    pub name: OsString,
}

/// Files for the output of a task process.
#[derive(Debug)]
pub struct TaskOutput {
    pub stdout: File,
    pub stderr: File,
}

/// Starts task processes from one thread, which starts with the first of them and lives as long as this
/// value: the kernel kills a task process when the thread that forked it ends.
#[derive(Debug)]
pub struct Spawner {
    forking: Mutex<Option<mpsc::Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether orphans of tasks become children of this process.
    adopts: bool,
    /// Control groups for prestarted processes.
    groups: Option<Arc<ControlGroups>>,
    /// Whether task output to this program's standard error is dropped.
    is_silent: bool,
    prestarts: Arc<Prestarts>,
}

impl Spawner {
    fn new(prestarts: Prestarts) -> Spawner {
        Spawner {
            forking: Mutex::default(),
            thread: Mutex::default(),
            adopts: false,
            groups: None,
            is_silent: false,
            prestarts: Arc::new(prestarts),
        }
    }

    /// Creates a spawner for a daemon, which has no other children: it adopts orphans of tasks and kills
    /// them. It keeps `ready` processes of a program prestarted once one was started, each in a control group
    /// if there are any.
    pub fn adopting(ready: usize, groups: Option<Arc<ControlGroups>>) -> io::Result<Spawner> {
        adopt()?;
        close_on_execution()?;
        let mut spawner = Spawner::new(Prestarts::new(ready, None));
        (spawner.adopts, spawner.groups) = (true, groups);
        Ok(spawner)
    }

    /// Creates a spawner for a program that runs one job of `tasks` tasks, `slots` at a time.
    pub fn for_one_job(is_silent: bool, slots: usize, tasks: u64) -> Spawner {
        let mut spawner = Spawner::new(Prestarts::new(slots, Some(tasks)));
        spawner.is_silent = is_silent;
        // Prestart while the job is planned; an error is reported by the first spawn.
        let _ = spawner.prestart(Model::of(&Launch { is_silent, ..Launch::default() }));
        spawner
    }

    /// Kills the processes that an ended, reaped attempt started in other process groups.
    pub fn sweep(&self, marks: Vec<String>) {
        if self.adopts && !marks.is_empty() {
            // If the thread has ended, so have its children.
            let _ = self.request(Request::Sweep(marks));
        }
    }

    /// Starts a task process or takes a prestarted one. It runs when this returns; dropping the result kills
    /// and reaps it.
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

    /// Assigns a prestarted process to an attempt; on failure returns `None` and stops prestarting the
    /// program.
    async fn make_use_of(&self, started: Started, model: &Model, launch: &Launch) -> Option<TaskProcess> {
        let marks = started.marks.clone();
        let made = async {
            let mut process = TaskProcess::watch(started)?;
            timeout(HELLO_MAX, process.control.readable()).await??;
            give_outfit(&process, launch)?;
            process.marks.extend(marks_of(launch));
            io::Result::Ok(process)
        };
        match made.await {
            Ok(process) => Some(process),
            // An attempt started in the usual way meets the same error and reports it.
            Err(_) => {
                let unwanted = self.prestarts.give_up(model);
                let marks = unwanted.iter().flat_map(|one| &one.marks).cloned().chain(marks).collect();
                drop(unwanted);
                self.sweep(marks);
                None
            }
        }
    }

    fn request(&self, request: Request) -> io::Result<()> {
        // A panic can only have happened before a thread was stored.
        let mut forking = self.forking.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = match forking.take() {
            Some(requests) => requests,
            None => self.begin_thread()?,
        };
        forking.insert(requests).send(request).map_err(|_| gone())
    }

    fn begin_thread(&self) -> io::Result<mpsc::Sender<Request>> {
        let (requests, inbox) = mpsc::channel::<Request>();
        let forking = Forking::new(self.adopts, self.groups.clone(), Arc::clone(&self.prestarts));
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
            // The panic of that thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Sets close-on-exec on inherited descriptors, which must not reach the tasks.
fn close_on_execution() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|number| *number > 2) else { continue };
        // SAFETY: it was open a moment ago, and is not used beyond this call; if it was that of the listing,
        // or is closed by now, the call changes nothing or fails.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}
