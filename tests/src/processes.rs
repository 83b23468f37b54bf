//! Processes in /proc: parent, state, signal handlers. Tests send signals only to their own descendants.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// A process, identified by its ID and start time, so that a reused ID is not mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// The process ID.
    pub number: i32,
    started: u64,
}

struct Stat {
    state: char,
    parent: i32,
    started: u64,
}

fn stat(number: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// Returns the process with this ID, if it exists.
    pub fn of(number: u32) -> Option<Process> {
        let number = i32::try_from(number).ok()?;
        Some(Process {
            number,
            started: stat(number)?.started,
        })
    }

    /// Returns the task processes of a worker, or of a program with an embedded job.
    pub fn tasks_of(worker: u32) -> Vec<Process> {
        Process::children_of(worker, "--napreduce-task-process")
    }

    /// Returns the child processes that have this argument.
    pub fn children_of(parent: u32, argument: &str) -> Vec<Process> {
        let wanted = i32::try_from(parent).expect("a process number");
        Process::all(|stat, command| {
            stat.parent == wanted
                && command
                    .split(|byte| *byte == 0)
                    .any(|one| one == argument.as_bytes())
        })
    }

    /// Returns the guest that works on the first task of a kind, `map` or `reduce`, and has this folder in
    /// its arguments.
    pub fn guest_in(folder: &Path, kind: &str) -> Option<Process> {
        let folder = folder.to_str().expect("text").to_owned();
        let of = [
            format!("--napreduce-guest {kind} "),
            "--task 0 ".to_owned(),
            folder,
        ];
        let is_it = |_: &Stat, command: &[u8]| {
            let line = String::from_utf8_lossy(command).replace('\0', " ");
            of.iter().all(|part| line.contains(part))
        };
        Process::all(is_it).pop()
    }

    fn all(is_it: impl Fn(&Stat, &[u8]) -> bool) -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let numbers = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers
            .filter_map(|number| {
                let stat = stat(number)?;
                let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
                let is_wanted = stat.state != 'Z' && is_it(&stat, &command);
                is_wanted.then_some(Process {
                    number,
                    started: stat.started,
                })
            })
            .collect()
    }

    /// Returns its parent, if it is still running.
    pub fn parent(&self) -> Option<Process> {
        Process::of(self.stat()?.parent.cast_unsigned())
    }

    /// Returns whether its program has this name.
    pub fn is_named(&self, name: &str) -> bool {
        fs::read_to_string(format!("/proc/{}/comm", self.number))
            .is_ok_and(|comm| comm.trim_end() == name)
    }

    fn stat(&self) -> Option<Stat> {
        stat(self.number).filter(|stat| stat.started == self.started)
    }

    /// Returns whether it has ended, reaped or not.
    pub fn is_gone(&self) -> bool {
        self.stat().is_none_or(|stat| stat.state == 'Z')
    }

    /// Returns whether the kernel reports it as stopped.
    pub fn is_stopped(&self) -> bool {
        self.stat().is_some_and(|stat| stat.state == 'T')
    }

    /// Returns whether it has a handler for a signal.
    pub fn catches(&self, signal: Signal) -> bool {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.number)).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .unwrap_or_default();
        mask & (1 << (signal.as_raw() - 1)) != 0
    }

    /// Sends a signal; returns false if the process has ended.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.number).filter(|_| !self.is_gone()) else {
            return false;
        };
        kill_process(pid, signal).is_ok()
    }
}

/// Returns whether this process, and so each program that a test starts, ignores a signal, as under `nohup`.
pub fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("the status of this process");
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("its ignored signals");
    let mask = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
    mask >> (signal.as_raw() - 1) & 1 == 1
}

/// Returns the signal that ends `nap up`: SIGINT, or SIGTERM if SIGINT is ignored.
pub fn ending_signal() -> Signal {
    if is_ignored(Signal::INT) {
        Signal::TERM
    } else {
        Signal::INT
    }
}
