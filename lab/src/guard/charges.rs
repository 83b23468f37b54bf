//! Owns what a guard takes care of, one kind of thing each: how it is made where the guard makes it, and how
//! it is ended. In which order that happens belongs to the service.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use super::is_swapped_on;

/// How long a daemon may take to end before it is killed; longer than it gives its own tasks.
const POLITE: Duration = Duration::from_secs(20);
/// How long what was killed may take to be gone.
const GONE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Something that must not outlive the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charge {
    /// A process; its number alone may be given to another one later.
    Process {
        id: i32,
        /// When it was started, in the kernel's ticks.
        started: u64,
    },
    /// A folder with all it holds, made by the experiment.
    Folder(PathBuf),
    /// A file that the guard makes and swaps to.
    Swap { path: PathBuf, bytes: u64 },
    /// A control group that the guard makes; whatever is in it at the end is killed.
    ControlGroup(PathBuf),
}

impl Charge {
    /// Makes what the guard makes; on failure nothing of it stays.
    pub fn make(&self) -> Result<(), String> {
        match self {
            Charge::Process { .. } | Charge::Folder(_) => Ok(()),
            Charge::Swap { path, bytes } => make_swap(path, *bytes).map_err(|error| {
                let undone = self.end().map_or_else(|left| format!("; {left}"), |()| String::new());
                format!("cannot swap to {}: {error}{undone}", path.display())
            }),
            Charge::ControlGroup(path) => {
                fs::create_dir(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
            }
        }
    }

    /// Ends it; what is not there any more is fine. The error says what is left.
    pub fn end(&self) -> Result<(), String> {
        match self {
            Charge::Process { id, started } => end_process(*id, *started),
            Charge::Folder(path) => removed(path, fs::remove_dir_all(path)),
            Charge::Swap { path, .. } => end_swap(path),
            Charge::ControlGroup(path) => end_group(path),
        }
    }
}

/// When a process was started, in the kernel's ticks since the machine was; nothing when there is none.
pub fn start_of(id: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
    // The second field is the program's name in brackets and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // One that nobody has waited for does nothing any more.
    let state = fields.next()?;
    if state == "Z" || state == "X" { None } else { fields.nth(18)?.parse().ok() }
}

fn end_process(number: i32, started: u64) -> Result<(), String> {
    let Some(id) = Pid::from_raw(number) else { return Ok(()) };
    // The descriptor holds on to the process; only then is looked whether it is the one that was meant.
    let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { return Ok(()) };
    for (signal, patience) in [(Signal::TERM, POLITE), (Signal::KILL, GONE)] {
        if start_of(id) != Some(started) {
            return Ok(());
        }
        // It may have ended since it was looked at.
        let _ = pidfd_send_signal(&process, signal);
        if until(patience, || start_of(id) != Some(started)) {
            return Ok(());
        }
    }
    Err(format!("process {number} does not end"))
}

fn until(patience: Duration, done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

/// What a removal came to; what is not there any more is fine.
fn removed(path: &Path, removed: io::Result<()>) -> Result<(), String> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Written out in full: a swap file must not have holes.
fn make_swap(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file: File = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..part])?;
        left -= part as u64;
    }
    file.sync_all()?;
    drop(file);
    run("mkswap", path)?;
    run("swapon", path)
}

fn end_swap(path: &Path) -> Result<(), String> {
    if is_swapped_on(path) {
        run("swapoff", path).map_err(|error| {
            format!("still swapping to {}: {error}; use: swapoff {}", path.display(), path.display())
        })?;
    }
    removed(path, fs::remove_file(path))
}

/// Runs one of the system's programs for swapping; where they are is not on every user's path.
fn run(program: &str, path: &Path) -> io::Result<()> {
    let known = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(|folder| Path::new(folder).join(program));
    let found = known.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| program.into());
    let output = Command::new(found).arg(path).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", said.trim())))
}

/// Only processes of the experiment are ever put into its group. A worker that was killed before it could
/// clean up leaves groups of its attempts in it, and a group with others in it cannot be removed.
fn end_group(path: &Path) -> Result<(), String> {
    for inside in fs::read_dir(path).into_iter().flatten().flatten() {
        if inside.file_type().is_ok_and(|kind| kind.is_dir()) {
            end_group(&inside.path())?;
        }
    }
    let empty = || match fs::read_to_string(path.join("cgroup.procs")) {
        Ok(members) => {
            for id in members.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
                // It may have ended meanwhile.
                let _ = kill_process(id, Signal::KILL);
            }
            members.trim().is_empty()
        }
        Err(_) => true,
    };
    if !until(GONE, empty) {
        return Err(format!("processes in {} do not end", path.display()));
    }
    // The kernel may hold on to it for a moment after the last process.
    if until(GONE, || fs::remove_dir(path).is_ok() || !path.exists()) {
        return Ok(());
    }
    fs::remove_dir(path).map_err(|error| format!("cannot remove {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_group_goes_with_those_that_were_left_in_it() {
        let place = tempfile::tempdir().unwrap();
        let group = place.path().join("nap-lab-1");
        fs::create_dir_all(group.join("worker/0")).unwrap();
        fs::create_dir_all(group.join("worker/1")).unwrap();
        let charge = Charge::ControlGroup(group.clone());
        charge.end().unwrap();
        assert!(!group.exists());
        charge.end().unwrap();
    }

    #[test]
    fn a_process_is_ended_and_one_of_another_start_is_not() {
        let mut child = Command::new("/bin/sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let id = Pid::from_child(&child);
        let started = start_of(id).unwrap();
        let charge = |started| Charge::Process { id: id.as_raw_nonzero().get(), started };
        charge(started + 1).end().unwrap();
        assert_eq!(start_of(id), Some(started), "it was not meant");
        charge(started).end().unwrap();
        assert!(!child.wait().unwrap().success());
        charge(started).end().unwrap();
    }

    #[test]
    fn one_that_does_not_listen_is_killed() {
        // It says that it ignores the signal, then waits on a pipe that ends with this test.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "trap '' TERM; echo deaf; while read line; do :; done"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        let id = Pid::from_child(&child);
        let charge = Charge::Process { id: id.as_raw_nonzero().get(), started: start_of(id).unwrap() };
        kill_process(id, Signal::STOP).unwrap();
        kill_process(id, Signal::CONT).unwrap();
        drop(child.stdin.take());
        charge.end().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn folders_go_with_all_they_hold_and_may_be_gone() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("work");
        fs::create_dir_all(folder.join("deep")).unwrap();
        fs::write(folder.join("deep/file"), "x").unwrap();
        let charge = Charge::Folder(folder.clone());
        charge.end().unwrap();
        assert!(!folder.exists());
        charge.end().unwrap();
    }

    #[test]
    fn a_swap_file_that_cannot_be_made_leaves_nothing() {
        let error = Charge::Swap { path: "/nowhere/swap".into(), bytes: 1 << 20 }.make().unwrap_err();
        assert!(error.starts_with("cannot swap to /nowhere/swap"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("swap");
        // Too small to be swapped to, whoever asks.
        let charge = Charge::Swap { path: path.clone(), bytes: 512 };
        charge.make().unwrap_err();
        assert!(!path.exists());
    }
}
