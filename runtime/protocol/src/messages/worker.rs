//! Messages between coordinator and worker.
//!
//! Owns the vocabulary, one enum per direction, and what is delivered exactly once: orders and
//! reports, each numbered from 1 in its direction. Does not own the numbering's rules
//! (`napreduce_engine`'s delivery) nor the connection.
//!
//! ```text
//! worker                                   coordinator
//!   Hello(identity, what it has received) ->
//!                                         <- Welcome(worker, what has been received) | Refused
//!   Reported{number, ..} ->               <- Define | Outputs | Ordered | Named | Forget | Leave, {number, ..}
//!   Heartbeat, every interval ->          <- Received{through}, in answer to each heartbeat and batch of reports
//!   Received{through} ->
//! ```
//!
//! A worker knows of a job only what `Define` and `Outputs` told it, and the coordinator knows of an attempt
//! only what was reported. The map outputs of a job are told to a worker once, as a log that goes on: what
//! many reduces read is not repeated for each of them.

use std::path::PathBuf;

use napreduce_engine::{AttemptId, JobId, MapOutput, Order, Report, Slots, WorkerId};
use serde::{Deserialize, Serialize};

use crate::claim_token::ClaimToken;
use crate::counters::CounterValues;
use crate::description::PartOutput;
use crate::digest::Digest;
use crate::splits::InputSplit;
use crate::summaries::WorkerMemory;

/// What every attempt of a job has in common.
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
    /// Of the claim on it, which is in the paths of all work.
    pub claim: ClaimToken,
    pub part_extension: String,
    /// An attempt that makes no progress for so long is ended and counts as failed; 0 for never. In
    /// milliseconds.
    pub task_timeout_millis: u64,
    /// Whether what a task saves is on the disk, not only in the page cache, before it counts.
    pub durable: bool,
    /// The program to execute; `None` is the worker's own, which embedded workers run.
    pub program: Option<Blob>,
    /// Files that every attempt finds beside it.
    pub files: Vec<SideFile>,
}

/// A blob as far as whoever fetches it must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub digest: Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A file that a job takes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideFile {
    /// The name under which tasks find it: one component, not `.` nor `..`.
    pub name: String,
    pub blob: Blob,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToWorker {
    /// The answer to `Hello`.
    Welcome {
        /// Another number than the one in `Hello`, or one from another journal, means: what you ran and held
        /// is superseded; end it, remove it, and number orders and reports from 1 again.
        worker: WorkerId,
        /// Which coordinator's journal this number is from.
        journal: u64,
        /// Reports up to this number are kept; what comes after is to be sent again.
        received: u64,
        /// How often to send heartbeats.
        heartbeat_millis: u64,
        /// Without a word from the coordinator for so long, the connection is to be given up and made anew.
        silence_millis: u64,
    },
    /// The answer to a `Hello` that cannot be accepted now or ever; the connection is closed.
    Refused {
        reason: String,
        /// Another worker that is alive has this name: who asks again for some seconds in vain is to end.
        name_taken: bool,
    },
    /// Comes before the first launch of a job's attempt.
    Define { number: u64, description: Box<JobDescription> },
    /// The log of a job's map outputs goes on.
    Outputs {
        number: u64,
        job: JobId,
        entries: Vec<OutputEntry>,
        /// Where the workers serve them that hold these.
        peers: Vec<Peer>,
    },
    /// What the engine orders, as it does, and what it takes to carry it out. A launch names no inputs: a
    /// reduce reads what the log has of each map when it is launched.
    Ordered {
        number: u64,
        order: Order,
        /// Of a launch.
        work: Option<LaunchWork>,
    },
    /// These reduces of one job are to read, too, what the log has of these maps.
    Named { number: u64, attempts: Vec<AttemptId>, maps: Vec<u32> },
    /// The job is over: its description and everything kept for it are no longer needed.
    Forget { number: u64, job: JobId },
    /// The worker was drained: nothing of it is needed any more, and it may end.
    Leave { number: u64 },
    /// Reports up to this number are kept.
    Received { through: u64 },
}

impl ToWorker {
    /// Of what is delivered exactly once and in order, counted from 1.
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

/// What becomes of the output of one map task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutputEntry {
    /// This is to be read, and nothing that stood there for the task before.
    Ready(MapOutput),
    /// What there was of this map is lost, and nothing has taken its place.
    Lost { map: u32 },
}

/// What differs from attempt to attempt, beside where it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchWork {
    Map { split: InputSplit },
    Reduce { maps: u32 },
}

/// Where a worker serves segments and logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub worker: WorkerId,
    /// `HOST:PORT`.
    pub address: String,
    /// Its directory. Whoever finds `incarnation` in it sees the same files and reads segments there without
    /// a connection.
    #[serde(with = "crate::path_bytes")]
    pub directory: PathBuf,
    pub incarnation: u64,
}

/// What a worker tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromWorker {
    /// The first message of every connection.
    Hello(Box<Hello>),
    Reported {
        number: u64,
        report: WorkerReport,
    },
    /// Orders up to this number have been received.
    Received {
        through: u64,
    },
    /// Sent at an interval: it is there, so far are those attempts that got on, and so is its memory.
    Heartbeat {
        progress: Vec<AttemptProgress>,
        memory: WorkerMemory,
    },
}

/// Who a worker is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The name of its directory, unique in the cluster; whoever comes later under a name replaces the
    /// earlier one.
    pub name: String,
    /// Chosen at random by each start of the daemon.
    pub incarnation: u64,
    /// The number it was given before, and by which journal's coordinator.
    pub before: Option<(u64, WorkerId)>,
    /// Orders up to this number have been received.
    pub received: u64,
    pub slots: Slots,
    pub host: String,
    /// The name of its rack: workers that say the same are near each other.
    pub rack: String,
    /// Where it serves segments and logs, `HOST:PORT`.
    pub data_address: String,
    /// Where it keeps its files; a worker that sees the same directory reads segments in it.
    #[serde(with = "crate::path_bytes")]
    pub directory: PathBuf,
    /// Of its processor, as Rust calls it.
    pub architecture: String,
    /// What keeps its attempts apart, for people: `cgroup v2`, `watchdog`, `none`.
    pub isolation: String,
    /// Bytes of memory that its attempts have; zero where that cannot be told.
    pub memory: u64,
    pub process: u32,
}

/// What is delivered exactly once from a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerReport {
    /// Something happened to an attempt.
    Happened { attempt: AttemptId, report: Report },
    /// An attempt ended well; what it counted and, if it wrote one, its promoted part.
    Finished { attempt: AttemptId, counters: CounterValues, part: Option<PartOutput> },
    /// Whoever runs this worker's daemon wants it to go, and says why; as `nap worker drain --hand-back`.
    /// With a grace, it ends so long after this was said in any case, and what runs there is to save
    /// its work before.
    Leaving {
        /// 0 for none.
        grace_millis: u64,
        why: String,
    },
    /// It lacks something that every attempt needs, disk above all, and wants no new ones; nothing
    /// any more, without.
    Short { lacks: Option<String> },
    /// What a preemption, or the return from one, took and brought. Comes just before the report that it has
    /// happened (`Suspended`, `Resumed`, `Checkpointed`, `Killed` when that was ordered), and by itself for
    /// `Restored`, `RestoreRefused` and `Ended`.
    Preempted { attempt: AttemptId, account: PreemptionAccount },
    /// Somebody outside the cluster asked a task process to stop (SIGTSTP), and it wants to be suspended in
    /// good order.
    SuspendWanted { attempt: AttemptId },
    /// What an attempt has printed on standard error, or the end of it. Comes just before the report that it
    /// has failed.
    Printed { attempt: AttemptId, stderr: String },
}

/// What happened to an attempt that was preempted or came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preempted {
    Suspended,
    Resumed,
    Checkpointed,
    Killed,
    Restored,
    /// The checkpoint cannot be used, for this reason; the attempt began from scratch.
    RestoreRefused(String),
    /// It has ended by itself; accounts for memory that moved since it was resumed.
    Ended,
}

/// What it took and brought. What is not known, or does not apply, is 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionAccount {
    pub what: Preempted,
    /// From the arrival of the order at the worker until it was done; of `Restored`, from the launch.
    pub micros: u64,
    /// For how long the attempt has been active, and stopped, since its launch.
    pub active_millis: u64,
    pub suspended_millis: u64,
    /// What its process held in memory and in swap at that time.
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
    /// What moved to swap and back since the account before.
    pub swapped_out_bytes: u64,
    pub swapped_in_bytes: u64,
    pub checkpoint_bytes: u64,
    /// What could not be done that was wanted, and why: memory not moved out for lack of a privilege, say.
    pub notes: Vec<String>,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptProgress {
    pub attempt: AttemptId,
    pub bytes_done: u64,
    /// 0 while unknown.
    pub bytes_total: u64,
}

/// What a worker's own loop tells, before it is numbered for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerNews {
    Report(WorkerReport),
    /// How far those attempts are that got on since the last time.
    Progress(Vec<AttemptProgress>),
    /// How its memory is, whenever that is something else.
    Memory(WorkerMemory),
}
