//! The guard of an experiment: a process that removes its resources when it ends for any reason: processes in a control
//! group, the group, a swap file, folders. The experiment registers each of them before it is made; the end of the pipe
//! starts the cleanup.
//!
//! The kernel ends daemons with the experiment (`NAPREDUCE_UP_PROCESS`), and tasks end with their worker. Their working
//! folder is that of the experiment, so a folder is removed once no process works in it.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use napreduce_protocol::printing::print_error;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::jobs::{called, own_binary};

/// The program name under which this binary is the guard.
const GUARD_PROGRAM: &str = "nap-lab-guard";
/// How long daemons may take to end before they are killed; longer than the grace of their tasks.
const POLITE: Duration = Duration::from_secs(20);
/// How long killed processes may take to disappear.
const GONE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// A resource that must not outlive the experiment. The variants are removed in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Charge {
    /// Its processes are killed.
    ControlGroup(PathBuf),
    Swap(PathBuf),
    Folder(PathBuf),
}

impl Charge {
    /// Removes it, if it exists.
    fn end(&self) -> Result<()> {
        match self {
            Charge::ControlGroup(path) => end_group(path),
            Charge::Swap(path) => end_swap(path),
            Charge::Folder(path) => end_folder(path),
        }
    }
}

/// The experiment's side of its guard. A drop cleans up and waits.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// `None` after the cleanup.
    charges: Option<ChildStdin>,
}

impl Guard {
    /// Starts this binary under the name of the guard.
    pub fn start() -> Result<Guard> {
        let program = own_binary();
        let mut command = Command::new(&program);
        // Ctrl-C at the terminal does not reach its process group.
        command
            .arg0(GUARD_PROGRAM)
            .process_group(0)
            .current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start the guard {}", program.display()))?;
        let charges = child.stdin.take();
        Ok(Guard { child, charges })
    }

    /// Registers a resource before it is made.
    pub fn take(&mut self, charge: &Charge) -> Result<()> {
        if let Some(charges) = &mut self.charges {
            let line = serde_json::to_string(charge)? + "\n";
            let written = charges.write_all(line.as_bytes());
            written.context("the guard that cleans up after the experiment is gone")?;
        }
        Ok(())
    }

    /// Cleans up; fails when a resource is left.
    pub fn clean_up(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if self.charges.take().is_none() {
            return Ok(());
        }
        let mut left = String::new();
        if let Some(output) = &mut self.child.stdout {
            output.read_to_string(&mut left)?;
        }
        let status = self.child.wait()?;
        match (left.trim(), status.success()) {
            ("", true) => Ok(()),
            ("", false) => bail!("the guard that cleans up ended with {status}"),
            (left, _) => bail!("not everything was cleaned up: {left}"),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The guard prints the remaining files; `clean_up` also returns them.
        let _ = self.end();
    }
}

pub fn guard_requested() -> bool {
    called(GUARD_PROGRAM)
}

/// The main function of a guard, which ignores signals.
pub fn guard_program() -> ExitCode {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE] {
        if let Err(error) = flag::register(signal, Arc::new(AtomicBool::new(false))) {
            print_error(format_args!(
                "{GUARD_PROGRAM}: cannot ignore signals: {error}"
            ));
            return ExitCode::FAILURE;
        }
    }
    let left = serve(io::stdin().lock());
    for what in &left {
        print_error(format_args!("{GUARD_PROGRAM}: {what}"));
    }
    // The experiment may have ended.
    let _ = write!(io::stdout(), "{}", left.join("; "));
    if left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Reads charges until the input ends, then ends them; returns errors.
fn serve(charges: impl BufRead) -> Vec<String> {
    // A broken pipe ends the experiment as a closed one does.
    let lines = charges.lines().map_while(Result::ok);
    let mut taken: Vec<Charge> = lines
        .filter_map(|line| serde_json::from_str(&line).ok())
        .collect();
    taken.sort();
    taken
        .iter()
        .filter_map(|charge| Some(format!("{:#}", charge.end().err()?)))
        .collect()
}

fn until(limit: Duration, done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

fn remove_with(path: &Path, remove: fn(&Path) -> io::Result<()>) -> Result<()> {
    let gone = until(GONE, || remove(path).is_ok() || !path.exists());
    ensure!(gone, "cannot remove {}", path.display());
    Ok(())
}

fn end_folder(path: &Path) -> Result<()> {
    if !until(POLITE, || processes_in(path).is_empty()) {
        for process in processes_in(path) {
            // An error means that it has ended.
            let _ = kill_process(process, Signal::KILL);
        }
        let gone = until(GONE, || processes_in(path).is_empty());
        ensure!(gone, "processes in {} do not end", path.display());
    }
    remove_with(path, |path| fs::remove_dir_all(path))
}

/// The processes whose working folder is in this one.
fn processes_in(folder: &Path) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let working = processes.filter(|entry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(folder))
    });
    working
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Makes a swap file and enables it; removes it on failure. A swap file must not have holes.
pub fn make_swap(path: &Path, bytes: u64) -> Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut made = || -> Result<()> {
        io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
        file.sync_all()?;
        run("mkswap", path)?;
        run("swapon", path)
    };
    made().inspect_err(|_| {
        // It may have filled the disk. The guard reports an error.
        let _ = fs::remove_file(path);
    })
}

fn end_swap(path: &Path) -> Result<()> {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let named = path.to_string_lossy();
    if swaps
        .lines()
        .any(|line| line.split_whitespace().next() == Some(&*named))
    {
        run("swapoff", path).with_context(|| format!("still swapping; use: swapoff {named}"))?;
    }
    ensure!(
        fs::remove_file(path).is_ok() || !path.exists(),
        "cannot remove {named}"
    );
    Ok(())
}

/// Runs a system program for swapping, which may not be on the user's path.
fn run(program: &str, path: &Path) -> Result<()> {
    let known =
        ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
    let found = known
        .iter()
        .find(|path| path.is_file())
        .cloned()
        .unwrap_or_else(|| program.into());
    let output = Command::new(found)
        .arg(path)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// The group has only processes of the experiment. A killed worker may leave groups of its attempts in it.
fn end_group(path: &Path) -> Result<()> {
    for inside in fs::read_dir(path).into_iter().flatten().flatten() {
        if inside.file_type().is_ok_and(|kind| kind.is_dir()) {
            end_group(&inside.path())?;
        }
    }
    let is_empty = || {
        let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for id in members
            .lines()
            .filter_map(|line| Pid::from_raw(line.parse().ok()?))
        {
            // An error means that it has ended.
            let _ = kill_process(id, Signal::KILL);
        }
        members.trim().is_empty()
    };
    ensure!(
        until(GONE, is_empty),
        "processes in {} do not end",
        path.display()
    );
    // The kernel may keep it for a moment after the last process.
    remove_with(path, |path| fs::remove_dir(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_end_in_order_with_the_input() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        let group = place.path().join("folder/group");
        fs::create_dir_all(group.join("worker/0")).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        let charges = [
            Charge::Folder(folder.clone()),
            Charge::ControlGroup(group),
            Charge::Swap(place.path().join("never made")),
            Charge::Folder(place.path().join("gone")),
        ];
        let lines = charges.map(|charge| serde_json::to_string(&charge).unwrap());
        assert_eq!(serve(lines.join("\n").as_bytes()), [""; 0]);
        assert!(!folder.exists());
    }

    #[test]
    fn folder_is_removed_after_its_processes_end() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        // It writes into the folder after the removal has begun.
        let mut child = Command::new("/bin/sh");
        child
            .args(["-c", "read line; mkdir late"])
            .current_dir(&folder)
            .stdin(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let charge = Charge::Folder(folder.clone());
        thread::scope(|scope| {
            let ended = scope.spawn(|| charge.end());
            drop(child.stdin.take());
            child.wait().unwrap();
            ended.join().unwrap().unwrap();
        });
        assert!(!folder.exists());
    }

    #[test]
    fn failed_swap_file_is_removed() {
        make_swap(Path::new("/nowhere/swap"), 1 << 20).unwrap_err();
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("swap");
        // Too small for swap.
        make_swap(&path, 512).unwrap_err();
        assert!(!path.exists());
    }

    #[test]
    fn swap_file_that_stays_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let error = Charge::Swap(place.path().to_owned())
            .end()
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("cannot remove "), "{error}");
    }
}
