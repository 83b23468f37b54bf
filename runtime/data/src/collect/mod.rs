//! Collecting a map task's output: combine, sort, spill, seal. `Collector` is the entry point.

mod batch;
mod buffer;
mod collector;
mod error;
mod packed;
mod save;
mod seal;
mod slots;
mod spill;
mod table;

pub use collector::{CollectStatistics, Collector, CollectorSettings};
pub use error::CollectError;
pub use save::SavedCollection;
