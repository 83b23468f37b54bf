//! The data plane of napreduce: from emitted records to sealed segments to groups of values.
//!
//! Owns the sort buffer, run and segment files, partitioning, combining, the merge heap and group iteration,
//! each inside a memory budget. Does not own the network, processes, typed keys and values, or input and
//! output formats.
//!
//! ```
//! use napreduce_data::{Collector, CollectorSettings, ReduceInput, ReduceSettings};
//!
//! let folder = std::env::temp_dir().join(format!("napreduce-data-doc-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let output = folder.join("map.segment");
//!
//! let mut collector: Collector<()> =
//!     Collector::plain(CollectorSettings::new(1 << 20, &folder, &output, "job_0001_m_0000.1"))?;
//! for (key, value) in [("pear", "1"), ("apple", "2"), ("pear", "3")] {
//!     collector.emit_bytes(key.as_bytes(), value.as_bytes());
//! }
//! collector.finish()?;
//!
//! let mut input = ReduceInput::open(ReduceSettings {
//!     segments: vec![output],
//!     consolidated: Vec::new(),
//!     partition: 0,
//!     memory: 1 << 20,
//!     scratch: folder.clone(),
//!     label: "job_0001_r_0000.1".into(),
//!     fan_in: 64,
//!     read_max: napreduce_data::READ_MAX,
//!     grouping: None,
//!     resume: None,
//! })?;
//! let mut seen = Vec::new();
//! while input.next_group()? {
//!     let mut values = Vec::new();
//!     while let Some((_, value)) = input.next_value()? {
//!         values.push(String::from_utf8_lossy(value).into_owned());
//!     }
//!     seen.push((String::from_utf8_lossy(input.group_key()).into_owned(), values));
//! }
//! assert_eq!(seen, [("apple".into(), vec!["2".to_owned()]), ("pear".into(), vec!["1".into(), "3".into()])]);
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Whatever needs Linux is built on this crate, so that nobody sees more errors than this one.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce runs on Linux only, from 5.4 on: how tasks are watched and suspended no other system offers"
);

mod activity;
mod budget;
mod collect;
mod combine;
mod key;
mod lent;
mod masks;
mod merge;
mod partition;
mod record;
mod reduce;
mod region;
mod saved;
mod segment;
mod sort;

pub use activity::blocks_moved;
pub use collect::{CollectError, CollectStatistics, Collector, CollectorSettings, SavedCollection};
pub use combine::Combiner;
pub use lent::lend;
pub use masks::{GROUP_BYTES, newline_mask, white_mask};
pub use merge::{Merge, MergeError};
pub use partition::{Choose, Grouping, Partitioning, PartitioningError};
pub use record::RecordEncoding;
pub use reduce::{
    KeyValue, READ_MAX, ReduceError, ReduceInput, ReduceSettings, ReduceStatistics, SavedReduceInput,
    SavedSource,
};
pub use saved::{SavePlace, SavedFile, SavedFileError};
pub use segment::{
    AssemblyError, BlockCompression, ConsolidationError, Cursor, PartitionEntry, PartitionExtent,
    SealedSegment, Segment, SegmentAssembly, SegmentError, SegmentIndex, SegmentPosition, WriteError,
    consolidate,
};
