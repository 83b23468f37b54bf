//! The process of an engine: started before the first job and stopped after the last.

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

/// Time to exit after each request to stop, before the next and stronger one.
const END_MAX: Duration = Duration::from_secs(10);
const END_TICK: Duration = Duration::from_millis(20);

/// Settings of an engine.
#[derive(Debug, Clone)]
pub struct GuestEngineSettings {
    /// The name of the program, for people.
    pub name: String,
    /// Settings passed to the engine.
    pub settings: BTreeMap<String, String>,
    /// Set if guests save checkpoints.
    pub checkpoints: Option<GuestCheckpointSettings>,
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Print only errors of the job on standard error; overrides `progress`.
    pub quiet: bool,
}

/// An external engine, such as Spark, that runs the jobs of this program. Stopped when dropped.
#[derive(Debug)]
pub struct GuestEngine {
    pub(super) directory: EngineDirectory,
    pub(super) settings: GuestEngineSettings,
    pub(super) events: UnboundedReceiver<Result<EngineEvent, String>>,
    /// Number of jobs so far.
    pub(super) jobs: u32,
    child: Child,
}

impl GuestEngine {
    /// Starts the command returned by `command` for the engine directory, in its own process group.
    ///
    /// # Errors
    /// Fails if the command cannot be started.
    pub fn start(
        settings: GuestEngineSettings,
        command: impl FnOnce(&std::path::Path) -> Result<Command, JobError>,
    ) -> Result<GuestEngine, JobError> {
        let directory = EngineDirectory::make(&settings)?;
        let mut command = command(directory.path())?;
        let shown = PathBuf::from(command.get_program());
        // Signals to this program must not reach the engine directly; it is stopped in order.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(directory.log()?);
        let mut child = command.spawn().map_err(|error| {
            JobError::io(format!("start the engine {}", shown.display()), error)
        })?;
        let (heard, events) = unbounded_channel();
        if let Some(printed) = child.stdout.take() {
            let log = directory.log()?;
            std::thread::spawn(move || listen(printed, &heard, log));
        }
        Ok(GuestEngine {
            directory,
            settings,
            events,
            jobs: 0,
            child,
        })
    }

    /// Returns the exit status of the process, if it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops the idle engine.
    fn end(&mut self) {
        // Fall back to signals if the request fails or times out.
        if self.directory.end().is_err() || !self.wait(END_MAX) {
            self.end_at_once();
        }
    }

    /// Stops the engine at once; its work is no longer needed.
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

/// Forwards events until the output ends; writes all other lines to the log.
fn listen(
    printed: ChildStdout,
    heard: &UnboundedSender<Result<EngineEvent, String>>,
    mut log: File,
) {
    let mut printed = BufReader::new(printed);
    let mut line = Vec::new();
    loop {
        line.clear();
        match printed.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        match EngineEvent::parse(&line) {
            // The engine is being stopped, and the receiver is gone.
            Some(event) => {
                let _ = heard.send(event);
            }
            // Failing to write the log is not an error.
            None => {
                let _ = log.write_all(&line);
            }
        }
    }
}
