//! The data plane of napreduce: sorts emitted records into sealed segments and merges segments into groups
//! of values, within a memory budget per task. Keys and values are bytes here; the framework encodes them.
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
//! let mut groups = Vec::new();
//! while input.next_group()? {
//!     let mut values = Vec::new();
//!     while let Some((_, value)) = input.next_value()? {
//!         values.push(String::from_utf8_lossy(value).into_owned());
//!     }
//!     groups.push((String::from_utf8_lossy(input.group_key()).into_owned(), values));
//! }
//! assert_eq!(groups, [("apple".into(), vec!["2".to_owned()]), ("pear".into(), vec!["1".into(), "3".into()])]);
//! std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Every other crate depends on this one, so that users see this error alone.
#[cfg(not(target_os = "linux"))]
compile_error!(
    "napreduce requires Linux 5.4 or later: it supervises tasks with pidfds and cgroups"
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
    KeyValue, READ_MAX, ReduceError, ReduceInput, ReduceSettings, ReduceStatistics,
    SavedReduceInput, SavedSource,
};
pub use saved::{SavePlace, SavedFile, SavedFileError};
pub use segment::{
    AssemblyError, BlockCompression, ConsolidationError, Cursor, PartitionEntry, PartitionExtent,
    SealedSegment, Segment, SegmentAssembly, SegmentError, SegmentIndex, SegmentPosition,
    WriteError, consolidate,
};
