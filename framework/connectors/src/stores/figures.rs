//! Counters of requests and bytes of this process. A task process runs one task and reports them.

use std::sync::atomic::{AtomicU64, Ordering};

use napreduce_protocol::WrittenFigures;

/// Counters of one direction.
#[derive(Debug)]
pub(crate) struct Figures {
    requests: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
}

/// Requests for bytes of objects; metadata requests are not counted.
pub(crate) static READ: Figures = Figures::new();
/// Requests that write.
pub(crate) static WRITTEN: Figures = Figures::new();

/// Reads since the last call of [`take_figures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageFigures {
    /// Requests for bytes of objects, including failed ones.
    pub requests: u64,
    /// Received bytes.
    pub bytes: u64,
    /// Retried requests, and continuations of broken responses.
    pub retries: u64,
}

/// Returns the read counters and resets them.
///
/// ```
/// assert_eq!(napreduce_connectors::stores::take_figures().requests, 0);
/// ```
pub fn take_figures() -> StorageFigures {
    let (requests, bytes, retries) = READ.take();
    StorageFigures {
        requests,
        bytes,
        retries,
    }
}

/// Returns the write counters and resets them.
pub(crate) fn take_written() -> WrittenFigures {
    let (requests, bytes, retries) = WRITTEN.take();
    WrittenFigures {
        requests,
        bytes,
        retries,
    }
}

impl Figures {
    const fn new() -> Figures {
        Figures {
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        }
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
