//! Processes as /proc shows them: whose child, in which state.
//!
//! Owns the looking and the signals to processes that a test started itself, or that their children are. Does not own any.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A process, with the time of its start, so that its number is never mistaken for that of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
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
    // The name, which may hold anything, is in parentheses.
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    pub fn of(number: u32) -> Option<Process> {
        let number = i32::try_from(number).ok()?;
        Some(Process { number, started: stat(number)?.started })
    }

    /// The task processes of a worker.
    pub fn tasks_of(worker: u32) -> Vec<Process> {
        let worker = i32::try_from(worker).expect("a process number");
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers
            .filter_map(|number| {
                let Stat { parent, started, state } = stat(number)?;
                let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
                let marker = b"--napreduce-task-process";
                let is_task = command.windows(marker.len()).any(|part| part == marker);
                (parent == worker && is_task && state != 'Z').then_some(Process { number, started })
            })
            .collect()
    }

    fn stat(&self) -> Option<Stat> {
        stat(self.number).filter(|stat| stat.started == self.started)
    }

    /// Whether it is gone, or only waits to be reaped.
    pub fn is_gone(&self) -> bool {
        self.stat().is_none_or(|stat| stat.state == 'Z')
    }

    pub fn is_stopped(&self) -> bool {
        self.stat().is_some_and(|stat| stat.state == 'T')
    }

    /// Sends a signal; false when the process is gone.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = Pid::from_raw(self.number).filter(|_| !self.is_gone()) else { return false };
        kill_process(pid, signal).is_ok()
    }
}

/// Waits for something that must come.
pub fn wait_until(what: &str, deadline: Duration, mut come: impl FnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !come() {
        if began.elapsed() > deadline {
            return Err(format!("{what}: not within {deadline:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
