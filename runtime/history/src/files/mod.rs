//! Ended jobs in files that outlive the cluster: for each job a head (JSON, short) and a recording (lines of JSON in
//! gzip), and an index of what a listing shows, so that it is opened without reading them. Heads and
//! recordings are plain files that can be copied and read without the index. What is drawn over time (stints, naps,
//! traces) and how the cluster itself was are here, too.

mod days;
mod error;
mod folder;
mod former;
mod head;
mod index;
mod ledger;
mod lengths;
mod recording;
mod store;
mod timeline;
mod trace;

pub use days::read_cluster;
pub use error::HistoryError;
pub use folder::{FolderError, HistoryFolder};
pub use former::{Converted, convert_history};
pub use head::{JobOverview, LedgerTotals, PERCENTS, quantiles};
pub use ledger::{LedgerEntry, Sequel, ledger_of};
pub use lengths::{LengthsError, TaskLengths};
pub use recording::{CounterRow, RecordedRows, RecordingError, RecordingWriter};
pub use store::{History, open_history, write_simulated};
pub use timeline::{Lane, Nap, Stint, StintEnd, Timeline, assign_lanes};
pub use trace::{TraceFigures, write_trace};
