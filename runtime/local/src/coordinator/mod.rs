//! The coordinator: the loop around the engine.
//!
//! `Coordinator` runs the jobs of one embedded run by itself. The coordinator of a cluster
//! (`napreduce-cluster`) contains one, feeds it messages of workers and clients, and adds a journal, a
//! history and connections. The engine makes the decisions; workers run the processes.
//!
//! This file declares the types; each of the other files implements one part of them.
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
mod endings;
mod entries;
mod entry;
mod followers;
mod gone;
mod job;
mod last_heard;
mod link;
mod outside;
mod pauses;
mod program;
mod recording;
mod renewals;
mod state;
mod storage;
mod submissions;
mod submitters;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;

use napreduce_engine::{JobId, WorkerId};
use napreduce_history::EndedJob;
use napreduce_protocol::{JobError, JobPlan, WorkerNews};
use tokio::sync::oneshot;
use tokio::task::JoinError;

use self::claims::Claims;
use self::endings::Endings;
use self::entries::Entries;
use self::followers::Followers;
use self::program::Program;
use self::renewals::Renewals;
use self::submitters::Submitters;
use crate::clock::EngineClock;
use crate::output::{Disk, OutputClaim, Resumed, Trouble};
use crate::world::World;

pub use daemon::{BATCH, sleep_until_some, ticks};
pub use entry::{Accepted, Entry, Extra, Identity, KnownChain, spec_of};
pub use followers::Following;
pub use gone::GoneWorkers;
pub use job::LiveJob;
pub use last_heard::{LastHeard, Waiting};
pub use link::{Caller, Link, LinkSnapshot};
pub use recording::{Recording, ReplayedBatch};
pub use state::{CoordinatorState, StateSnapshot};
pub use submitters::{AnswerSubmission, Pins, Submitter};

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
        accepted: Arc<Accepted>,
        pins: Option<Pins>,
        claim: Result<Box<dyn OutputClaim>, JobError>,
    },
    /// The result of resuming a claim.
    Resumed {
        job: JobId,
        resumed: Result<Resumed<dyn OutputClaim>, Trouble>,
    },
    /// The result of checking a job's output directory.
    Verified {
        job: JobId,
        check: Check,
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

/// Stores an ended job in the history, outside the loop. Blocking. Remarks go to the last argument. An error
/// is the reason why the job was not stored.
pub type KeepEnded =
    Box<dyn FnOnce(&LiveJob, &mut EndedJob, &mut Vec<String>) -> Result<(), String> + Send>;

/// Where a coordinator reports what its operator or user should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notices {
    /// Events of `tracing`.
    Traced,
    /// Lines on standard error.
    Printed,
}

/// The services of a cluster for its coordinator; an embedded run has none.
pub trait ClusterServices: Send {
    /// The cluster directory, which no output may be in.
    fn directory(&self) -> PathBuf;

    /// Returns a blocking function that pins what a job needs in the store.
    fn pinning(&self) -> Box<dyn FnOnce(&Accepted) -> Pins + Send>;

    /// Returns whether the last output of failed attempts is kept.
    fn keeps_failed_logs(&self) -> bool;

    /// Returns the function that keeps an ended job in the history.
    fn keeping(&self, state: &CoordinatorState) -> KeepEnded;
}

/// The result of checking a claimed output directory.
#[derive(Debug)]
pub enum Check {
    Done(Box<dyn OutputClaim>),
    Failed {
        /// `None` if the check panicked.
        claim: Option<Box<dyn OutputClaim>>,
        trouble: Trouble,
    },
    /// It did not answer in time; the claim is resumed when it does.
    Late,
}

impl Check {
    /// Returns the result of a check that panicked, which was printed.
    fn panicked(error: JoinError) -> Check {
        let what = format!("internal error: {error}");
        let trouble = Trouble::Passing { what, away: true };
        Check::Failed {
            claim: None,
            trouble,
        }
    }
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

/// The jobs of one coordinator: the engine with its data, the claims on output directories, and the answers
/// that wait for the journal.
pub struct Coordinator {
    world: World,
    clock: EngineClock,
    state: CoordinatorState,
    cluster: Option<Box<dyn ClusterServices>>,
    entries: Entries,
    submitters: Submitters,
    claims: Claims,
    renewals: Renewals,
    endings: Endings,
    followers: Followers,
    program: Program,
    disk: Disk,
    notices: Notices,
    send_back: SendBack,
}
