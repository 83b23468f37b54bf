//! The simulator of napreduce: virtual workers and virtual time around the same Engine and the same
//! schedulers.
//!
//! Owns virtual time, workers, failures, workloads and what is measured of a run. Does not own any rule about
//! jobs, tasks or slots: those are the engine's; nor what a user sees of it: that is the operator's command.

mod alone;
mod baseline;
mod books;
pub mod fuzz;
mod job;
pub mod metrics;
pub mod plot;
mod presets;
mod run;
mod settings;
mod simulation;
mod workload;

pub use alone::alone;
pub use baseline::{Baseline, run_baseline};
pub use books::{Books, BooksError};
pub use job::{Followers, SimulatedJob, SimulatedMap, SimulatedReduce};
pub use presets::OverheadPreset;
pub use run::{Allocation, AllocationStep, Ending, JobResult, Preemptions, Run, SimulationError};
pub use settings::{
    CheckpointByPhase, Cost, Failures, LimitError, MachineBandwidth, MachineMemory, Overheads, ProgressMark,
    SimulationSettings, ToldProgress,
};
pub use simulation::{Recording, Simulation};
pub use workload::{
    Arrivals, ChainEntry, ClusterShape, Distribution, JobEntry, MapsEntry, PUBLISHED, Published,
    ReducesEntry, Replicas, SizeModel, Skew, SwimError, SwimJob, SwimTrace, Workload, WorkloadError,
    WorkloadFile, published,
};
