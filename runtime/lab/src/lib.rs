//! Experiments of napreduce: speed against other programs, memory under a budget, the cost of starting,
//! what a cluster costs, what preemption costs.
//!
//! Owns how experiments are run, judged and reported. Jobs are measured as their users run them, as programs from start
//! to exit; the runtime is linked for the client of a cluster and for the jobs of the lab itself. Arguments and the terminal
//! belong to the `nap` binary, which is also the lab's job program and its guard when it is called so.
//!
//! ```no_run
//! use napreduce_lab::{Interrupt, Resources, Session, StartSettings, WorkSettings, start};
//!
//! let session = Session::new(Interrupt::listen()?, |line| eprintln!("{line}"));
//! let settings = StartSettings {
//!     runs: 50,
//!     resources: Resources { slots: 2, task_memory: "256MiB".parse()? },
//!     binaries: "target/release".into(),
//!     work: WorkSettings::default(),
//! };
//! println!("{}", start(&settings, &session)?.table());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod cluster;
mod confinement;
mod daemons;
mod guard;
mod identity;
mod input;
mod job_result;
mod jobs;
mod latency;
mod live_cluster;
mod machine;
mod memory;
mod outputs;
mod peers;
mod preempt;
mod process;
mod program;
mod raw;
mod session;
mod speed;
mod start;
pub mod statistics;
mod table;
mod workspace;

pub use check::CheckError;
pub use cluster::{ClusterReport, ClusterRun, ClusterSettings, PathReport, ShufflePath, SlotsError, cluster};
pub use confinement::{MemoryLimit, Tier};
pub use daemons::DaemonError;
pub use guard::{GuardError, guard_program, guard_requested};
pub use identity::{IdentityReport, IdentityRun, IdentitySettings, identity};
pub use input::InputError;
pub use job_result::JobResultError;
pub use jobs::{job_program, job_program_requested};
pub use latency::{Latencies, LatencyReport, LatencySettings, latency};
pub use live_cluster::LiveClusterError;
pub use machine::{Machine, cpus};
pub use memory::{MemoryReport, MemoryResult, MemorySettings, memory};
pub use outputs::{OutputDigest, OutputsError};
pub use peers::{Peer, PeerError, PeerSettings};
pub use preempt::{
    Cell, PreemptReport, PreemptSettings, Strategy, TaskForm, TwoJobsRun, UnknownWord, Verdict, Way,
    WayFigures, WayRun, Weight, preempt,
};
pub use process::{Interrupt, InterruptError, MemoryPeak, ProcessError, Usage};
pub use program::{Program, ProgramError, Resources};
pub use session::Session;
pub use speed::{Conditions, ContenderReport, Measurement, Run, SpeedReport, SpeedSettings, speed};
pub use start::{StartReport, StartSettings, start};
pub use workspace::{WorkError, WorkSettings};

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
    Input(#[from] InputError),
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
    /// The slots cannot be shared out among the workers.
    #[error(transparent)]
    Slots(#[from] SlotsError),
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
    Plot(#[from] napreduce_plot::PlotError),
    /// Nobody disturbed a job and its output is another one than before.
    #[error("{job} was run again undisturbed and its output differs; the comparison would mean nothing")]
    Undisturbed {
        /// The job.
        job: napreduce_core::JobId,
    },
    /// A job ended before it was seen to be as far as it should be.
    #[error("{job} ended before it was seen at {percent} %; give its task more to do with --task-time")]
    TooShort {
        /// The job.
        job: napreduce_core::JobId,
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
            | LabError::Input(InputError::Interrupted(error))
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
            LabError::Program(_) | LabError::Slots(_) => true,
            LabError::Daemon(error) => matches!(error, DaemonError::Missing { .. }),
            LabError::Peer(error) => !matches!(error, PeerError::Interrupted(_) | PeerError::Script { .. }),
            LabError::Work(error) => matches!(error, WorkError::Make { .. } | WorkError::Room { .. }),
            _ => false,
        }
    }
}
