//! Starting task processes: this program again or a job's, with a process group and a control
//! channel of its own.
//!
//! Owns what is asked of the thread that starts them. Does not own that thread (`forking`), the handle of a
//! process (`child`), which are started ahead (`prestart`), nor what a task process does.
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

/// A variable of a task process's environment; `None` takes it away.
pub type Variable = (&'static str, Option<OsString>);

/// A process that was started ahead and has not come to its hello by then is given up.
const HELLO_MAX: Duration = Duration::from_secs(2);

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

/// Starts task processes from one thread, begun with the first of them, that lives as long as this value: the
/// kernel kills a task process when the thread that forked it ends.
#[derive(Debug)]
pub struct Spawner {
    forking: Mutex<Option<mpsc::Sender<Request>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether orphans of tasks become children of this process.
    adopts: bool,
    /// One of these for each process that is started ahead.
    groups: Option<Arc<ControlGroups>>,
    /// Whether what tasks print to this program's standard error is dropped.
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

    /// One whose process takes in the orphans of its tasks, and ends them: for a daemon, which has no other
    /// children. So many processes of a program are kept ready once one was started, each in one of these
    /// control groups if there are any.
    pub fn adopting(ready: usize, groups: Option<Arc<ControlGroups>>) -> io::Result<Spawner> {
        adopt()?;
        close_on_execution()?;
        let mut spawner = Spawner::new(Prestarts::new(ready, None));
        (spawner.adopts, spawner.groups) = (true, groups);
        Ok(spawner)
    }

    /// One for a program that runs a job by itself, of so many tasks, so many at a time.
    pub fn for_one_job(is_silent: bool, slots: usize, tasks: u64) -> Spawner {
        let mut spawner = Spawner::new(Prestarts::new(slots, Some(tasks)));
        spawner.is_silent = is_silent;
        // The first are under way while the job is planned; an error meets whoever wants one.
        let _ = spawner.prestart(Model::of(&Launch { is_silent, ..Launch::default() }));
        spawner
    }

    /// An attempt has ended, and its process is reaped: ends what it has started in other process groups.
    pub fn sweep(&self, marks: Vec<String>) {
        if self.adopts && !marks.is_empty() {
            // A thread that is gone has taken its children along.
            let _ = self.request(Request::Sweep(marks));
        }
    }

    /// Starts a task process, or takes one that was started ahead; it runs when this returns, and has been
    /// killed and reaped when the result is dropped.
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
            // An attempt that is started as usual meets what is wrong, and can say it.
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
            // A panic of that thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

/// Descriptors that this process was started with, by a shell or a service, are no business of its tasks.
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
