//! The traits of mappers, reducers and combiners with their implementations for closures, and the
//! partitioning of keys.

mod combine;
mod flat_map;
mod mapper;
mod outcome;
mod part_map;
mod partition;
mod reducer;
mod resumable;
mod task_info;

pub(crate) use combine::{Aggregate, Combining, Merging};
pub use combine::{CombineStage, Fold, NoCombine};
pub(crate) use flat_map::FlatMapper;
pub use flat_map::{FlatMap, KeyOrPair};
pub(crate) use mapper::MapClosure;
pub use mapper::Mapper;
pub use outcome::{BadRecord, Outcome};
pub(crate) use part_map::{PartClosure, PartMap, ResumablePartClosure};
pub(crate) use partition::{Grouping, PartitionChoice};
pub(crate) use reducer::ReduceClosure;
pub use reducer::Reducer;
pub(crate) use resumable::{ResumableClosure, ResumableMapper, ResumableReducer};
pub use task_info::TaskInfo;
