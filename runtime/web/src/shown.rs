//! One thing that is shown: a cluster, a history, or what a what-if made.
//!
//! Owns what is remembered of it between requests. Does not own which ones there are (`context`, `what_if`).

use std::sync::Arc;

use crate::answers::RecordingKind;
use crate::ledgers::Ledgers;
use crate::source::PageSource;

/// A cluster or a history, and what is remembered of it.
#[derive(Debug)]
pub struct Shown {
    /// What a query calls it.
    pub name: String,
    pub kind: RecordingKind,
    pub source: Arc<dyn PageSource>,
    pub ledgers: Ledgers,
}

impl Shown {
    pub fn new(name: String, kind: RecordingKind, source: Arc<dyn PageSource>) -> Shown {
        Shown { name, kind, source, ledgers: Ledgers::default() }
    }
}
