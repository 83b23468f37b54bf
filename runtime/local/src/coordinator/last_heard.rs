//! The time of a worker's last message, stamped on arrival, and the back-pressure on its connection. A worker
//! is not silent while the loop is behind and has not processed its messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::clock::now;

/// Maximum messages of one connection that wait for the loop.
const WAITING_MAX: usize = 1024;

/// The time of the last message. Shared by a connection, which stamps it, and the link of its worker.
#[derive(Debug, Clone)]
pub struct LastHeard {
    began: Instant,
    /// Microseconds since `began`.
    at: Arc<AtomicI64>,
    room: Arc<Semaphore>,
}

/// A message's place in the queue, held until the loop has processed the message.
#[derive(Debug)]
pub struct Waiting {
    _room: OwnedSemaphorePermit,
}

impl LastHeard {
    pub fn now() -> LastHeard {
        LastHeard {
            began: now(),
            at: Arc::default(),
            room: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }

    /// Records that a message has arrived.
    pub fn stamp(&self) {
        self.at
            .store(micros(self.began.elapsed()), Ordering::Relaxed);
    }

    /// Returns the time since the last message; zero while messages wait for the loop.
    pub fn silence(&self) -> Duration {
        if self.room.available_permits() < WAITING_MAX {
            return Duration::ZERO;
        }
        let silence = micros(self.began.elapsed()).saturating_sub(self.at.load(Ordering::Relaxed));
        Duration::from_micros(u64::try_from(silence).unwrap_or(0))
    }

    /// Moves the last message back in time.
    #[cfg(any(test, feature = "testing"))]
    pub fn move_back(&self, by: Duration) {
        self.at.fetch_sub(micros(by), Ordering::Relaxed);
    }

    /// Moves the last message forward in time.
    #[cfg(any(test, feature = "testing"))]
    pub fn move_on(&self, by: Duration) {
        self.at.fetch_add(micros(by), Ordering::Relaxed);
    }

    /// Waits for room for one more message.
    pub async fn room(&self) -> Waiting {
        let room = Arc::clone(&self.room).acquire_owned().await;
        Waiting {
            _room: room.expect("an open semaphore"),
        }
    }

    /// Takes room for one message; panics if there is none.
    #[cfg(any(test, feature = "testing"))]
    pub fn free_room(&self) -> Waiting {
        Waiting {
            _room: Arc::clone(&self.room)
                .try_acquire_owned()
                .expect("a loop that keeps up"),
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn backpressured_worker_is_not_silent() {
        let heard = LastHeard::now();
        heard.move_back(Duration::from_secs(60));
        assert!(heard.silence() >= Duration::from_secs(60));
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(heard.room().await);
        }
        assert_eq!(heard.silence(), Duration::ZERO);
        let mut next = std::pin::pin!(heard.room());
        let refused =
            std::future::poll_fn(|context| std::task::Poll::Ready(next.as_mut().poll(context)));
        assert!(refused.await.is_pending(), "there is room for one too many");
        waiting.pop();
        drop(next.await);
        drop(waiting);
        assert!(
            heard.silence() >= Duration::from_secs(60),
            "an old message does not count as a new one"
        );
    }
}
