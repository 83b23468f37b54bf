//! The place of a failure: the component to repair so that it does not happen again.

use serde::{Deserialize, Serialize};

use crate::ids::TaskKind;

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

/// The disk space that an attempt needed when it failed for lack of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskNeed {
    /// An estimate from its progress; 0 if that is not known.
    pub needed_bytes: u64,
    /// The space that its worker had for it; 0 if that is not known.
    pub available_bytes: u64,
}

impl DiskNeed {
    /// Describes the need of a task, and what to do.
    pub(crate) fn in_words(self, kind: TaskKind) -> String {
        const MIB: u64 = 1 << 20;
        // An estimate that would have fit is omitted: the attempt failed all the same.
        let needed = if self.needed_bytes > self.available_bytes {
            format!(
                "it needs about {} MiB of the worker's disk",
                self.needed_bytes.div_ceil(MIB)
            )
        } else {
            "it needs more of the worker's disk".to_owned()
        };
        let smaller = match kind {
            TaskKind::Map => "make splits smaller (--split-size)",
            TaskKind::Reduce => "use more reduces (--reduces)",
        };
        format!(
            "{needed}, and the largest worker has {} MiB; free space there, add a worker with a larger disk, or \
             {smaller}",
            self.available_bytes / MIB
        )
    }

    /// Returns the larger of both needs, and the larger of both spaces.
    #[must_use]
    pub fn max(self, other: DiskNeed) -> DiskNeed {
        DiskNeed {
            needed_bytes: self.needed_bytes.max(other.needed_bytes),
            available_bytes: self.available_bytes.max(other.available_bytes),
        }
    }
}
