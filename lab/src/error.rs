//! Why an experiment cannot be carried out.
//!
//! Owns the error of all experiments, and what the user can do about it. The errors of its parts are defined
//! where they arise, but for those of modules that speak of this one themselves.

mod replay;

use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_live::{ClientError, ClusterDirectoryError};
use napreduce_sim::plot::PlotError;
pub use replay::WorkloadReplayError;

use crate::check::CheckError;
use crate::daemons::DaemonError;
use crate::guard::GuardError;
use crate::input::GeneratedInputError;
use crate::job_result::JobResultError;
use crate::outputs::OutputsError;
use crate::peers::PeerError;
use crate::process::{InterruptError, ProcessError};
use crate::program::ProgramError;
use crate::workspace::WorkError;

/// An experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A program of ours is missing.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A peer is missing.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The work folder cannot be used.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// An input cannot be made.
    #[error(transparent)]
    Input(#[from] GeneratedInputError),
    /// A program failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// An output is wrong.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A job's summary is wrong.
    #[error(transparent)]
    JobResult(#[from] JobResultError),
    /// A daemon is missing or failed.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The guard that cleans up failed.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A cluster of the experiment's own failed.
    #[error(transparent)]
    LiveCluster(#[from] LiveClusterError),
    /// An output cannot be compared.
    #[error(transparent)]
    Outputs(#[from] OutputsError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A workload cannot be replayed.
    #[error(transparent)]
    Replay(#[from] WorkloadReplayError),
    /// Nobody disturbed a job and its output is another one than before.
    #[error("{job} was run again undisturbed and its output differs; the comparison would mean nothing")]
    Undisturbed { job: JobId },
    /// A job ended before it was seen to be as far as it should be.
    #[error("{job} ended before it was seen at {percent} %; give its task more to do with --task-time")]
    TooShort {
        job: JobId,
        /// How far it should have been.
        percent: u32,
    },
    /// A signal asked the experiment to end.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
}

impl LabError {
    /// The signal that ended the experiment, if one did.
    pub fn signal(&self) -> Option<u8> {
        let interrupted = match self {
            LabError::Interrupted(error)
            | LabError::Peer(PeerError::Interrupted(error))
            | LabError::Input(GeneratedInputError::Interrupted(error))
            | LabError::Process(ProcessError::Interrupted(error))
            | LabError::Daemon(
                DaemonError::Interrupted(error) | DaemonError::Process(ProcessError::Interrupted(error)),
            )
            | LabError::Check(CheckError::Interrupted(error)) => error,
            _ => return None,
        };
        Some(interrupted.signal)
    }

    /// Whether other arguments could help: something named by the user is missing or of no use.
    pub fn is_usage(&self) -> bool {
        match self {
            LabError::Program(_) => true,
            LabError::Replay(error) => error.is_usage(),
            LabError::Daemon(error) => matches!(error, DaemonError::Missing { .. }),
            LabError::Peer(error) => !matches!(error, PeerError::Interrupted(_) | PeerError::Script(_)),
            LabError::Work(error) => matches!(error, WorkError::Make { .. } | WorkError::Room { .. }),
            _ => false,
        }
    }
}

/// A cluster did not do its part.
#[derive(Debug, thiserror::Error)]
pub enum LiveClusterError {
    /// It was asked for something, or could not be.
    #[error("the cluster of the experiment: {0}")]
    Client(#[from] ClientError),
    /// Its folder is of no use.
    #[error(transparent)]
    Directory(#[from] ClusterDirectoryError),
    /// A job did not succeed.
    #[error("{job} ({name}) {phase}: {reason}")]
    Job {
        job: JobId,
        name: String,
        /// How it ended.
        phase: &'static str,
        reason: String,
    },
    /// A job takes too long.
    #[error("{job} is not where it should be after {limit:?}: {waited_for}")]
    Late {
        job: JobId,
        /// How long it had.
        limit: Duration,
        /// What did not happen.
        waited_for: String,
    },
    /// Workers did not come up.
    #[error("of {wanted} workers {up} were up after {limit:?}")]
    Workers {
        /// As many as were started.
        wanted: usize,
        /// As many as came.
        up: usize,
        /// How long they had.
        limit: Duration,
    },
    /// The submitter said something else than a job's id.
    #[error("a job was handed in and its program said {said:?}, which is no id of a job")]
    NoJob { said: String },
    /// A worker is not confined.
    #[error("{0}")]
    Confinement(String),
}
