//! What if a cluster had had another policy: simulations of its history, each a child of this server.
//!
//! Owns what is told of each, and the thread that runs them, one at a time. Does not own the simulation,
//! which is the program that the server is given. The child gets what the thread has: no priority, and an end
//! when the server ends.

mod child;
mod folder;
mod queue;
mod request;
mod said;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::setpriority_process;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use child::{MEMORY_BYTES_MAX, RunEnd};
use folder::{PartialRun, WhatIfFolder};
use queue::{Next, Queue};
use said::Said;

use crate::lock::lock;

pub use folder::WhatIfFolderError;
pub use queue::RemoveError;
pub use request::{RequestError, WhatIfRequest, Window};
pub use said::WhatIfFidelity;

/// Of a thread: after all others.
const LOWEST_PRIORITY: i32 = 19;
/// What a simulation may take.
const TIME_MAX: Duration = Duration::from_secs(60);

/// How histories are simulated, and where what comes of it is kept.
#[derive(Debug, Clone)]
pub struct WhatIfSettings {
    /// The program: `nap`.
    pub program: PathBuf,
    /// What its line begins with: `sim`, and where the tables of the cluster are.
    pub begin: Vec<OsString>,
    /// All that its environment says.
    pub environment: Vec<(String, String)>,
    /// A folder of the server alone; it is made.
    pub folder: PathBuf,
    /// The policies that it knows.
    pub schedulers: Vec<String>,
    /// It is killed after that long.
    pub time_max: Duration,
}

impl WhatIfSettings {
    /// A program that takes at most a minute for each.
    pub fn new(program: PathBuf, folder: PathBuf) -> WhatIfSettings {
        WhatIfSettings {
            program,
            begin: Vec::new(),
            environment: Vec::new(),
            folder,
            schedulers: Vec::new(),
            time_max: TIME_MAX,
        }
    }
}

/// How far a what-if is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhatIfState {
    #[default]
    Queued,
    Running,
    Done,
    Failed,
}

/// What was asked for, and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// Its name: what-if-1.
    pub what_if: String,
    pub state: WhatIfState,
    /// Who asked, by the name of the token.
    pub by: String,
    pub asked_millis: u64,
    pub begun_millis: Option<u64>,
    pub ended_millis: Option<u64>,
    /// Whose history it is of, where several are shown.
    pub recording: Option<String>,
    /// Bounds of the submissions, in milliseconds since 1970.
    pub from_millis: Option<u64>,
    pub until_millis: Option<u64>,
    /// Those that were chosen of these; nothing for all.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// How many percent of the jobs of all policies have been simulated, while it runs.
    pub percent: Option<u8>,
    /// Those that are tried beside the recorded one.
    pub schedulers: Vec<String>,
    /// The tables that were given.
    pub configuration: Option<String>,
    /// What was made, for `recording` in other queries; first that of the recorded policy, where it is known.
    pub recordings: Vec<String>,
    /// None before it is done, and where the history does not say which policy it had.
    pub fidelity: Option<WhatIfFidelity>,
    /// What the history lacks, and what was measured in it.
    pub remarks: Vec<String>,
    /// Why there is no result.
    pub error: Option<String>,
}

/// What-ifs of a server; the one that runs ends with it.
#[derive(Debug)]
pub struct WhatIfs {
    /// All that are known.
    pub queue: Arc<Queue>,
    /// The policies that can be tried.
    pub schedulers: Vec<String>,
    /// What each may take.
    pub time_max: Duration,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WhatIfs {
    /// Takes over what is kept, and waits for what is asked.
    pub fn start(settings: WhatIfSettings) -> Result<WhatIfs, WhatIfFolderError> {
        let path = settings.folder.clone();
        let (folder, kept) = WhatIfFolder::open(&path)?;
        let queue = Arc::new(Queue::over(folder, kept));
        let (schedulers, time_max) = (settings.schedulers.clone(), settings.time_max);
        let served = queue.clone();
        let thread = std::thread::Builder::new()
            .name("what-if".to_owned())
            .spawn(move || run_all(&settings, &served))
            .map_err(|source| WhatIfFolderError::Io { path, source })?;
        Ok(WhatIfs { queue, schedulers, time_max, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the one that runs, and runs no other; returns when nothing of it is left.
    pub fn close(&self) {
        self.queue.close();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for WhatIfs {
    fn drop(&mut self) {
        self.close();
    }
}

fn run_all(settings: &WhatIfSettings, queue: &Queue) {
    // It is this thread's alone, and its children's.
    if let Err(error) = setpriority_process(None, LOWEST_PRIORITY) {
        warn!("what-ifs have the priority of everything else: {error}");
    }
    while let Some(Next { name, request }) = queue.next() {
        let ran = queue.folder().begin(&name).map_err(|error| failed("make a place for it", &error));
        let ran = ran.and_then(|run| simulate(settings, queue, &request, &run).map(|said| (run, said)));
        queue.ended(&name, ran);
    }
}

/// Runs one to its end; what it says, or why it says nothing.
fn simulate(
    settings: &WhatIfSettings,
    queue: &Queue,
    request: &WhatIfRequest,
    run: &PartialRun,
) -> Result<Said, String> {
    let tables = request.configuration.as_deref().map(|text| run.tables(text)).transpose();
    let tables = tables.map_err(|error| failed("write its tables", &error))?;
    let line =
        request.line(tables.as_deref(), &run.record(), &run.progress()).map_err(|error| error.to_string())?;
    let (said, complained) = run.outputs().map_err(|error| failed("make its files", &error))?;
    let mut command = Command::new(&settings.program);
    command.args(&settings.begin).args(line).env_clear().envs(settings.environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(said).stderr(complained);
    let ended = child::run(command, settings.time_max, |process| queue.running(process));
    match ended.map_err(|error| failed("run it", &error))? {
        RunEnd::Exited(status) if status.success() => {}
        RunEnd::Exited(status) => return Err(complaint(run, status)),
        RunEnd::TooLong => {
            let time = settings.time_max.as_secs_f64();
            return Err(format!("it was ended after {time} s; ask for a shorter time, or fewer schedulers"));
        }
    }
    let said = run.said().map_err(|error| failed("read what it says", &error))?;
    Said::parse(&said).map_err(|error| {
        format!("what the simulation says cannot be read: {error}; nap was replaced, perhaps: start the server again")
    })
}

fn failed(what: &str, error: &io::Error) -> String {
    format!(
        "cannot {what}: {error}; see that its folder can be written and the machine has room, and try again"
    )
}

/// Why a simulation failed, in its own words.
fn complaint(run: &PartialRun, status: ExitStatus) -> String {
    let words = run.complaint();
    if words.contains("memory allocation of") {
        let gibibytes = MEMORY_BYTES_MAX >> 30;
        return format!("it needs more than {gibibytes} GiB of memory; ask for a shorter time");
    }
    match (words.strip_prefix("nap: ").unwrap_or(&words), status.signal()) {
        ("", Some(signal)) => format!("it was ended by signal {signal}; try again"),
        ("", None) => format!("it ended with {status}, and said nothing; try again"),
        (words, _) => words.to_owned(),
    }
}
