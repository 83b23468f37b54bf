//! Jobs of a cluster that have ended, in files that outlive it.
//!
//! Owns the history of a coordinator: for each job a head (JSON, short) and a recording (rows in compressed
//! columns), and an index of what a listing shows, so that it is opened without reading them. Heads and
//! recordings are plain files that can be copied and read without the index. Does not own jobs that run.

mod ended;
mod folder;
mod head;
mod index;
mod lengths;
mod recording;
mod rows;
mod store;

pub use ended::{DoneTask, EndedJob, JobSettings, RecordedCluster, WorkerGroup};
pub use folder::{FolderError, HistoryFolder};
pub use lengths::{LengthsError, TaskLengths};
pub use recording::{
    Columns, ColumnsWriter, FRAME_ROWS_MAX, RecordedFrame, RecordingError, RecordingReader, RecordingWriter,
    Row,
};
pub use store::{History, HistoryError, HistoryLimits};
