//! What-if: simulates the history of a cluster under other schedulers.
//!
//! One thread with the lowest priority runs the queued simulations, one at a time, as child processes, which
//! inherit its priority and end with the server.

mod child;
mod folder;
mod output;
mod queue;
mod request;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use napreduce_protocol::lock;
use rustix::process::setpriority_process;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::warn;

use child::{MEMORY_BYTES_MAX, RunEnd};
use folder::{PartialRun, WhatIfFolder};
use output::SimOutput;
use queue::{Next, Queue};

pub use folder::WhatIfFolderError;
pub use output::WhatIfFidelity;
pub use queue::RemoveError;
pub use request::{RequestError, WhatIfRequest, Window};

/// The nice value of the thread.
const LOWEST_PRIORITY: i32 = 19;
/// Default time limit of a simulation.
const TIME_MAX: Duration = Duration::from_secs(60);

/// How simulations are run, and where their results are kept.
#[derive(Debug, Clone)]
pub struct WhatIfSettings {
    /// Path of `nap`.
    pub program: PathBuf,
    /// Leading arguments: `sim`, and the location of the cluster's scheduler tables.
    pub begin: Vec<OsString>,
    /// The complete environment of the child.
    pub environment: Vec<(String, String)>,
    /// Directory used by this server only; created if it is missing.
    pub folder: PathBuf,
    /// Schedulers that `program` knows.
    pub schedulers: Vec<String>,
    /// A simulation that runs for longer is killed.
    pub time_max: Duration,
}

impl WhatIfSettings {
    /// Settings with the default time limit, one minute, and no schedulers.
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

/// Progress of a what-if.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhatIfState {
    #[default]
    Queued,
    Running,
    Done,
    Failed,
}

/// A request for a simulation, and its outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// Its name, for example what-if-1.
    pub what_if: String,
    pub state: WhatIfState,
    /// The name of the requester's token.
    pub by: String,
    pub asked_millis: u64,
    pub begun_millis: Option<u64>,
    pub ended_millis: Option<u64>,
    /// The simulated recording, if the server shows several.
    pub recording: Option<String>,
    /// Bounds of the submission times, in milliseconds since 1970; the upper bound is exclusive.
    pub from_millis: Option<u64>,
    pub until_millis: Option<u64>,
    /// The selected jobs; empty for all.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// Simulated share of all jobs under all schedulers, in percent, while running.
    pub percent: Option<u8>,
    /// Schedulers simulated in addition to the recorded one.
    pub schedulers: Vec<String>,
    /// The given scheduler tables, in TOML.
    pub configuration: Option<String>,
    /// Names of the resulting recordings; the one with the recorded scheduler comes first, if it is known.
    pub recordings: Vec<String>,
    /// Null before the end, and if the history does not name its scheduler.
    pub fidelity: Option<WhatIfFidelity>,
    /// Information missing in the history, and values measured from it.
    pub remarks: Vec<String>,
    /// Why the simulation failed.
    pub error: Option<String>,
}

/// The what-ifs of a server. Dropping it stops the running one.
#[derive(Debug)]
pub struct WhatIfs {
    pub queue: Arc<Queue>,
    /// Schedulers that can be simulated.
    pub schedulers: Vec<String>,
    /// Time limit of each simulation.
    pub time_max: Duration,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WhatIfs {
    /// Loads the kept what-ifs and starts the thread.
    pub fn start(settings: WhatIfSettings) -> Result<WhatIfs, WhatIfFolderError> {
        let path = settings.folder.clone();
        let (folder, kept) = WhatIfFolder::open(&path)?;
        let queue = Arc::new(Queue::new(folder, kept));
        let schedulers = settings.schedulers.clone();
        let time_max = settings.time_max;
        let served = queue.clone();
        let thread = std::thread::Builder::new()
            .name("what-if".to_owned())
            .spawn(move || run_all(&settings, &served))
            .map_err(|source| WhatIfFolderError::Io { path, source })?;
        Ok(WhatIfs {
            queue,
            schedulers,
            time_max,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Stops the running simulation and joins the thread.
    pub fn close(&self) {
        self.queue.close();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // The panic hook has already reported a panic.
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
    // On Linux the priority belongs to the calling thread; children inherit it.
    if let Err(error) = setpriority_process(None, LOWEST_PRIORITY) {
        warn!("cannot lower the priority of what-if simulations: {error}");
    }
    while let Some(Next { name, request }) = queue.next() {
        let run = queue
            .folder()
            .begin(&name)
            .map_err(|error| failed("create its directory", &error));
        let outcome = run
            .and_then(|run| simulate(settings, queue, &request, &run).map(|output| (run, output)));
        queue.finish(&name, outcome);
    }
}

/// Runs one simulation to its end and parses its output. The error is a message for the page.
fn simulate(
    settings: &WhatIfSettings,
    queue: &Queue,
    request: &WhatIfRequest,
    run: &PartialRun,
) -> Result<SimOutput, String> {
    let tables = request
        .configuration
        .as_deref()
        .map(|text| run.tables(text))
        .transpose();
    let tables = tables.map_err(|error| failed("write its tables", &error))?;
    let line = request
        .line(tables.as_deref(), &run.record(), &run.progress())
        .map_err(|error| error.to_string())?;
    let (stdout, stderr) = run
        .outputs()
        .map_err(|error| failed("create its files", &error))?;
    let mut command = Command::new(&settings.program);
    command
        .args(&settings.begin)
        .args(line)
        .env_clear()
        .envs(settings.environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let ended = child::run(command, settings.time_max, |process| {
        queue.set_process(process)
    });
    match ended.map_err(|error| failed("run nap sim", &error))? {
        RunEnd::Exited(status) if status.success() => {}
        RunEnd::Exited(status) => return Err(failure_message(run, status)),
        RunEnd::TooLong => {
            let time = settings.time_max.as_secs_f64();
            return Err(format!(
                "the simulation was stopped after {time} s; choose a shorter window or fewer schedulers"
            ));
        }
    }
    let stdout = run
        .stdout()
        .map_err(|error| failed("read its output", &error))?;
    SimOutput::parse(&stdout).map_err(|error| {
        format!(
            "cannot parse the output of nap sim: {error}; if nap was upgraded, restart the server"
        )
    })
}

fn failed(what: &str, error: &io::Error) -> String {
    format!(
        "cannot {what}: {error}; check the permissions and free space of the what-if directory, then try again"
    )
}

/// Returns why a simulation failed: in general, what it wrote to standard error.
fn failure_message(run: &PartialRun, status: ExitStatus) -> String {
    let stderr = run.stderr_tail();
    if stderr.contains("memory allocation of") {
        let gibibytes = MEMORY_BYTES_MAX >> 30;
        return format!(
            "the simulation needs more than {gibibytes} GiB of memory; choose a shorter window"
        );
    }
    match (
        stderr.strip_prefix("nap: ").unwrap_or(&stderr),
        status.signal(),
    ) {
        ("", Some(signal)) => format!("the simulation was killed by signal {signal}; try again"),
        ("", None) => format!("the simulation failed ({status}) without a message; try again"),
        (message, _) => message.to_owned(),
    }
}
