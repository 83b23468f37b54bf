//! The progress of messages on their way, so that a connection that has frozen is noticed: no FIN or RST arrives, and
//! the bytes of a message neither leave nor arrive. Between messages a connection may be silent for any time.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use napreduce_protocol::lock;
use tokio::time::Instant;

/// Maximum time in which no byte of a message moves, in either direction. Slow links deliver some bytes.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(20);

/// When the message on its way last moved; shared by a connection and those who watch it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferClock(Arc<Mutex<Option<Instant>>>);

impl TransferClock {
    /// Records that bytes of a message have moved, and others remain.
    pub(super) fn moved(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// Records that no message is on its way.
    pub(super) fn ended(&self) {
        *self.lock() = None;
    }

    /// Returns when the current message last moved; starts a message if none is under way.
    pub(super) fn last_moved(&self) -> Instant {
        *self.lock().get_or_insert_with(Instant::now)
    }

    /// Returns for how long no byte of the current message has moved; `None` if there is no such message.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let moved = *self.lock();
        moved.map(|moved| moved.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.0)
    }
}
