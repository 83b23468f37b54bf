//! How much this process has read from stores, and written to them.
//!
//! A task process runs one task, and takes the counts for it.

use std::sync::atomic::{AtomicU64, Ordering};

use napreduce_protocol::WrittenFigures;

/// What is counted of requests of one direction.
#[derive(Debug)]
pub(crate) struct Figures {
    requests: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
}

/// Of requests for bytes of objects; requests that only look are counted by nobody.
pub(crate) static READ: Figures = Figures::new();
/// Of requests that write.
pub(crate) static WRITTEN: Figures = Figures::new();

/// What was read since somebody last took these figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageFigures {
    /// Requests for the bytes of objects, those that failed included.
    pub requests: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Requests that were made again, or went on where an answer had broken off.
    pub retries: u64,
}

/// Takes the figures of this process, which begin again at 0.
///
/// ```
/// assert_eq!(napreduce_connectors::stores::take_figures().requests, 0);
/// ```
pub fn take_figures() -> StorageFigures {
    let (requests, bytes, retries) = READ.take();
    StorageFigures { requests, bytes, retries }
}

/// The same of what was written.
pub(crate) fn take_written() -> WrittenFigures {
    let (requests, bytes, retries) = WRITTEN.take();
    WrittenFigures { requests, bytes, retries }
}

impl Figures {
    const fn new() -> Figures {
        Figures { requests: AtomicU64::new(0), bytes: AtomicU64::new(0), retries: AtomicU64::new(0) }
    }

    fn take(&self) -> (u64, u64, u64) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        (take(&self.requests), take(&self.bytes), take(&self.retries))
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}
