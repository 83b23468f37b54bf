//! One thing that is shown: a cluster, a history, or what a what-if made.
//!
//! Owns what is remembered of it between requests. Does not own which ones there are (`context`, `what_if`).

use std::sync::Arc;

use crate::answers::{JobSlots, LedgerRow, RecordingKind};
use crate::per_job::JobValues;
use crate::source::PageSource;

/// A cluster or a history, and what is remembered of it.
#[derive(Debug)]
pub struct Shown {
    /// What a query calls it.
    pub name: String,
    pub kind: RecordingKind,
    pub source: Arc<dyn PageSource>,
    /// The entries of each job's ledger.
    pub ledgers: JobValues<Vec<LedgerRow>>,
    /// The slots that each job held.
    pub slots: JobValues<JobSlots>,
}

impl Shown {
    pub fn new(name: String, kind: RecordingKind, source: Arc<dyn PageSource>) -> Shown {
        Shown { name, kind, source, ledgers: JobValues::default(), slots: JobValues::default() }
    }
}
