//! The processes of the demonstration: the cluster, and one for each run of the job. All are `nap` itself, without
//! the settings of the environment.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::LOOK;
use super::interrupt::Interrupt;
use crate::parent::PARENT_VARIABLE;

/// How long a process may take to end before it is killed; `nap up` gives its daemons twice 15 seconds.
const ENDING_MAX: Duration = Duration::from_secs(40);

/// Returns a command of this program, in a process group of its own: Ctrl-C reaches only this process, which ends
/// the others in order.
fn command(line: &[OsString]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"NAPREDUCE_") {
            command.env_remove(name);
        }
    }
    command.args(line).process_group(0).stdin(Stdio::null());
    command.env(PARENT_VARIABLE, std::process::id().to_string());
    command
}

/// Runs `nap` to its end and returns what it prints. A signal ends it, too.
pub fn run_to_end(line: &[OsString], interrupt: &Interrupt) -> Result<String> {
    let shown = line
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let cannot = || format!("cannot run nap {shown}");
    let mut child = command(line)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(cannot)?;
    // With --quiet a job program prints less than a pipe holds.
    while child.try_wait().with_context(cannot)?.is_none() {
        if let Err(interrupted) = interrupt.check() {
            end(&mut child)?;
            return Err(interrupted);
        }
        thread::sleep(LOOK);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().with_context(cannot)?;
    if !status.success() {
        bail!(
            "nap {shown} failed ({status}): {}",
            String::from_utf8_lossy(&stderr).trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A running `nap up`. It is ended when this is dropped.
pub struct Up {
    child: Child,
    /// A link to the page.
    pub page: String,
    /// How long the cluster took to start.
    pub ready_after: Duration,
}

impl Up {
    /// Starts the cluster of a directory and waits until it is ready.
    pub fn start(directory: &Path, interrupt: &Interrupt) -> Result<Up> {
        let began = Instant::now();
        let log = directory.with_extension("log");
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = command(&["up".into(), "--dir".into(), directory.into()]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .context("cannot start a cluster")?;
        let mut up = Up {
            child,
            page: String::new(),
            ready_after: Duration::ZERO,
        };
        let lines = up.lines()?;
        while up.page.is_empty() {
            interrupt.check()?;
            match lines.recv_timeout(LOOK) {
                Ok(line) => up.page = link(&line).unwrap_or_default().to_owned(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let why = fs::read_to_string(&log).unwrap_or_default();
                    bail!("the cluster has not started: {}", why.trim_end());
                }
            }
        }
        up.ready_after = began.elapsed();
        Ok(up)
    }

    /// Returns the lines that it prints.
    fn lines(&mut self) -> Result<Receiver<String>> {
        let stdout = self.child.stdout.take().context("nap up has no output")?;
        let (lines, printed) = channel();
        thread::spawn(move || {
            // The lines after the link have no receiver.
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .for_each(|line| drop(lines.send(line)));
        });
        Ok(printed)
    }

    /// Ends the cluster.
    pub fn end(mut self) -> Result<()> {
        end(&mut self.child)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // The error that led here is the one to report.
        let _ = end(&mut self.child);
    }
}

/// Returns the link in the line of `nap up` about its page.
fn link(line: &str) -> Option<&str> {
    line.strip_prefix("web: ")?.split(' ').next()
}

/// Sends SIGINT to a process and waits for its end; kills it if it takes too long.
fn end(child: &mut Child) -> Result<()> {
    let began = Instant::now();
    let cannot = "cannot end a process of the demo";
    if child.try_wait().context(cannot)?.is_some() {
        return Ok(());
    }
    // The PID is not reused before the process is waited for.
    kill_process(Pid::from_child(child), Signal::INT).context(cannot)?;
    while began.elapsed() < ENDING_MAX {
        if child.try_wait().context(cannot)?.is_some() {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    child.kill().context(cannot)?;
    child.wait().context(cannot)?;
    Err(anyhow!(
        "process {} of the demo did not end in {ENDING_MAX:?} and was killed",
        child.id()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_is_found_in_the_line_of_the_page() {
        assert_eq!(
            link("web: http://127.0.0.1:1/#code=x      (one sign-in)"),
            Some("http://127.0.0.1:1/#code=x")
        );
        assert_eq!(link("ready: 2 workers"), None);
    }
}
