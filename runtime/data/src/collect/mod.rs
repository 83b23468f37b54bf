//! Collecting what a map task emits: combine, sort, spill, seal.
//!
//! Owns `Collector`, the one object that a map task writes to. Does not own sorting itself (`sort`), files
//! (`segment`) nor the typed encoding of keys and values (the framework).

mod batch;
mod buffer;
mod collector;
mod error;
mod keys;
mod packed;
mod save;
mod seal;
mod settings;
mod slots;
mod spill;
mod table;

pub use collector::{CollectStatistics, Collector};
pub use error::CollectError;
pub use save::SavedCollection;
pub use settings::CollectorSettings;
