//! What one stream still has to send.
//!
//! Owns its bound: a reader that is slow loses events and is told so; it never costs memory. Does not own who
//! gets which event (`hub`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::event::{Change, PageEvent};
use crate::lock::lock;

/// Events that wait for a reader.
pub const PLACES: usize = 1_024;

/// The queue of one stream. It has one reader.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    come: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Arc<PageEvent>>,
    is_closed: bool,
}

impl Queue {
    /// Adds an event. In a queue that is full, a `reset` stands for it and for all that waited.
    pub fn push(&self, event: &Arc<PageEvent>) {
        let mut waiting = lock(&self.waiting);
        if waiting.events.len() < PLACES {
            waiting.events.push_back(event.clone());
        } else {
            waiting.events.clear();
            let reset = PageEvent { sequence: event.sequence, change: Change::reset() };
            waiting.events.push_back(Arc::new(reset));
        }
        drop(waiting);
        self.come.notify_one();
    }

    /// Ends the stream; what waits in it is asked for again by whoever comes back.
    pub fn close(&self) {
        lock(&self.waiting).is_closed = true;
        self.come.notify_one();
    }

    /// The next event, once there is one; none at the end.
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
            self.come.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sequence: u64) -> Arc<PageEvent> {
        let change = Change { name: "job", topics: Vec::new(), data: "{}".to_owned() };
        Arc::new(PageEvent { sequence, change })
    }

    async fn all(queue: &Queue) -> Vec<(u64, &'static str)> {
        let mut all = Vec::new();
        while !lock(&queue.waiting).events.is_empty() {
            let event = queue.next().await.expect("it is not closed");
            all.push((event.sequence, event.change.name));
        }
        all
    }

    #[tokio::test]
    async fn a_reader_that_is_slow_is_told_to_ask_for_everything() {
        let (queue, places) = (Queue::default(), PLACES as u64);
        (1..=places).for_each(|sequence| queue.push(&event(sequence)));
        assert_eq!(all(&queue).await.last(), Some(&(places, "job")));
        (1..=places + 3).for_each(|sequence| queue.push(&event(sequence)));
        assert_eq!(
            all(&queue).await,
            [(places + 1, "reset"), (places + 2, "job"), (places + 3, "job")],
            "it costs more than its places, or goes on with a hole"
        );
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken_by_an_event_and_by_the_end() {
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
