//! The process of an engine: started before the first job, and ended behind the last.
//!
//! Owns it and what it prints. Does not own what a job comes to (`run`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use napreduce_local::ProgressMode;
use napreduce_protocol::JobError;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::checkpoints::GuestCheckpointSettings;
use super::directory::EngineDirectory;
use crate::forms::EngineEvent;

/// An engine that is told to end does so in this time, or is told again, and then killed.
const END_MAX: Duration = Duration::from_secs(10);
const END_TICK: Duration = Duration::from_millis(20);

/// How an engine is used.
#[derive(Debug, Clone)]
pub struct GuestEngineSettings {
    /// The name of the program, for people.
    pub name: String,
    /// What was said about the engine, in its own words.
    pub settings: BTreeMap<String, String>,
    /// Whether guests save their work.
    pub checkpoints: Option<GuestCheckpointSettings>,
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Nothing but errors of the job on standard error; wins over `progress`.
    pub quiet: bool,
}

/// An engine of somebody else, such as Spark, that runs the jobs of this program. Ended when it is dropped.
#[derive(Debug)]
pub struct GuestEngine {
    pub(super) directory: EngineDirectory,
    pub(super) settings: GuestEngineSettings,
    pub(super) events: UnboundedReceiver<Result<EngineEvent, String>>,
    /// How many jobs it was given.
    pub(super) jobs: u32,
    child: Child,
}

impl GuestEngine {
    /// Starts what `command` makes of the directory by which the engine is told, in a process group
    /// of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        settings: GuestEngineSettings,
        command: impl FnOnce(&std::path::Path) -> Result<Command, JobError>,
    ) -> Result<GuestEngine, JobError> {
        let directory = EngineDirectory::make(&settings)?;
        let mut command = command(directory.path())?;
        let shown = PathBuf::from(command.get_program());
        // A signal to this program is this program's business: the engine is told in its turn.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(directory.log()?);
        let mut child = command
            .spawn()
            .map_err(|error| JobError::io(format!("start the engine {}", shown.display()), error))?;
        let (heard, events) = unbounded_channel();
        if let Some(printed) = child.stdout.take() {
            let log = directory.log()?;
            std::thread::spawn(move || listen(printed, &heard, log));
        }
        Ok(GuestEngine { directory, settings, events, jobs: 0, child })
    }

    /// How the process has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it when it has nothing to do.
    fn end(&mut self) {
        // One that cannot be told so is told by signals.
        if self.directory.end().is_err() || !self.wait(END_MAX) {
            self.end_at_once();
        }
    }

    /// Ends it: what it runs is of no use to anybody.
    pub(super) fn end_at_once(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        for signal in [Signal::TERM, Signal::KILL] {
            if self.ended().is_some() {
                return;
            }
            if let Some(group) = group {
                // It has ended meanwhile.
                let _ = kill_process_group(group, signal);
            }
            self.wait(END_MAX);
        }
    }

    fn wait(&mut self, most: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < most {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(END_TICK),
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        false
    }
}

impl Drop for GuestEngine {
    fn drop(&mut self) {
        self.end();
    }
}

/// Passes events on until the engine prints nothing more; anything else goes into the log.
fn listen(printed: ChildStdout, heard: &UnboundedSender<Result<EngineEvent, String>>, mut log: File) {
    let mut printed = BufReader::new(printed);
    let mut line = Vec::new();
    loop {
        line.clear();
        match printed.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match EngineEvent::parse(&line) {
            // The engine is being ended, and nobody listens.
            Some(event) => drop(heard.send(event)),
            // What cannot be kept is not missed.
            None => drop(log.write_all(&line)),
        }
    }
}
