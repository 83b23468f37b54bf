//! The queue of one stream. It is bounded: a slow reader loses events, which a `reset` replaces.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use napreduce_protocol::lock;
use tokio::sync::Notify;

use super::event::{Change, PageEvent};

/// The most queued events.
pub const EVENTS_MAX: usize = 1_024;

/// The queue of one stream with a single reader.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Arc<PageEvent>>,
    is_closed: bool,
}

impl Queue {
    /// Adds an event. If the queue is full, a `reset` replaces it and all queued events.
    pub fn push(&self, event: &Arc<PageEvent>) {
        let mut waiting = lock(&self.waiting);
        if waiting.events.len() < EVENTS_MAX {
            waiting.events.push_back(event.clone());
        } else {
            waiting.events.clear();
            let reset = PageEvent {
                sequence: event.sequence,
                change: Change::reset(),
            };
            waiting.events.push_back(Arc::new(reset));
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Ends the stream. A reader that reconnects requests the queued events again.
    pub fn close(&self) {
        lock(&self.waiting).is_closed = true;
        self.arrived.notify_one();
    }

    /// Waits for the next event; `None` at the end.
    pub async fn next(&self) -> Option<Arc<PageEvent>> {
        loop {
            {
                let mut waiting = lock(&self.waiting);
                if waiting.is_closed {
                    return None;
                }
                if let Some(event) = waiting.events.pop_front() {
                    return Some(event);
                }
            }
            self.arrived.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u64) -> Arc<PageEvent> {
        let change = Change {
            name: "job",
            topics: Vec::new(),
            data: "{}".to_owned(),
        };
        Arc::new(PageEvent { sequence, change })
    }

    async fn all(queue: &Queue) -> Vec<(u64, &'static str)> {
        let mut all = Vec::new();
        while !lock(&queue.waiting).events.is_empty() {
            let event = queue.next().await.expect("open");
            all.push((event.sequence, event.change.name));
        }
        all
    }

    #[tokio::test]
    async fn full_queue_is_replaced_by_a_reset() {
        let queue = Queue::default();
        let capacity = EVENTS_MAX as u64;
        for sequence in 1..=capacity {
            queue.push(&event(sequence));
        }
        assert_eq!(all(&queue).await.last(), Some(&(capacity, "job")));
        for sequence in 1..=capacity + 3 {
            queue.push(&event(sequence));
        }
        assert_eq!(
            all(&queue).await,
            [
                (capacity + 1, "reset"),
                (capacity + 2, "job"),
                (capacity + 3, "job")
            ],
            "the queue exceeds its limit or has a gap"
        );
    }

    #[tokio::test]
    async fn waiting_reader_is_woken_by_event_and_close() {
        let queue = Arc::new(Queue::default());
        let reader = tokio::spawn({
            let queue = queue.clone();
            async move { (queue.next().await, queue.next().await) }
        });
        tokio::task::yield_now().await;
        queue.push(&event(1));
        tokio::task::yield_now().await;
        queue.close();
        let (first, second) = reader.await.expect("no panic");
        assert_eq!((first.map(|event| event.sequence), second), (Some(1), None));
    }
}
