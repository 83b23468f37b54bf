//! The engine of napreduce: pure state machines for jobs, tasks, attempts, workers and slots, and the trait
//! of schedulers. It uses no clocks, sockets, files, threads or unseeded randomness: time and events are
//! arguments, effects are results. The live coordinator and the simulator are two loops around the same
//! `Engine`.

#[macro_use]
mod listed;

mod by_kind;
mod chain;
mod cluster;
pub mod delivery;
mod effect;
mod engine;
mod event;
mod fault;
mod ids;
mod job;
mod numbers;
mod pause;
mod preemption;
mod primitive_choice;
mod ratio;
mod refusal;
#[cfg(feature = "scenarios")]
pub mod scenarios;
mod scheduler;
mod settings;
mod sorted;
mod states;
mod suspended_max;
pub mod time;

pub use by_kind::ByKind;
pub use chain::chain_share;
pub use cluster::{
    Attempt, Blame, Claims, ClusterView, DefaultOrder, Exclusion, Explanation, Fallbacks, Job,
    Lengths, MeasuredCosts, Reason, ReasonCode, Reservation, Suspension, Tally, TaskHistory,
    Worker, accesses,
};
pub use effect::{Effect, MapOutput, Order, Record, Start};
pub use engine::{Engine, EngineSnapshot, SnapshotError, TimeLeft};
pub use event::{DEFAULT_RACK, Event, FailureClass, Report};
pub use fault::{DiskNeed, FaultPlace};
pub use ids::{AttemptId, IdError, JobId, TaskId, TaskKind, WorkerId};
pub use job::{JobChange, JobOutcome, JobPart, JobSpec, JobSpecError, MapSpec, Slots};
pub use pause::{Pause, PauseKind};
pub use preemption::{
    CostEstimate, Lapsed, PreemptRequest, Primitive, RequestState, Requester, TaskEviction,
};
pub use primitive_choice::{AutoSettings, Judged, PrimitiveChoice};
pub use ratio::{Ratio, RatioError};
pub use refusal::{OperatorRefusal, PolicyRefusal};
pub use scheduler::{
    Action, Actions, Fifo, Offer, PolicyChoice, Preempt, QueueLimits, QueueShare, ReadPolicy,
    Release, Scheduler, is_other_first, other_kind_first, serve,
};
pub use settings::{
    Conversion, Converted, CostRule, EngineSettings, Escalation, ExclusionSettings, Instead,
    KindPreemption, PreemptionLimits, PreemptionSettings, SpeculationSettings,
};
pub use sorted::{SortedMap, SortedSet, sort_by, sort_by_key};
pub use states::{
    AttemptInput, AttemptOutcome, AttemptState, IllegalTransition, JobInput, JobState, Standing,
    TaskInput, TaskState, WorkerInput, WorkerState,
};
pub use suspended_max::{NoSuspendedMax, SuspendedMax};
pub use time::{Span, Time};
