//! What a user gives to a job, and what that code is told and answers.
//!
//! Owns the traits of mappers, reducers and combiners, closures as such, and how keys are divided. Does not
//! own when any of it is called (`task`), nor how a job is put together from it (`builder`).

mod combine;
mod mapper;
mod outcome;
mod part_map;
mod partition;
mod reducer;
mod resumable;
mod task_info;

pub use combine::{CombineStage, Fold, NoCombine};
pub(crate) use mapper::MapClosure;
pub use mapper::Mapper;
pub use outcome::{BadRecord, Outcome};
pub(crate) use part_map::{PartClosure, PartMap, ResumablePartClosure};
pub(crate) use partition::{Grouping, PartitionChoice};
pub use reducer::{ReduceClosure, Reducer};
pub use resumable::ResumableClosure;
pub use task_info::TaskInfo;
