//! The objects of REST and of `--format json`: the public API of both. Fields are added, never renamed or removed.
//! IDs are texts; times count from 1970.

mod cluster;
mod columns;
mod compared_jobs;
mod csv;
mod explaining;
mod filter;
mod findings;
mod flows;
mod groups;
mod jobs;
mod ledger;
mod noted;
mod performance;
mod preemptions;
mod quantiles;
mod queues;
mod recordings;
mod search;
mod shares;
mod submitted;
mod task_table;
mod tasks;
mod thinned;
mod timeline;
mod warnings;
mod workers;

pub use cluster::{CurrentJob, JobCounts, SlotsInUse, StatusAnswer, WorkerCounts};
pub use columns::{COLUMNS_KIND, columns_of};
pub use compared_jobs::{ComparedCounter, ComparedText, JobComparison, JobFigures};
pub use csv::{CsvColumns, cell, csv_of};
pub use explaining::{JobExplanation, ReasonAnswer, TaskExplanation};
pub use filter::{JobFilter, TextFilter};
pub use findings::FindingAnswer;
pub use flows::FlowAnswer;
pub use groups::{GroupAnswer, entries_of};
pub use jobs::{
    AttemptAnswer, CountersAnswer, EventAnswer, HistoryAnswer, JobAnswer, JobStatusAnswer,
    PartAnswer, PhaseAnswer, SettingsAnswer, TimeLeftAnswer,
};
pub use ledger::{
    ConvertedWishes, ENDS, LatencyAnswer, LedgerFilter, LedgerRow, PreemptionTotals,
    PrimitiveTotals,
};
pub use noted::WorkerChangeAnswer;
pub use performance::{FailureAnswer, JobWork, PerformanceAnswer};
pub use preemptions::{PreemptionAnswer, RestoreAnswer, ResumeAnswer};
pub use quantiles::{PhaseQuantiles, QuantilesAnswer};
pub use queues::{QueueAnswer, QueueSlotsAnswer, QueueStatusAnswer, QueueUserAnswer, QueuesAnswer};
pub use recordings::{
    ComparedJobAnswer, ComparisonAnswer, Recorded, RecordingAnswer, RecordingKind, SojournAnswer,
    differing_settings,
};
pub use search::{FoundAnswer, SearchAnswer, Searched};
pub use shares::{JobSlots, QueueSharesAnswer, SharesAnswer, SharesOfKind, SharesSum, Steps};
pub use submitted::{SubmittedAnswer, SubmittedPage, SubmittedRow};
pub use task_table::{TaskCounts, TaskFilter, TaskMedians, TaskRow, TaskRowAnswer, TaskTotals};
pub use tasks::{LiveAnswer, TaskAnswer, TaskStatusAnswer};
pub use thinned::COLUMNS;
pub use timeline::{
    LaneAnswer, NapAnswer, StintAnswer, TimelineAnswer, TimelineJobAnswer, TimelineWindow,
};
pub use warnings::WarningAnswer;
pub use workers::{SlotsAnswer, SuspendedAnswer, WorkerAnswer};

#[cfg(any(test, feature = "testing"))]
pub mod samples;
