//! What goes into the engine: events, and the reports of workers about attempts.
//!
//! Owns the vocabulary only. Does not own how a report travels (the live runtime) nor what it changes (the
//! state machines).

use serde::{Deserialize, Serialize};

use crate::fault::FaultPlace;
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::job::{JobChange, JobSpec, Slots};
use crate::preemption::Primitive;
use crate::time::Span;

/// The rack of workers that name none, as Hadoop calls it.
pub const DEFAULT_RACK: &str = "/default-rack";

pub(crate) fn default_rack() -> String {
    DEFAULT_RACK.to_owned()
}

/// Something that happened; the only input of `Engine::handle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// A worker registered and offers slots.
    WorkerJoined {
        worker: WorkerId,
        /// How many attempts of each kind it runs at once.
        slots: Slots,
        /// The name of its host: what several workers of one host say counts once. Empty: a host of its own.
        host: String,
        /// The name of its rack: workers that say the same are near each other.
        #[serde(default = "default_rack")]
        rack: String,
    },
    /// A worker is gone, with every attempt it ran and every map output it served.
    WorkerLost {
        worker: WorkerId,
        /// Its process died, as far as can be known; it was not merely silent, or given up.
        crashed: bool,
    },
    /// A worker says how many bytes of memory its attempts have, suspended ones included.
    WorkerMemory {
        worker: WorkerId,
        /// Bytes.
        bytes: u64,
    },
    /// A worker says that it lacks something that every attempt needs, or that it has it again.
    WorkerShort {
        worker: WorkerId,
        /// What it lacks, for people; nothing any more, without.
        lacks: Option<String>,
    },
    /// A job was accepted.
    JobSubmitted {
        /// The job; not used before.
        job: JobId,
        /// What it asks for.
        spec: JobSpec,
    },
    /// Somebody wants a worker to take no more work and leave when nothing there is needed any more.
    WorkerDrainRequested {
        worker: WorkerId,
        /// Do not wait: what it runs is killed and what it holds is given up, and both are done
        /// again elsewhere.
        hand_back: bool,
        /// Of one that hands back: how long it has. What runs there saves its work, and only what has not
        /// done so after half of it is killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace: Option<Span>,
    },
    /// Somebody wants a worker that drains to stay, and to get work again.
    WorkerUndrainRequested { worker: WorkerId },
    /// Somebody wants an attempt ended; not a failure, and its task is tried again.
    AttemptKillRequested {
        attempt: AttemptId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants an attempt stopped, or saved and ended. What is suspended so stays so until somebody
    /// wants it resumed; what is checkpointed goes on, there or elsewhere, when it gets a slot.
    AttemptPreemptRequested {
        attempt: AttemptId,
        /// How: suspend, checkpoint or kill. Done so or not at all: nothing else is done instead.
        primitive: Primitive,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants a suspended attempt to go on: it gets the next free slot of its worker, before
    /// anything else.
    AttemptResumeRequested {
        attempt: AttemptId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants a job to pause: nothing of it is launched or resumed, and what runs of it is suspended.
    /// What cannot be suspended is let finish.
    JobSuspendRequested {
        job: JobId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants a suspended job to go on, in the order of the policy.
    JobResumeRequested {
        job: JobId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants a job held: nothing of it is launched or resumed, and what runs of it is let finish.
    JobHoldRequested {
        job: JobId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants a job to have another priority or queue.
    JobChangeRequested {
        job: JobId,
        change: JobChange,
        /// Who asked and why, for people.
        reason: String,
    },
    /// Somebody wants the job ended.
    JobKillRequested {
        job: JobId,
        /// Who asked and why, for people.
        reason: String,
    },
    /// A worker reports about one of its attempts. The reports of one worker are handed in in the order it
    /// sent them, each at most once; the engine survives anything else, but believes what it is told.
    Reported {
        /// The worker that reports.
        worker: WorkerId,
        attempt: AttemptId,
        /// What happened to it.
        report: Report,
    },
    /// A time asked for by `Effect::WakeAt` came.
    Woken,
}

/// What a worker says of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The task process said hello and began: the acknowledgement of a launch.
    Started,
    /// Work went on. `bytes_total` is zero while unknown.
    Progressed {
        /// Bytes of input consumed so far.
        bytes_done: u64,
        /// Bytes of input in all.
        bytes_total: u64,
    },
    /// A reduce cannot read these map outputs. It goes on and waits for what replaces them; their maps are
    /// run again.
    InputsLost {
        /// The map attempts, as they were named to it.
        outputs: Vec<AttemptId>,
        /// Why: `Peer` when they are known to be absent or damaged, `Path` when nobody answers.
        place: FaultPlace,
        /// The message, for people.
        reason: String,
    },
    /// The work is done and the part file is written; the attempt asks to be the one that commits.
    CommitRequested,
    /// The attempt ended well: its map output is sealed, or its part is committed.
    Done {
        /// Bytes it wrote for reduces or as its part; zero when nobody counted.
        output_bytes: u64,
    },
    /// The attempt ended badly.
    Failed {
        /// Whose fault it was.
        class: FailureClass,
        /// Where it belongs.
        place: FaultPlace,
        /// The message, for people.
        reason: String,
        /// Map attempts whose output could not be read; their tasks are run again.
        lost_outputs: Vec<AttemptId>,
    },
    /// A kill was carried out; not a failure.
    Killed,
    /// The process is verified stopped; the acknowledgement of a suspend.
    Suspended,
    /// The worker cannot keep another stopped process (its memory, or the pressure on it, forbids it): the
    /// attempt goes on.
    SuspendRefused {
        /// What forbids it, for people.
        reason: String,
    },
    /// The process runs again; the acknowledgement of a resume.
    Resumed,
    /// The work is saved and the process is gone; the acknowledgement of a checkpoint.
    Checkpointed,
    /// The output of an attempt that is done lies where it outlives the worker that says so.
    OutputMoved,
}

/// Whose fault a failed attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureClass {
    /// Something outside the task (an unreadable segment, a process that could not start): try again. Counts
    /// towards the attempts of the task, unless an input of it was lost: then the map that wrote it
    /// is to blame.
    Retryable,
    /// The task's own fault (a panic, a bad record): counts towards its attempts.
    Task,
    /// No further try can help (the output's storage is full, the input is damaged): the job fails
    /// now. What lies with a program file may lie with one host: it is believed when two hosts say
    /// so, or all there are.
    Fatal,
    /// Something that every attempt of the job meets for a while, and that will pass: try again, and
    /// count nothing.
    Excused,
}
