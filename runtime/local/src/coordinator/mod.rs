//! The coordinator: the loop around the engine.
//!
//! `Coordinator` runs the jobs of one embedded run by itself. The coordinator of a cluster (`napreduce-cluster`) contains one, feeds it
//! with what workers and clients send, and adds a journal, a history and connections. Decisions are the engine's, processes
//! are the workers'.
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
mod clock;
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

use self::clock::Clock;
use crate::output::{Disk, OutputClaim, Resumed, Trouble};

pub use claims::is_out_of_reach;
pub use clock::unix_micros;
pub use daemon::{BATCH, sleep_until_some, ticks};
pub use entry::{Accepted, Entry, Extra, Identity, KnownChain, of_report, spec_of};
pub use gone::GoneWorkers;
pub use job::LiveJob;
pub use last_heard::{LastHeard, Waiting};
pub use link::{Caller, KeptLink, Link};
pub use recording::{Recording, ReplayedBatch};
pub use state::CoordinatorState;

/// An event from the worker of this process, from an embedding program, or from work that was done beside the loop.
#[derive(Debug)]
pub enum Input {
    News {
        worker: WorkerId,
        news: WorkerNews,
    },
    /// A job of this process.
    Submit {
        plan: Box<JobPlan>,
        reply: oneshot::Sender<Result<(JobId, Following), JobError>>,
    },
    /// The output directory of a submission was claimed, or not.
    Claimed {
        accepted: Box<Accepted>,
        pins: Option<Pins>,
        claim: Result<OutputClaim, JobError>,
    },
    /// A claim was taken up again, or not.
    Resumed {
        job: JobId,
        resumed: Result<Resumed<OutputClaim>, Trouble>,
    },
    /// A try to end a job is over.
    Tried {
        job: JobId,
        tried: Tried,
    },
    /// The embedding program was interrupted: end what it submitted.
    Interrupt {
        reason: String,
    },
    /// The embedding program is to stand still: say when nothing is at work any more.
    Pause {
        at_rest: oneshot::Sender<()>,
    },
    /// The embedding program goes on.
    GoOn,
    /// The embedding program submits nothing more: end when every job has ended.
    Finish,
}

/// Returns the result of work beside the loop to the loop; a coordinator that has ended ignores it.
pub type SendBack = Arc<dyn Fn(Input) + Send + Sync>;

/// Keeps programs and side files of a job in the store of a cluster until it is dropped.
pub type Pins = Box<dyn Any + Send>;

/// Keeps an ended job beside the loop, blocking; remarks go to the second argument. An error says why the job is not kept.
pub type KeepEnded = Box<dyn FnOnce(&LiveJob, &mut EndedJob, &mut Vec<String>) -> Result<(), String> + Send>;

/// What a cluster does for the jobs of its coordinator. An embedded run has none of it.
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
    /// `None` until the job has ended; the sender is dropped without an end only when the coordinator ends.
    pub end: watch::Receiver<Option<JobEnd>>,
}

/// The other side of [`Following`].
struct Followed {
    progress: watch::Sender<JobProgress>,
    end: watch::Sender<Option<JobEnd>>,
}

/// Called when a job is in the journal, or with the reason for which it is not accepted.
pub type AnswerSubmission = Box<dyn FnOnce(Result<JobId, &JobError>) + Send>;

/// Somebody who waits for a submission to be accepted.
pub enum Submitter {
    Client(AnswerSubmission),
    Embedding(oneshot::Sender<Result<(JobId, Following), JobError>>),
}

/// The claim of a job whose tasks are not over.
#[derive(Debug)]
enum Claim {
    Held(Box<OutputClaim>),
    /// It is being taken up beside the loop.
    Coming {
        tries: u32,
    },
    /// Its storage is away; it is tried again at that time.
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
    /// What hindered the last try.
    why: Option<String>,
    /// When it is tried again; `None` while it is.
    at: Option<Instant>,
    /// Somebody has ended it, for this reason.
    killed: Option<String>,
}

/// The result of a try to end a job.
#[derive(Debug)]
pub enum Tried {
    Over {
        ended: Box<EndedJob>,
        /// Whether it is in the history.
        kept: Result<(), String>,
        /// What could not be tidied up.
        remarks: Vec<String>,
    },
    /// It is to be tried again.
    Held { why: String, away: bool },
}

/// The program is about to stand still, or does.
struct Pause {
    /// Whom to tell when nothing is at work any more; nobody, once that is told.
    at_rest: Option<oneshot::Sender<()>>,
}

/// An answer that waits for the journal.
type Answer = Box<dyn FnOnce() + Send>;

/// The jobs of one coordinator: the engine with what belongs to it, the claims on output directories, and the answers that
/// wait for the journal.
pub struct Coordinator {
    pub clock: Clock,
    /// The highest number given to a job, journaled or not.
    last_job: u32,
    pub state: CoordinatorState,
    cluster: Option<Box<dyn ClusterServices>>,
    /// Of jobs that have not ended.
    pub pins: BTreeMap<JobId, Pins>,
    /// What waits in a batch and is not decided about.
    batch: Option<Entry>,
    /// Entries taken in since the last write, in a cluster.
    unwritten: Vec<Vec<u8>>,
    answers: Vec<Answer>,
    claims: BTreeMap<JobId, Claim>,
    /// Jobs whose tasks are over and whose output is not settled.
    endings: BTreeMap<JobId, Ending>,
    /// When the leases of claims were renewed last.
    renewed: Instant,
    pub disk: Disk,
    /// Submissions whose output directory is being claimed, by token.
    pub claiming: BTreeMap<u128, (JobId, Vec<Submitter>)>,
    followed: BTreeMap<JobId, Followed>,
    own: SendBack,
    /// No more jobs come from the embedding program.
    finishing: bool,
    interrupted: Option<String>,
    pause: Option<Pause>,
}
