//! One daemon of `nap up`: its process, killed when this program ends, and its output with a prefix.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use napreduce_protocol::printing::print_error;
use rustix::process::{Pid, Signal, kill_process};

use crate::parent::PARENT_VARIABLE;

pub struct Daemon {
    pub name: String,
    line: Vec<OsString>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    since: Instant,
    lines: JoinHandle<()>,
}

/// How a daemon has ended.
pub struct DaemonExit {
    pub how: String,
    /// With status 0.
    pub well: bool,
    /// With the status of wrong usage: a restart would not help.
    pub wrongly: bool,
    pub lived: Duration,
}

impl Daemon {
    /// A daemon that is this program with these arguments.
    pub fn new(name: &str, line: Vec<OsString>) -> Daemon {
        Daemon {
            name: name.to_owned(),
            line,
            running: None,
        }
    }

    /// Starts the daemon; `silent` is called when its output ends.
    pub fn start(&mut self, silent: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut command = Command::new("/proc/self/exe");
        // In a process group of its own, so that Ctrl-C reaches only this program, which ends daemons in order.
        command
            .args(&self.line)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // Ends the daemon even if this program is killed.
        command.env(PARENT_VARIABLE, std::process::id().to_string());
        command.stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let name = self.name.clone();
        let stderr = child.stderr.take();
        let lines = thread::spawn(move || {
            pass_on(&name, stderr);
            silent();
        });
        self.running = Some(Running {
            child,
            since: Instant::now(),
            lines,
        });
        Ok(())
    }

    /// Returns once how the daemon has ended; waits if its output has ended.
    pub fn ended(&mut self, silent: bool) -> Result<Option<DaemonExit>> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        // The output may be that of the process before a restart.
        let status = if silent && running.lines.is_finished() {
            Some(running.child.wait())
        } else {
            running.child.try_wait().transpose()
        };
        let Some(status) = status else {
            return Ok(None);
        };
        let status = status.with_context(|| format!("cannot wait for {}", self.name))?;
        let lived = running.since.elapsed();
        self.running = None;
        Ok(Some(DaemonExit {
            how: describe(status),
            well: status.success(),
            wrongly: status.code() == Some(2),
            lived,
        }))
    }

    pub fn is_running(&mut self) -> bool {
        // If waiting fails, count it as running: it will be killed.
        self.running
            .as_mut()
            .is_some_and(|running| !matches!(running.child.try_wait(), Ok(Some(_))))
    }

    /// Sends SIGINT to end at once, or SIGTERM to let a worker checkpoint its tasks first.
    pub fn ask_to_end(&mut self, signal: Signal) {
        if self.is_running()
            && let Some(running) = &self.running
            && let Some(pid) = i32::try_from(running.child.id())
                .ok()
                .and_then(Pid::from_raw)
        {
            // The PID is not reused before the process is waited for. An ended process is no error.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the daemon if it runs, and prints the rest of its output.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let ended = running
            .child
            .try_wait()
            .with_context(|| format!("cannot wait for {}", self.name))?;
        if ended.is_none() {
            print_error(format_args!(
                "nap up: {} has not ended in time and is killed",
                self.name
            ));
            running
                .child
                .kill()
                .with_context(|| format!("cannot kill {}", self.name))?;
            running
                .child
                .wait()
                .with_context(|| format!("cannot wait for {}", self.name))?;
        }
        // A panic of the thread loses output only.
        let _ = running.lines.join();
        Ok(())
    }
}

fn pass_on(name: &str, stderr: Option<ChildStderr>) {
    let Some(stderr) = stderr else { return };
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line), Ok(count) if count > 0) {
        print_error(format_args!(
            "{name:<11} | {}",
            String::from_utf8_lossy(&line).trim_end()
        ));
        line.clear();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
