//! Starts task processes: this program or a job's, each with its own process group and control channel.
#![allow(unsafe_code)] // borrows inherited descriptors

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use napreduce_protocol::lock;
use napreduce_task::{Watcher, end_processes_of};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Pid;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::child::{ChildProcess, Started};
use super::control_groups::ControlGroups;
use super::forking::{AnswerToStart, Forking, Request, marks_of};
use super::launch::Launch;
use super::memory::{ProcessMemory, SpareMemory, oom_kills, stalled_micros};
use super::orphans::adopt;
use super::prestart::{Model, Prestarts, give_outfit};
use super::processes::{Pending, Processes, TaskProcess};

/// A prestarted process without a `Hello` after this time is given up.
const HELLO_MAX: Duration = Duration::from_secs(2);

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
    /// Ends what is left of attempts if this process is killed. Dropped after the thread has ended.
    watcher: Option<Watcher>,
    /// The directory of the worker, in the environment of every process.
    directory: Option<PathBuf>,
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
            watcher: None,
            directory: None,
        }
    }

    /// Creates a spawner for a daemon, which has no other children: it adopts orphans of tasks and kills
    /// them. It keeps `ready` processes of a program prestarted once one was started, each in a control group
    /// if there are any. What a killed predecessor in the same directory has left is ended first; a watcher ends it
    /// sooner.
    pub fn adopting(
        ready: usize,
        groups: Option<Arc<ControlGroups>>,
        directory: &Path,
    ) -> io::Result<Spawner> {
        adopt()?;
        close_on_execution()?;
        let directory = std::path::absolute(directory)?;
        end_processes_of(&directory);
        let mut spawner = Spawner::new(Prestarts::new(ready, None));
        (spawner.adopts, spawner.groups) = (true, groups);
        spawner.watcher = Some(Watcher::start(&directory)?);
        spawner.directory = Some(directory);
        Ok(spawner)
    }

    /// Creates a spawner for a program that runs one job of `tasks` tasks, `slots` at a time.
    pub fn for_one_job(is_silent: bool, slots: usize, tasks: u64) -> Spawner {
        let mut spawner = Spawner::new(Prestarts::new(slots, Some(tasks)));
        spawner.is_silent = is_silent;
        // Prestart while the job is planned; an error is reported by the first spawn.
        let _ = spawner.prestart(Model::for_launch(&Launch {
            is_silent,
            ..Launch::default()
        }));
        spawner
    }

    /// Starts a task process or takes a prestarted one. It runs when this returns.
    async fn spawn(&self, mut launch: Launch) -> io::Result<ChildProcess> {
        launch.is_silent |= self.is_silent;
        let model = Model::for_launch(&launch);
        self.prestarts.expect_one_less(&model);
        let process = loop {
            let started = match self.prestarts.take(&model) {
                Some(started) => AnswerToStart {
                    started,
                    unused: Some(Box::new(launch)),
                },
                None => self.request_start(launch).await?,
            };
            match started {
                AnswerToStart {
                    started,
                    unused: None,
                } => break ChildProcess::watch(started)?,
                AnswerToStart {
                    started,
                    unused: Some(outfit),
                } => match self.make_use_of(started, &model, &outfit).await {
                    Some(process) => break process,
                    None => launch = *outfit,
                },
            }
        };
        self.prestart(model)?;
        Ok(process)
    }

    async fn request_start(&self, launch: Launch) -> io::Result<AnswerToStart> {
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
    async fn make_use_of(
        &self,
        started: Started,
        model: &Model,
        launch: &Launch,
    ) -> Option<ChildProcess> {
        let marks = started.marks.clone();
        let made = async {
            let mut process = ChildProcess::watch(started)?;
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
                let marks = unwanted
                    .iter()
                    .flat_map(|one| &one.marks)
                    .cloned()
                    .chain(marks)
                    .collect();
                drop(unwanted);
                self.sweep(marks);
                None
            }
        }
    }

    fn request(&self, request: Request) -> io::Result<()> {
        // A panic can only have happened before a thread was stored.
        let mut forking = lock(&self.forking);
        let requests = match forking.take() {
            Some(requests) => requests,
            None => self.begin_thread()?,
        };
        forking.insert(requests).send(request).map_err(|_| gone())
    }

    fn begin_thread(&self) -> io::Result<mpsc::Sender<Request>> {
        let (requests, inbox) = mpsc::channel::<Request>();
        let groups = self.groups.clone();
        let prestarts = Arc::clone(&self.prestarts);
        let forking = Forking::new(self.adopts, groups, prestarts, self.directory.clone());
        let thread = std::thread::Builder::new()
            .name("spawner".into())
            .spawn(move || forking.run(&inbox))?;
        *lock(&self.thread) = Some(thread);
        Ok(requests)
    }
}

impl Processes for Spawner {
    fn start(&self, launch: Launch) -> Pending<'_, Box<dyn TaskProcess>> {
        Box::pin(async move { Ok(Box::new(self.spawn(launch).await?) as Box<dyn TaskProcess>) })
    }

    fn sweep(&self, marks: Vec<String>) {
        if self.adopts && !marks.is_empty() {
            // If the thread has ended, so have its children.
            let _ = self.request(Request::Sweep(marks));
        }
    }

    fn memory_of(&self, process: Pid) -> io::Result<ProcessMemory> {
        ProcessMemory::with_descendants(process)
    }

    fn spare_memory(&self) -> io::Result<SpareMemory> {
        SpareMemory::read()
    }

    fn stalled_micros(&self) -> Option<u64> {
        stalled_micros()
    }

    fn oom_kills(&self) -> u64 {
        oom_kills()
    }
}

fn gone() -> io::Error {
    io::Error::other("the spawner thread has ended")
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.forking
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            // The panic of that thread has been printed.
            let _ = thread.join();
        }
    }
}

/// Sets close-on-exec on inherited descriptors, which must not reach the tasks.
fn close_on_execution() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<i32>().ok());
        let Some(number) = number.filter(|number| *number > 2) else {
            continue;
        };
        // SAFETY: it was open a moment ago, and is not used beyond this call; if it was that of the listing,
        // or is closed by now, the call changes nothing or fails.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
    Ok(())
}
