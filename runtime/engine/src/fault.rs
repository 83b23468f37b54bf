//! The place of a failure: the component to repair so that it does not happen again.

use serde::{Deserialize, Serialize};

listed! {
    /// The place of a failure.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum FaultPlace {
        /// Code of the job's author: a panic, a returned error, a command that failed.
        UserCode = "user code",
        /// The job's input is invalid.
        Input = "input",
        /// The task exceeds its memory limit.
        TaskMemory = "task memory",
        /// The host was short of memory and killed a stopped task.
        HostMemory = "host memory",
        /// The worker's own disk: full, over its quota, broken or read-only.
        LocalDisk = "local disk",
        /// A limit of the host: open files, memory maps, processes.
        LocalLimit = "local limit",
        /// The network path between two hosts.
        Path = "path between hosts",
        /// A worker that holds map output: the output is absent or damaged.
        Peer = "peer",
        /// Storage that all workers share: the job's input, its output and its checkpoints.
        SharedStorage = "shared storage",
        /// The program or a side file of the job, or its compatibility with the host.
        ProgramFile = "program file",
        /// Other faults of the host or the worker: a process that was killed from outside, or could not be
        /// monitored.
        Host = "host",
    }
}

impl FaultPlace {
    /// Returns whether the fault is limited to the host, so that it does not indicate a faulty task.
    pub fn is_of_host(self) -> bool {
        matches!(self, FaultPlace::LocalDisk | FaultPlace::LocalLimit)
    }
}
