//! The coordinator: the loop around the engine.
//!
//! `Coordinator` runs the jobs of one embedded run by itself. The coordinator of a cluster
//! (`napreduce-cluster`) contains one, feeds it messages of workers and clients, and adds a journal, a
//! history and connections. The engine makes the decisions; workers run the processes.
//!
//! The types of this module stand below all of its files, each of which implements one part of them.
//!
//! ```text
//! connections -- inputs, requests --> daemon -- entries --> journal
//!                                        |                     | written
//!                                        v                     v
//!                                      state (engine, jobs, links) -- flush --> connections
//! ```

mod batch;
mod claims;
mod daemon;
mod details;
mod ending;
mod entry;
mod gone;
mod job;
mod last_heard;
mod link;
mod notes;
mod output_log;
mod pauses;
mod recording;
mod state;
mod submissions;
mod workers;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use napreduce_engine::{JobId, WorkerId};
use napreduce_history::EndedJob;
use napreduce_protocol::{JobEnd, JobError, JobPlan, JobProgress, WorkerNews};
use tokio::sync::{oneshot, watch};

use crate::clock::Clock;
use crate::output::{Disk, OutputClaim, Resumed, Trouble};

pub use crate::clock::unix_micros;
pub use daemon::{BATCH, sleep_until_some, ticks};
pub use entry::{Accepted, Entry, Extra, Identity, KnownChain, of_report, spec_of};
pub use gone::GoneWorkers;
pub use job::LiveJob;
pub use last_heard::{LastHeard, Waiting};
pub use link::{Caller, KeptLink, Link};
pub use recording::{Recording, ReplayedBatch};
pub use state::CoordinatorState;

/// An event from the worker of this process, from an embedding program, or from work outside the loop.
#[derive(Debug)]
pub enum Input {
    News {
        worker: WorkerId,
        news: WorkerNews,
    },
    /// Submits a job of this process.
    Submit {
        plan: Box<JobPlan>,
        reply: oneshot::Sender<Result<(JobId, Following), JobError>>,
    },
    /// The result of claiming a submission's output directory.
    Claimed {
        accepted: Box<Accepted>,
        pins: Option<Pins>,
        claim: Result<OutputClaim, JobError>,
    },
    /// The result of resuming a claim.
    Resumed {
        job: JobId,
        resumed: Result<Resumed<OutputClaim>, Trouble>,
    },
    /// The result of a try to end a job.
    Tried {
        job: JobId,
        tried: Tried,
    },
    /// Kills the jobs of the interrupted embedding program.
    Interrupt {
        reason: String,
    },
    /// Suspends all tasks of the embedding program and reports when they are at rest.
    Pause {
        at_rest: oneshot::Sender<()>,
    },
    /// Resumes the tasks of the embedding program.
    GoOn,
    /// No more submissions: end when every job has ended.
    Finish,
}

/// Returns the result of work outside the loop to the loop; a coordinator that has ended ignores it.
pub type SendBack = Arc<dyn Fn(Input) + Send + Sync>;

/// Keeps a job's programs and side files in the cluster's store until dropped.
pub type Pins = Box<dyn Any + Send>;

/// Stores an ended job in the history, outside the loop. Blocking. Remarks go to the last argument. An error
/// is the reason why the job was not stored.
pub type KeepEnded = Box<dyn FnOnce(&LiveJob, &mut EndedJob, &mut Vec<String>) -> Result<(), String> + Send>;

/// The services of a cluster for its coordinator; an embedded run has none.
pub trait ClusterServices: Send {
    /// The cluster directory, which no output may be in.
    fn directory(&self) -> PathBuf;

    /// Returns a blocking function that pins what a job needs in the store.
    fn pinning(&self) -> Box<dyn FnOnce(&Accepted) -> Pins + Send>;

    /// Returns the function that keeps an ended job in the history.
    fn keeping(&self, state: &CoordinatorState) -> KeepEnded;
}

/// The progress of a job until its end is known.
#[derive(Debug)]
pub struct Following {
    pub progress: watch::Receiver<JobProgress>,
    /// `None` until the job has ended; the sender is dropped without an end only if the coordinator ends.
    pub end: watch::Receiver<Option<JobEnd>>,
}

/// The other side of [`Following`].
struct Followed {
    progress: watch::Sender<JobProgress>,
    end: watch::Sender<Option<JobEnd>>,
}

/// Called when a job is journaled, or with the reason for its rejection.
pub type AnswerSubmission = Box<dyn FnOnce(Result<JobId, &JobError>) + Send>;

/// The party that waits for a submission to be accepted.
pub enum Submitter {
    Client(AnswerSubmission),
    Embedding(oneshot::Sender<Result<(JobId, Following), JobError>>),
}

/// The claim of a job whose tasks are not over.
#[derive(Debug)]
enum Claim {
    Held(Box<OutputClaim>),
    /// It is being resumed outside the loop.
    Coming {
        tries: u32,
    },
    /// Its storage is unreachable; the next try is at this time.
    Away {
        at: Instant,
        tries: u32,
    },
}

/// A job whose tasks are over and whose output is not settled.
#[derive(Debug)]
struct Ending {
    since: Instant,
    tries: u32,
    /// The error of the last try.
    why: Option<String>,
    /// Time of the next try; `None` during a try.
    at: Option<Instant>,
    /// The reason, if it was killed.
    killed: Option<String>,
}

/// The result of a try to end a job.
#[derive(Debug)]
pub enum Tried {
    Over {
        ended: Box<EndedJob>,
        /// Whether it was stored in the history.
        kept: Result<(), String>,
        /// Failures of the cleanup.
        remarks: Vec<String>,
    },
    /// It must be tried again.
    Held { why: String, away: bool },
}

/// The program is stopped or about to be.
struct Pause {
    /// Notified when all tasks are at rest; `None` after that.
    at_rest: Option<oneshot::Sender<()>>,
}

/// An answer that waits for the journal.
type Answer = Box<dyn FnOnce() + Send>;

/// The jobs of one coordinator: the engine with its data, the claims on output directories, and the answers
/// that wait for the journal.
pub struct Coordinator {
    pub clock: Clock,
    /// The highest job number assigned, journaled or not.
    last_job: u32,
    pub state: CoordinatorState,
    cluster: Option<Box<dyn ClusterServices>>,
    /// Of jobs that have not ended.
    pub pins: BTreeMap<JobId, Pins>,
    /// The undecided batch.
    batch: Option<Entry>,
    /// Entries applied since the last write, in a cluster.
    unwritten: Vec<Vec<u8>>,
    answers: Vec<Answer>,
    claims: BTreeMap<JobId, Claim>,
    /// Jobs whose tasks are over and whose output is not settled.
    endings: BTreeMap<JobId, Ending>,
    /// Time of the last lease renewal.
    renewed: Instant,
    pub disk: Disk,
    /// Submissions whose output directory is being claimed, by token.
    pub claiming: BTreeMap<u128, (JobId, Vec<Submitter>)>,
    followed: BTreeMap<JobId, Followed>,
    own: SendBack,
    /// Whether the embedding program has submitted its last job.
    finishing: bool,
    interrupted: Option<String>,
    pause: Option<Pause>,
}
