//! Experiments of napreduce: speed against other programs, memory under a budget, the cost of starting,
//! what preemption costs.
//!
//! Owns how experiments are run, judged and reported. Jobs are measured as their users run them, as programs
//! from start to exit; the runtime is linked for the client of a cluster and for the jobs of the lab itself.
//! The settings of an experiment are its arguments; commands, their help and the terminal belong to the
//! `nap-lab` binary, which is also the lab's job program and its guard when it is called so.
//!
//! ```no_run
//! use napreduce_lab::{Interrupt, Resources, Session, StartSettings, WorkSettings, start};
//!
//! let (work, binaries) = (WorkSettings::default(), "target/release".into());
//! let session = Session::new(Interrupt::listen()?, work, binaries, |line| eprintln!("{line}"));
//! let resources = Resources { slots: 2, task_memory: "256MiB".parse()? };
//! let settings = StartSettings { runs: 50, resources };
//! println!("{}", start(&settings, &session)?.table());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod words;

mod check;
mod confinement;
mod daemons;
mod error;
mod guard;
mod input;
mod job_result;
mod jobs;
mod latency;
mod live_cluster;
mod machine;
mod memory;
mod outputs;
pub mod paper;
mod peers;
mod preempt;
mod process;
mod program;
mod raw;
pub mod records;
mod replay;
mod session;
mod speed;
mod start;
pub mod statistics;
mod suite;
mod table;
mod workspace;

pub use check::CheckError;
pub use confinement::{MemoryLimit, Tier};
pub use daemons::DaemonError;
pub use error::{LabError, LiveClusterError, WorkloadReplayError};
pub use guard::{GuardError, guard_program, guard_requested};
pub use input::GeneratedInputError;
pub use job_result::JobResultError;
pub use jobs::{TaskBody, job_program, job_program_requested};
pub use latency::{Latencies, LatencyReport, LatencySettings, latency};
pub use machine::Machine;
pub use memory::{MemoryReport, MemoryResult, MemorySettings, memory};
pub use outputs::{OutputDigest, OutputsError};
pub use peers::{PeerError, PeerTool, bare_sort_program, bare_sort_requested};
pub use preempt::{
    Cell, JobWeight, PreemptReport, PreemptSettings, Strategy, TaskForm, TwoJobsRun, Verdict, Way,
    WayFigures, WayRun, preempt,
};
pub use process::{Interrupt, InterruptError, MemoryPeak, ProcessError, Usage};
pub use program::{BenchmarkJob, ProgramError, Resources};
pub use replay::{
    Agreement, Costs, GivenCosts, MeanRatio, ReplayReport, ReplayRun, ReplayRuns, ReplaySettings,
    ReplaySource, Scale, replay,
};
pub use session::Session;
pub use speed::{Conditions, ContenderReport, Measurement, SpeedReport, SpeedSettings, Timing, speed};
pub use start::{StartReport, StartSettings, start};
pub use suite::{
    SuiteConditions, SuiteContender, SuiteJob, SuiteJobReport, SuiteReport, SuiteSettings, suite,
};
pub use words::{UnknownWord, counted};
pub use workspace::{WorkError, WorkSettings};
