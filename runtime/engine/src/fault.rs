//! Where a failure belongs: what could be mended so that it does not happen again.
//!
//! Owns the places and their words. Does not own how one is found out (whoever meets the failure) nor what
//! follows (the engine).

use serde::{Deserialize, Serialize};

listed! {
    /// The place a failure belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum FaultPlace {
        /// What the job's author wrote: a panic, an error it returned, a command that failed.
        UserCode = "user code",
        /// The job's input is not what it should be.
        Input = "input",
        /// The task needs more memory than it may have.
        TaskMemory = "task memory",
        /// The host was short of memory and took it from a task that stood still.
        HostMemory = "host memory",
        /// The worker's own disk: full, over its quota, broken or read-only.
        LocalDisk = "local disk",
        /// A limit of the host: open files, memory maps, processes.
        LocalLimit = "local limit",
        /// The way between two hosts.
        Path = "path between hosts",
        /// A worker that holds map output: it is not there, or damaged.
        Peer = "peer",
        /// Storage that every worker sees: the job's input, its output and its checkpoints.
        SharedStorage = "shared storage",
        /// The program or a side file of the job, or how it fits the host.
        ProgramFile = "program file",
        /// The host or the worker itself, in another way: a process that was killed from outside, or could
        /// not be watched.
        Host = "host",
    }
}

impl FaultPlace {
    /// Whether another host may well do better, so that a failure there says nothing about the task.
    pub fn is_of_host(self) -> bool {
        matches!(self, FaultPlace::LocalDisk | FaultPlace::LocalLimit)
    }
}
