//! Messages between coordinator and worker, one enum per direction. Orders and reports are delivered exactly
//! once, each numbered from 1 in its direction.
//!
//! ```text
//! worker                                   coordinator
//!   Hello(identity, last order received) ->
//!                                         <- Welcome(worker, last report received) | Refused
//!   Reported{number, ..} ->               <- Define | Outputs | Ordered | Named | Forget | Leave, {number}
//!   Heartbeat, every interval ->          <- Received{through}, after each heartbeat and batch of reports
//!   Received{through} ->
//! ```
//!
//! A worker knows a job only from `Define` and `Outputs`; the coordinator knows an attempt only from reports.
//! A job's map outputs are sent to each worker once, as a log shared by all its reduces.

use std::path::PathBuf;
use std::time::Instant;

use napreduce_engine::{AttemptId, JobId, MapOutput, Order, Report, Slots, WorkerId};
use serde::{Deserialize, Serialize};

use crate::claim_token::ClaimToken;
use crate::counters::CounterValues;
use crate::description::PartOutput;
use crate::digest::{Blob, SideFile};
use crate::splits::InputSplit;
use crate::summaries::WorkerMemory;
use crate::task_error::TaskError;

/// The common part of all attempts of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDescription {
    pub job: JobId,
    pub definition: String,
    pub parameters: Vec<u8>,
    pub reduces: u32,
    pub cuts: Vec<Vec<u8>>,
    pub compress: bool,
    /// Memory of one attempt, in bytes.
    pub task_memory: u64,
    #[serde(with = "crate::path_bytes")]
    pub output: PathBuf,
    /// The claim on the output; part of all work paths.
    pub claim: ClaimToken,
    pub part_extension: String,
    /// Time without progress after which an attempt fails, in milliseconds; 0 for never.
    pub task_timeout_millis: u64,
    /// Whether saved data must be synced to disk before it counts.
    pub durable: bool,
    /// The program; `None` for the worker's own, in embedded runs.
    pub program: Option<Blob>,
    /// Files in the working directory of every attempt.
    pub files: Vec<SideFile>,
}

/// A message to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The answer to `Hello`.
    Welcome {
        /// If this differs from the number in `Hello`, or is from another journal, the worker's state is
        /// superseded: it ends and removes everything, and restarts the numbering at 1.
        worker: WorkerId,
        /// The coordinator's journal that this number is from.
        journal: u64,
        /// Reports up to this number are stored; later ones must be sent again.
        received: u64,
        /// The heartbeat interval.
        heartbeat_millis: u64,
        /// Silence of the coordinator after which the worker reconnects.
        silence_millis: u64,
    },
    /// The answer to a `Hello` that is refused; the connection is closed.
    Refused {
        reason: String,
        /// A live worker has this name. If that is a predecessor whose end was not noticed, the name is free after this
        /// time. `None` for other reasons.
        name_free_in_millis: Option<u64>,
    },
    /// Precedes the first launch of a job's attempt.
    Define {
        number: u64,
        description: Box<JobDescription>,
    },
    /// More entries of the log of a job's map outputs.
    Outputs {
        number: u64,
        job: JobId,
        entries: Vec<OutputEntry>,
        /// The data servers of the workers that hold these.
        peers: Vec<Peer>,
    },
    /// An order of the engine, with the data to carry it out. A launch does not list inputs: a reduce reads
    /// each map's entry in the log at its launch.
    Ordered {
        number: u64,
        order: Order,
        /// For a launch.
        work: Option<LaunchWork>,
    },
    /// These reduces of one job must read the log's entries of these maps, too.
    Named {
        number: u64,
        attempts: Vec<AttemptId>,
        maps: Vec<u32>,
    },
    /// The job is over: its description and data are no longer needed.
    Forget { number: u64, job: JobId },
    /// The worker is drained and may exit.
    Leave { number: u64 },
    /// Reports up to this number are stored.
    Received { through: u64 },
}

impl ToWorker {
    /// The number of a message that is delivered exactly once and in order, counted from 1.
    pub fn number(&self) -> Option<u64> {
        match self {
            ToWorker::Define { number, .. }
            | ToWorker::Outputs { number, .. }
            | ToWorker::Ordered { number, .. }
            | ToWorker::Named { number, .. }
            | ToWorker::Forget { number, .. }
            | ToWorker::Leave { number } => Some(*number),
            ToWorker::Welcome { .. } | ToWorker::Refused { .. } | ToWorker::Received { .. } => None,
        }
    }
}

/// A change of one map task's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputEntry {
    /// Read this output instead of any earlier one of the task.
    Ready(MapOutput),
    /// The map's output is lost and not replaced yet.
    Lost { map: u32 },
}

/// The part that differs between attempts, except their location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchWork {
    Map { split: InputSplit },
    Reduce { maps: u32 },
}

/// A worker's address for segments and logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub worker: WorkerId,
    /// `HOST:PORT`.
    pub address: String,
    /// Its directory. A worker that finds `incarnation` in it shares its storage and reads segments in place.
    #[serde(with = "crate::path_bytes")]
    pub directory: PathBuf,
    pub incarnation: u64,
}

/// A message from a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The first message of every connection.
    Hello(Box<Hello>),
    Reported {
        number: u64,
        /// How long ago it happened, by the worker's clock, when this was written.
        age_micros: u64,
        report: WorkerReport,
    },
    /// Orders received up to this number.
    Received { through: u64 },
    /// Periodic: a sign of life, the attempts that have progressed, and the worker's memory.
    Heartbeat {
        progress: Vec<AttemptProgress>,
        memory: WorkerMemory,
    },
}

/// A worker's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The name of its directory, unique in the cluster; a later worker of the same name replaces the earlier
    /// one.
    pub name: String,
    /// Random number of this start of the daemon.
    pub incarnation: u64,
    /// Its previous number, and the journal that it is from.
    pub before: Option<(u64, WorkerId)>,
    /// Orders received up to this number.
    pub received: u64,
    pub slots: Slots,
    pub host: String,
    /// The name of its rack.
    pub rack: String,
    /// Its address for segments and logs, `HOST:PORT`.
    pub data_address: String,
    /// Its directory; workers that share it read segments in place.
    #[serde(with = "crate::path_bytes")]
    pub directory: PathBuf,
    /// Its processor architecture, as Rust names it.
    pub architecture: String,
    /// The isolation of its attempts, for people: `cgroup v2`, `watchdog`, `none`.
    pub isolation: String,
    /// Memory available to its attempts in bytes; zero if unknown.
    pub memory: u64,
    pub process: u32,
}

/// A report that is delivered exactly once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerReport {
    /// Something happened to an attempt.
    Happened { attempt: AttemptId, report: Report },
    /// An attempt succeeded.
    Finished {
        attempt: AttemptId,
        counters: CounterValues,
        /// Its promoted part, if it wrote one.
        part: Option<PartOutput>,
        /// The digest of the records that a map sealed for reduces.
        output_digest: Option<u64>,
    },
    /// The worker is being stopped from outside, for this reason; like `nap worker drain --hand-back`. With a
    /// grace, it exits after that time in any case, and its attempts should save their work before.
    Leaving {
        /// 0 for none.
        grace_millis: u64,
        why: String,
    },
    /// A resource that every attempt needs is short, such as disk: no new attempts. `None` when the shortage
    /// is over.
    Short { lacks: Option<String> },
    /// The account of a preemption or return. Precedes the report itself (`Suspended`, `Resumed`,
    /// `Checkpointed`, `Killed` if ordered); sent alone for `Restored`, `RestoreRefused` and `Ended`.
    Preempted {
        attempt: AttemptId,
        account: PreemptionAccount,
    },
    /// A task process received SIGTSTP from outside and asks to be suspended.
    SuspendWanted { attempt: AttemptId },
    /// An attempt has failed, or could not be started.
    Failed {
        attempt: AttemptId,
        error: TaskError,
    },
    /// The end of an attempt's stderr. Precedes the report that it has failed.
    Printed { attempt: AttemptId, stderr: String },
}

/// A preemption or return of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preempted {
    Suspended,
    Resumed,
    Checkpointed,
    Killed,
    Restored,
    /// The checkpoint is unusable, for this reason; the attempt started from scratch.
    RestoreRefused(String),
    /// It ended normally; accounts for swapping since it was resumed.
    Ended,
}

/// The cost and gain of a preemption. Unknown or inapplicable values are 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionAccount {
    pub what: Preempted,
    /// From the arrival of the order until it was carried out; for `Restored`, from the launch.
    pub micros: u64,
    /// Time active and stopped since its launch.
    pub active_millis: u64,
    pub suspended_millis: u64,
    /// Its resident and swapped memory at that time.
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
    /// Memory swapped out and in since the previous account.
    pub swapped_out_bytes: u64,
    pub swapped_in_bytes: u64,
    pub checkpoint_bytes: u64,
    /// Failed actions and the reasons, such as missing privileges to page out memory.
    pub notes: Vec<String>,
}

/// The progress of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptProgress {
    pub attempt: AttemptId,
    pub bytes_done: u64,
    /// 0 while unknown.
    pub bytes_total: u64,
}

/// News from a worker's loop, before it is numbered for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerNews {
    Report {
        /// When it happened.
        at: Instant,
        report: WorkerReport,
    },
    /// Attempts that have progressed since the last report.
    Progress(Vec<AttemptProgress>),
    /// The state of its memory, on changes.
    Memory(WorkerMemory),
}
