//! Files of ended jobs: for each job a head (short JSON) and a recording (lines of JSON in gzip), and an index for
//! listings. Heads and recordings can be copied and read without the index. Timelines, traces, ledgers and task lengths
//! are derived from them here; so are the daily samples of the cluster.

mod days;
mod findings;
mod folder;
mod head;
mod index;
mod ledger;
mod lengths;
mod recording;
mod store;
mod timeline;
mod trace;

pub use days::read_cluster;
pub use findings::{Finding, FindingCode, findings_of};
pub use folder::{FolderError, HistoryFolder};
pub use head::{JobOverview, LedgerTotals, PERCENTS, quantile, quantiles};
pub use ledger::{LedgerEntry, Sequel, ledger_of};
pub use lengths::{LengthsError, TaskLengths};
pub use recording::{CounterRow, HistoryError, RecordedRows, RecordingError, RecordingWriter};
pub use store::{History, open_history, write_simulated};
pub use timeline::{Lane, Nap, Stint, StintEnd, Timeline, assign_lanes};
pub use trace::{TraceFigures, write_trace};
