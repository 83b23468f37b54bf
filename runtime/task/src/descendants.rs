//! The descendants of a process, whatever their process groups, sessions and environments.
//!
//! A task process is the parent of its orphans (`PR_SET_CHILD_SUBREAPER`), so every process that it or a command
//! of it started is in its tree as long as it lives. A reused process ID is never signalled.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::proc::{Stat, children_of, stat_of, threads_of};

/// Maximum processes examined.
const SEEN_MAX: usize = 10_000;

/// A process that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Descendant {
    pub process: i32,
    /// In clock ticks since boot; differs for a reused process ID.
    started: u64,
}

impl Descendant {
    /// Returns a process; `None` if it does not exist.
    pub fn find(process: i32) -> Option<Descendant> {
        let started = stat_of(process)?.started;
        Some(Descendant { process, started })
    }

    fn stat(self) -> Option<Stat> {
        stat_of(self.process).filter(|stat| stat.started == self.started)
    }

    /// Returns the letter of its state; `None` if it does not exist.
    pub fn state(self) -> Option<char> {
        Some(self.stat()?.state)
    }

    /// Sends a signal; returns whether it was sent.
    pub fn signal(self, signal: Signal) -> bool {
        let Some(process) = Pid::from_raw(self.process) else {
            return false;
        };
        let Ok(pidfd) = pidfd_open(process, PidfdFlags::empty()) else {
            return false;
        };
        // Checked after the descriptor was opened, so that a reused process ID cannot be signalled.
        self.stat().is_some() && pidfd_send_signal(&pidfd, signal).is_ok()
    }

    /// Returns whether it runs nothing any more: it does not exist, or its parent has only to ask for its status.
    pub fn has_ended(self) -> bool {
        match self.state() {
            // The first thread of a process may have ended before the others.
            Some('Z' | 'X') => threads_of(self.process).len() <= 1,
            Some(_) => false,
            None => true,
        }
    }

    /// Returns whether it is stopped: it was by itself, if nobody has signalled it.
    pub fn is_stopped(self) -> bool {
        self.state().is_some_and(|state| matches!(state, 'T' | 't'))
    }

    /// Returns whether every thread of it is stopped, traced or ended. A thread that waits for a child between
    /// `vfork` and `exec`, as shells start commands, cannot stop before that child continues; it stands still
    /// while the child is stopped.
    pub fn stands_still(self) -> bool {
        if self.stat().is_none() {
            return true;
        }
        threads_of(self.process)
            .into_iter()
            .all(|state| match state {
                'T' | 't' | 'Z' | 'X' => true,
                'D' => children_of(self.process).into_iter().any(|child| {
                    matches!(
                        stat_of(child),
                        Some(Stat {
                            state: 'T' | 't',
                            ..
                        })
                    )
                }),
                _ => false,
            })
    }

    /// Describes the process for a message.
    pub fn describe(self) -> String {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.process)).unwrap_or_default();
        let state = self.state().unwrap_or('X');
        format!(
            "process {} ({}) in state {state}",
            self.process,
            name.trim_end()
        )
    }
}

/// The descendants found by one scan.
#[derive(Debug, Default)]
pub struct Descendants {
    pub members: Vec<Descendant>,
    /// There were more processes than one scan examines.
    pub is_cut: bool,
}

/// Returns the descendants of a process that have not ended. The kernel lists children reliably only while none
/// of them starts or ends; two equal scans in which all are stopped are complete.
pub fn descendants_of(process: i32) -> Descendants {
    let mut found = Descendants::default();
    let mut waiting = children_of(process);
    let mut seen = 0;
    while let Some(next) = waiting.pop() {
        seen += 1;
        if seen > SEEN_MAX {
            found.is_cut = true;
            return found;
        }
        let Some(stat) = stat_of(next) else { continue };
        waiting.extend(children_of(next));
        // The first thread of a process may have ended before the others.
        let has_ended = matches!(stat.state, 'Z' | 'X') && threads_of(next).len() <= 1;
        if !has_ended {
            found.members.push(Descendant {
                process: next,
                started: stat.started,
            });
        }
    }
    found.members.sort_unstable();
    found
}
