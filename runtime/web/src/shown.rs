//! One source of the page (a cluster, a history, or the result of a what-if) with its cached values.

use std::sync::Arc;

use napreduce_answers::{JobSlots, JobWork, LedgerRow, RecordingKind};

use crate::per_job::JobValues;
use crate::source::PageSource;

/// A source and its cached values.
#[derive(Debug)]
pub struct Shown {
    /// Its name in queries.
    pub name: String,
    pub kind: RecordingKind,
    pub source: Arc<dyn PageSource>,
    pub ledgers: JobValues<Vec<LedgerRow>>,
    pub slots: JobValues<JobSlots>,
    pub work: JobValues<JobWork>,
}

impl Shown {
    pub fn new(name: String, kind: RecordingKind, source: Arc<dyn PageSource>) -> Shown {
        let ledgers = JobValues::default();
        let slots = JobValues::default();
        let work = JobValues::default();
        Shown {
            name,
            kind,
            source,
            ledgers,
            slots,
            work,
        }
    }
}
