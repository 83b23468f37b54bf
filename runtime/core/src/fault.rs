//! Where a failure belongs: what could be mended so that it does not happen again.
//!
//! Owns the places and their words. Does not own how one is found out (whoever meets the failure) nor what follows (the
//! engine).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The place a failure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultPlace {
    /// What the job's author wrote: a panic, an error it returned, a command that failed.
    UserCode,
    /// The job's input is not what it should be.
    Input,
    /// The task needs more memory than it may have.
    TaskMemory,
    /// The host was short of memory and took it from a task that stood still.
    HostMemory,
    /// The worker's own disk: full, over its quota, broken or read-only.
    LocalDisk,
    /// A limit of the host: open files, memory maps, processes.
    LocalLimit,
    /// The way between two hosts.
    Path,
    /// A worker that holds map output: it is not there, or damaged.
    Peer,
    /// Storage that every worker sees: the job's input, its output and its checkpoints.
    SharedStorage,
    /// The program or a side file of the job, or how it fits the host.
    ProgramFile,
    /// The host or the worker itself, in another way: a process that was killed from outside, or could not be watched.
    Host,
}

impl FaultPlace {
    /// Every place, for tables and tests.
    pub const ALL: [FaultPlace; 11] = [
        FaultPlace::UserCode,
        FaultPlace::Input,
        FaultPlace::TaskMemory,
        FaultPlace::HostMemory,
        FaultPlace::LocalDisk,
        FaultPlace::LocalLimit,
        FaultPlace::Path,
        FaultPlace::Peer,
        FaultPlace::SharedStorage,
        FaultPlace::ProgramFile,
        FaultPlace::Host,
    ];

    /// As it is printed.
    pub fn in_words(self) -> &'static str {
        match self {
            FaultPlace::UserCode => "user code",
            FaultPlace::Input => "input",
            FaultPlace::TaskMemory => "task memory",
            FaultPlace::HostMemory => "host memory",
            FaultPlace::LocalDisk => "local disk",
            FaultPlace::LocalLimit => "local limit",
            FaultPlace::Path => "path between hosts",
            FaultPlace::Peer => "peer",
            FaultPlace::SharedStorage => "shared storage",
            FaultPlace::ProgramFile => "program file",
            FaultPlace::Host => "host",
        }
    }

    /// Whether another host may well do better, so that a failure there says nothing about the task.
    pub fn is_of_host(self) -> bool {
        matches!(self, FaultPlace::LocalDisk | FaultPlace::LocalLimit)
    }
}

impl fmt::Display for FaultPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_words())
    }
}
