//! The simulator: virtual workers in virtual time around the real engine and schedulers.

mod alone;
mod baseline;
mod csv_table;
pub mod fuzz;
mod job;
pub mod metrics;
pub mod plot;
mod presets;
mod run;
mod settings;
mod simulation;
mod slot_time;
mod workload;

pub use alone::alone;
pub use baseline::{Baseline, run_baseline};
pub use csv_table::write_csv;
pub use job::{Followers, SimulatedJob, SimulatedMap, SimulatedReduce};
pub use presets::OverheadPreset;
pub use run::{Allocation, AllocationStep, Ending, JobResult, Preemptions, Run, SimulationError};
pub use settings::{
    CheckpointByPhase, Cost, Failures, LimitError, MachineBandwidth, MachineMemory, Overheads,
    ProgressMark, ProgressModel, SimulationSettings,
};
pub use simulation::{Recording, Simulation};
pub use slot_time::{SlotTime, SlotTimeError};
pub use workload::{
    Arrivals, ChainEntry, ClusterShape, Distribution, JobEntry, MapsEntry, PUBLISHED, Published,
    ReducesEntry, Replicas, SizeModel, Skew, SwimError, SwimJob, SwimTrace, Workload,
    WorkloadError, WorkloadFile, decompressed, published, read_workload_text,
};
