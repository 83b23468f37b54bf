//! The hub: numbers changes and sends them to all streams. It keeps the last events for readers that reconnect, and limits
//! the number of streams.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use napreduce_protocol::lock;
use thiserror::Error;

use super::event::{Change, PageEvent};
use super::queue::Queue;
use super::topic::{Topic, Topics};

/// The most open streams: half of all connections stay free for requests.
pub const STREAMS_MAX: usize = 32;
/// Events kept for readers that reconnect.
pub const BACKLOG: usize = 10_000;

/// Why a stream cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubscribeError {
    #[error("too many open event streams (limit {STREAMS_MAX})")]
    Full,
    #[error("the server is stopping")]
    Closed,
}

/// The event hub.
#[derive(Debug)]
pub struct Hub {
    /// Distinguishes event numbers of this server from those of earlier ones.
    epoch: u64,
    feed: Mutex<Feed>,
    /// Signals that a stream was opened or the hub was closed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Feed {
    /// Number of the newest event.
    sequence: u64,
    backlog: VecDeque<Arc<PageEvent>>,
    open: Vec<Open>,
    opened: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Open {
    number: u64,
    topics: Topics,
    queue: Arc<Queue>,
}

impl Hub {
    pub fn new(epoch: u64) -> Hub {
        Hub {
            epoch,
            feed: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Opens a stream that starts after the event `last` if that is still known, otherwise now.
    ///
    /// # Errors
    /// Fails if there are too many streams, or the hub is closed.
    pub fn subscribe(
        self: &Arc<Hub>,
        topics: Topics,
        last: Option<&str>,
    ) -> Result<Subscription, SubscribeError> {
        let mut feed = lock(&self.feed);
        if feed.is_closed {
            return Err(SubscribeError::Closed);
        }
        if feed.open.len() >= STREAMS_MAX {
            return Err(SubscribeError::Full);
        }
        let queue = Arc::new(Queue::default());
        let known = last.map(|last| self.sequence(last).filter(|last| feed.follows(*last)));
        let from = match known {
            None => feed.sequence,
            Some(Some(last)) => {
                for event in feed.backlog.iter().filter(|event| event.sequence > last) {
                    if event.concerns(&topics) {
                        queue.push(event);
                    }
                }
                last
            }
            Some(None) => {
                let reset = PageEvent {
                    sequence: feed.sequence,
                    change: Change::reset(),
                };
                queue.push(&Arc::new(reset));
                feed.sequence
            }
        };
        feed.opened += 1;
        let number = feed.opened;
        feed.open.push(Open {
            number,
            topics,
            queue: queue.clone(),
        });
        drop(feed);
        self.changed.notify_all();
        Ok(Subscription {
            hub: self.clone(),
            number,
            queue,
            from,
        })
    }

    /// Numbers changes and sends them to the streams.
    pub fn publish(&self, changes: Vec<Change>) {
        let mut feed = lock(&self.feed);
        for change in changes {
            feed.sequence += 1;
            let event = Arc::new(PageEvent {
                sequence: feed.sequence,
                change,
            });
            for open in &feed.open {
                if event.concerns(&open.topics) {
                    open.queue.push(&event);
                }
            }
            feed.backlog.push_back(event);
            if feed.backlog.len() > BACKLOG {
                feed.backlog.pop_front();
            }
        }
    }

    /// Waits for an open stream; returns `false` if the hub is closed.
    pub fn wait_for_readers(&self) -> bool {
        let mut feed = lock(&self.feed);
        while feed.open.is_empty() && !feed.is_closed {
            feed = self
                .changed
                .wait(feed)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !feed.is_closed
    }

    /// Sleeps for `time`, or until the hub is closed.
    pub fn pause(&self, time: Duration) {
        let feed = lock(&self.feed);
        let is_open = |feed: &mut Feed| !feed.is_closed;
        drop(
            self.changed
                .wait_timeout_while(feed, time, is_open)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Returns the topics of all streams.
    pub fn topics(&self) -> Vec<Topic> {
        lock(&self.feed)
            .open
            .iter()
            .flat_map(|open| open.topics.iter())
            .copied()
            .collect()
    }

    /// Returns the number of open streams.
    pub fn readers(&self) -> usize {
        lock(&self.feed).open.len()
    }

    /// Ends all streams and rejects new ones.
    pub fn close(&self) {
        let mut feed = lock(&self.feed);
        feed.is_closed = true;
        for open in &feed.open {
            open.queue.close();
        }
        drop(feed);
        self.changed.notify_all();
    }

    /// Returns the event ID after which a reader can continue.
    pub fn id(&self, sequence: u64) -> String {
        format!("{:x}-{sequence}", self.epoch)
    }

    fn sequence(&self, id: &str) -> Option<u64> {
        let (epoch, sequence) = id.split_once('-')?;
        (u64::from_str_radix(epoch, 16) == Ok(self.epoch)).then(|| sequence.parse().ok())?
    }
}

impl Feed {
    /// Whether all events after `last` are still there.
    fn follows(&self, last: u64) -> bool {
        let oldest = self
            .backlog
            .front()
            .map_or(self.sequence + 1, |event| event.sequence);
        last <= self.sequence && last + 1 >= oldest
    }
}

/// A reader's stream, closed on drop.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    number: u64,
    queue: Arc<Queue>,
    from: u64,
}

impl Subscription {
    /// Returns the event ID after which the stream starts.
    pub fn from(&self) -> String {
        self.hub.id(self.from)
    }

    /// Waits for the next event and its ID; `None` at the end.
    pub async fn next(&self) -> Option<(String, Arc<PageEvent>)> {
        let event = self.queue.next().await?;
        Some((self.hub.id(event.sequence), event))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.hub.feed)
            .open
            .retain(|open| open.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::JobId;

    use super::*;

    fn change(topics: &[Topic], number: usize) -> Change {
        Change {
            name: "job",
            topics: topics.to_vec(),
            data: number.to_string(),
        }
    }

    fn hub() -> Arc<Hub> {
        Arc::new(Hub::new(0xabc))
    }

    fn subscribe(hub: &Arc<Hub>, topics: &str, last: Option<&str>) -> Subscription {
        hub.subscribe(topics.parse().expect("topics"), last)
            .expect("a place")
    }

    /// Reads the stream up to an end event.
    async fn received(hub: &Arc<Hub>, subscription: &Subscription) -> Vec<(String, String)> {
        hub.publish(vec![Change {
            name: "end",
            ..Change::reset()
        }]);
        let mut received = Vec::new();
        loop {
            let (id, event) = subscription.next().await.expect("an event");
            match event.change.name {
                "end" => return received,
                "reset" => received.push((id, "reset".to_owned())),
                _ => received.push((id, event.change.data.clone())),
            }
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(id, data)| ((*id).to_owned(), (*data).to_owned()))
            .collect()
    }

    #[tokio::test]
    async fn events_are_numbered_and_sent_by_topic() {
        let hub = hub();
        let jobs = subscribe(&hub, "jobs", None);
        let seventh = subscribe(&hub, "job:job_0007,workers", None);
        assert_eq!(jobs.from(), "abc-0");
        let both = [Topic::Jobs, Topic::Job(JobId(7))];
        hub.publish(vec![
            change(&both, 1),
            change(&[Topic::Jobs], 2),
            change(&[Topic::Workers], 3),
        ]);
        assert_eq!(
            received(&hub, &jobs).await,
            pairs(&[("abc-1", "1"), ("abc-2", "2")])
        );
        assert_eq!(
            received(&hub, &seventh).await,
            pairs(&[("abc-1", "1"), ("abc-3", "3")])
        );
        assert_eq!(
            hub.topics(),
            [Topic::Jobs, Topic::Job(JobId(7)), Topic::Workers]
        );
    }

    #[tokio::test]
    async fn reconnected_reader_receives_missed_events() {
        let hub = hub();
        hub.publish(
            (1..=9)
                .map(|number| change(&[Topic::Jobs], number))
                .collect(),
        );
        hub.publish(vec![change(&[Topic::Workers], 10)]);
        let back = subscribe(&hub, "jobs", Some("abc-7"));
        assert_eq!(back.from(), "abc-7");
        assert_eq!(
            received(&hub, &back).await,
            pairs(&[("abc-8", "8"), ("abc-9", "9")])
        );
        let newest = subscribe(&hub, "jobs", Some("abc-11"));
        assert_eq!(received(&hub, &newest).await, []);
        for unknown in ["abc-13", "abd-7", "7", "", "abc-", "abc-x"] {
            let reset = subscribe(&hub, "jobs", Some(unknown));
            let received = received(&hub, &reset).await;
            assert!(
                matches!(&received[..], [(id, reset)] if reset == "reset" && *id == reset_id(&hub)),
                "{unknown}"
            );
        }
    }

    /// The ID of a reset before the end event.
    fn reset_id(hub: &Hub) -> String {
        hub.id(lock(&hub.feed).sequence - 1)
    }

    #[tokio::test]
    async fn dropped_events_cause_a_reset() {
        let hub = hub();
        hub.publish(
            (1..=BACKLOG + 5)
                .map(|number| change(&[Topic::Workers], number))
                .collect(),
        );
        assert_eq!(lock(&hub.feed).backlog.len(), BACKLOG);
        let kept = subscribe(&hub, "jobs", Some("abc-5"));
        let lost = subscribe(&hub, "jobs", Some("abc-4"));
        assert_eq!(received(&hub, &kept).await, []);
        assert_eq!(
            received(&hub, &lost).await,
            pairs(&[("abc-10005", "reset")])
        );
    }

    #[test]
    fn streams_are_limited_and_released() {
        let hub = hub();
        let mut all: Vec<Subscription> = (0..STREAMS_MAX)
            .map(|_| subscribe(&hub, "jobs", None))
            .collect();
        let next = || hub.subscribe(Topics::default(), None);
        assert_eq!(next().err(), Some(SubscribeError::Full));
        all.pop();
        assert_eq!(hub.readers(), STREAMS_MAX - 1);
        assert!(next().is_ok());
        hub.close();
        assert_eq!(next().err(), Some(SubscribeError::Closed));
        assert!(!hub.wait_for_readers());
    }
}
