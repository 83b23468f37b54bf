//! The inputs of the engine: events, and the reports of workers about attempts.

use serde::{Deserialize, Serialize};

use crate::fault::{DiskNeed, FaultPlace};
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::job::{JobChange, JobSpec, Slots};
use crate::pause::Pause;
use crate::preemption::Primitive;
use crate::time::Span;

/// The rack of workers that do not name one (Hadoop's default name).
pub const DEFAULT_RACK: &str = "/default-rack";

pub(crate) fn default_rack() -> String {
    DEFAULT_RACK.to_owned()
}

/// The only input of `Engine::handle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A worker registered and offers slots.
    WorkerJoined {
        worker: WorkerId,
        /// Maximum concurrent attempts of each kind.
        slots: Slots,
        /// The name of its host: fault reports from several workers on one host count once. Empty: a host of
        /// its own.
        host: String,
        /// The name of its rack.
        #[serde(default = "default_rack")]
        rack: String,
    },
    /// A worker is lost, with every attempt it ran and every map output it served.
    WorkerLost {
        worker: WorkerId,
        /// Its process is known to have died; it was not merely silent or given up.
        crashed: bool,
    },
    /// A worker reports the memory that its attempts use, including suspended ones.
    WorkerMemory { worker: WorkerId, bytes: u64 },
    /// A worker reports that it lacks a resource that every attempt needs, or that the shortage is over.
    WorkerShort {
        worker: WorkerId,
        /// The missing resource, for people; `None`: the shortage is over.
        lacks: Option<String>,
    },
    /// A job was accepted.
    JobSubmitted {
        /// A number not used before.
        job: JobId,
        spec: JobSpec,
    },
    /// A worker should take no more work and leave when nothing on it is needed.
    WorkerDrainRequested {
        worker: WorkerId,
        /// Do not wait: kill its attempts and give up its map outputs; both are redone on other workers.
        hand_back: bool,
        /// With `hand_back`: how long the worker has. Its attempts save their work at once; after half of
        /// this time the remaining ones are killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace: Option<Span>,
    },
    /// A draining worker should stay and get work again.
    WorkerUndrainRequested { worker: WorkerId },
    /// An attempt should be killed. That is not a failure, and its task is retried.
    AttemptKillRequested {
        attempt: AttemptId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// An attempt should be suspended, checkpointed or killed. A suspended one stays so until it is released;
    /// a checkpointed task continues on any worker when it gets a slot.
    AttemptPreemptRequested {
        attempt: AttemptId,
        /// Suspend, checkpoint or kill. There is no fallback.
        primitive: Primitive,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// A suspended attempt should continue: it gets the next free slot of its worker, before all others.
    AttemptResumeRequested {
        attempt: AttemptId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// A job should pause.
    JobPauseRequested { job: JobId, pause: Pause },
    /// A paused job should continue, in the order of the policy.
    JobResumeRequested {
        job: JobId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// The priority or queue of a job should change.
    JobChangeRequested {
        job: JobId,
        change: JobChange,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// A job should be killed.
    JobKillRequested {
        job: JobId,
        /// The requester and the reason, for people.
        reason: String,
    },
    /// A worker reports about one of its attempts. The reports of one worker are handed in in the order it
    /// sent them, each at most once. The engine survives any other input but trusts its contents.
    Reported {
        worker: WorkerId,
        attempt: AttemptId,
        report: Report,
    },
    /// A time requested by `Effect::WakeAt` has come.
    Woken,
}

/// A worker's report about one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The task process connected and began: the acknowledgement of a launch.
    Started,
    /// The attempt made progress. `bytes_total` is zero while unknown.
    Progressed {
        /// Bytes of input consumed so far.
        bytes_done: u64,
        /// Bytes of input in all.
        bytes_total: u64,
    },
    /// A reduce cannot read these map outputs. It continues and waits for replacements; the maps are run
    /// again.
    InputsLost {
        /// The map attempts, as the orders named them.
        outputs: Vec<AttemptId>,
        /// The cause: `Peer` if they are known to be absent or damaged, `Path` if the worker does not answer.
        place: FaultPlace,
        /// For people.
        reason: String,
    },
    /// The work is done and the part file is written; the attempt requests the commit.
    CommitRequested,
    /// The attempt succeeded: its map output is sealed, or its part is committed.
    Done {
        /// Bytes written for reduces or as its part; zero if they were not counted.
        output_bytes: u64,
        /// The digest of the records that it wrote for reduces; `None` if there are none, or it was not computed.
        #[serde(default)]
        output_digest: Option<u64>,
    },
    /// The attempt failed.
    Failed {
        class: FailureClass,
        place: FaultPlace,
        /// For people.
        reason: String,
        /// Map attempts whose output could not be read; their tasks are run again.
        lost_outputs: Vec<AttemptId>,
        /// The disk space that it needed, if its worker had too little.
        #[serde(default)]
        disk_need: Option<DiskNeed>,
    },
    /// A kill was carried out; not a failure.
    Killed,
    /// The process is verified stopped; the acknowledgement of a suspend.
    Suspended,
    /// The worker cannot keep another stopped process because of its memory or memory pressure, or a process of the
    /// attempt did not stop; the attempt continues in its slot.
    SuspendRefused {
        /// For people.
        reason: String,
    },
    /// The process runs again; the acknowledgement of a resume.
    Resumed,
    /// The work is saved and the process has exited; the acknowledgement of a checkpoint.
    Checkpointed,
    /// The output of a finished attempt is on storage that outlives the reporting worker.
    OutputMoved,
    /// As `Suspended`, but inside a unit of work (a record or a group), which it must finish before it can save its
    /// work: its process must not be continued for that without a slot.
    SuspendedAtWork,
}

/// The classification of an attempt's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureClass {
    /// A cause outside the task (an unreadable segment, a process that could not start): retry. Counts
    /// towards the attempts of the task, unless an input was lost: then it counts against the map that wrote
    /// it.
    Retryable,
    /// The task's own fault (a panic, a bad record): counts towards its attempts.
    Task,
    /// A retry cannot help (the output's storage is full, the input is damaged): the job fails now. A fault
    /// of a program file may be limited to one host; the job fails once two hosts, or all hosts, report it.
    Fatal,
    /// A temporary condition that affects every attempt of the job: retry without counting.
    Excused,
}
