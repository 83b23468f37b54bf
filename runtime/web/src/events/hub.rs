//! Where changes become events, and go to all who listen.
//!
//! Owns their numbers, the last of them for whoever comes back after a break, and how many may listen. Does
//! not own what has changed (`changes`), nor how it is sent (`routes`).

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;

use super::event::{Change, PageEvent};
use super::queue::Queue;
use super::topic::{Topic, Topics};
use crate::lock::lock;

/// Streams at a time. Half of all connections are left for questions.
pub const STREAMS_MAX: usize = 32;
/// Events that are kept for whoever comes back.
pub const BACKLOG: usize = 10_000;

/// Why nobody can listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubscribeError {
    #[error("{STREAMS_MAX} streams are open already, which is as many as there may be")]
    Full,
    #[error("the server ends")]
    Closed,
}

/// All events and all who listen.
#[derive(Debug)]
pub struct Hub {
    /// Tells apart the numbers of this server from those of one before.
    epoch: u64,
    feed: Mutex<Feed>,
    /// Somebody listens, or nobody ever will again.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Feed {
    /// Of the newest event.
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
        Hub { epoch, feed: Mutex::default(), changed: Condvar::new() }
    }

    /// Lets somebody listen: from the event after `last` on if that is still known, else from now on.
    ///
    /// # Errors
    /// When nobody else may.
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
                let missed = feed.backlog.iter().filter(|event| event.sequence > last);
                missed.filter(|event| event.concerns(&topics)).for_each(|event| queue.push(event));
                last
            }
            Some(None) => {
                let reset = PageEvent { sequence: feed.sequence, change: Change::reset() };
                queue.push(&Arc::new(reset));
                feed.sequence
            }
        };
        feed.opened += 1;
        let number = feed.opened;
        feed.open.push(Open { number, topics, queue: queue.clone() });
        drop(feed);
        self.changed.notify_all();
        Ok(Subscription { hub: self.clone(), number, queue, from })
    }

    /// Numbers changes, and passes them on.
    pub fn publish(&self, changes: Vec<Change>) {
        let mut feed = lock(&self.feed);
        for change in changes {
            feed.sequence += 1;
            let event = Arc::new(PageEvent { sequence: feed.sequence, change });
            let concerned = feed.open.iter().filter(|open| event.concerns(&open.topics));
            concerned.for_each(|open| open.queue.push(&event));
            feed.backlog.push_back(event);
            if feed.backlog.len() > BACKLOG {
                feed.backlog.pop_front();
            }
        }
    }

    /// Waits until somebody listens; whether anybody does, or never again will.
    pub fn wait_for_readers(&self) -> bool {
        let mut feed = lock(&self.feed);
        while feed.open.is_empty() && !feed.is_closed {
            feed = self.changed.wait(feed).unwrap_or_else(PoisonError::into_inner);
        }
        !feed.is_closed
    }

    /// Lets time pass, unless this is the end.
    pub fn pause(&self, time: Duration) {
        let feed = lock(&self.feed);
        let goes_on = |feed: &mut Feed| !feed.is_closed;
        drop(self.changed.wait_timeout_while(feed, time, goes_on).unwrap_or_else(PoisonError::into_inner));
    }

    /// What somebody wants to hear of.
    pub fn topics(&self) -> Vec<Topic> {
        lock(&self.feed).open.iter().flat_map(|open| open.topics.iter()).copied().collect()
    }

    /// How many listen.
    pub fn readers(&self) -> usize {
        lock(&self.feed).open.len()
    }

    /// Ends all streams. Nobody listens after that.
    pub fn close(&self) {
        let mut feed = lock(&self.feed);
        feed.is_closed = true;
        feed.open.iter().for_each(|open| open.queue.close());
        drop(feed);
        self.changed.notify_all();
    }

    /// What a reader says to go on after an event.
    pub fn id(&self, sequence: u64) -> String {
        format!("{:x}-{sequence}", self.epoch)
    }

    fn sequence(&self, id: &str) -> Option<u64> {
        let (epoch, sequence) = id.split_once('-')?;
        (u64::from_str_radix(epoch, 16) == Ok(self.epoch)).then(|| sequence.parse().ok())?
    }
}

impl Feed {
    /// Whether all that came after an event is still there.
    fn follows(&self, last: u64) -> bool {
        let oldest = self.backlog.front().map_or(self.sequence + 1, |event| event.sequence);
        last <= self.sequence && last + 1 >= oldest
    }
}

/// A reader's place; it is free again when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    number: u64,
    queue: Arc<Queue>,
    from: u64,
}

impl Subscription {
    /// After which event it goes on, as its reader says it.
    pub fn from(&self) -> String {
        self.hub.id(self.from)
    }

    /// The next event and its ID, once there is one; none at the end.
    pub async fn next(&self) -> Option<(String, Arc<PageEvent>)> {
        let event = self.queue.next().await?;
        Some((self.hub.id(event.sequence), event))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.hub.feed).open.retain(|open| open.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::JobId;

    use super::*;

    fn change(topics: &[Topic], number: usize) -> Change {
        Change { name: "job", topics: topics.to_vec(), data: number.to_string() }
    }

    fn hub() -> Arc<Hub> {
        Arc::new(Hub::new(0xabc))
    }

    fn subscribe(hub: &Arc<Hub>, topics: &str, last: Option<&str>) -> Subscription {
        hub.subscribe(topics.parse().expect("topics"), last).expect("a place")
    }

    /// What it is sent, up to an event of its own that ends the test.
    async fn heard(hub: &Arc<Hub>, subscription: &Subscription) -> Vec<(String, String)> {
        hub.publish(vec![Change { name: "end", ..Change::reset() }]);
        let mut heard = Vec::new();
        loop {
            let (id, event) = subscription.next().await.expect("it goes on");
            match event.change.name {
                "end" => return heard,
                "reset" => heard.push((id, "reset".to_owned())),
                _ => heard.push((id, event.change.data.clone())),
            }
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(id, data)| ((*id).to_owned(), (*data).to_owned())).collect()
    }

    #[tokio::test]
    async fn events_are_numbered_and_go_to_whom_they_concern() {
        let hub = hub();
        let (jobs, seventh) = (subscribe(&hub, "jobs", None), subscribe(&hub, "job:job_0007,workers", None));
        assert_eq!(jobs.from(), "abc-0");
        let both = [Topic::Jobs, Topic::Job(JobId(7))];
        hub.publish(vec![change(&both, 1), change(&[Topic::Jobs], 2), change(&[Topic::Workers], 3)]);
        assert_eq!(heard(&hub, &jobs).await, pairs(&[("abc-1", "1"), ("abc-2", "2")]));
        assert_eq!(heard(&hub, &seventh).await, pairs(&[("abc-1", "1"), ("abc-3", "3")]));
        assert_eq!(hub.topics(), [Topic::Jobs, Topic::Job(JobId(7)), Topic::Workers]);
    }

    #[tokio::test]
    async fn whoever_comes_back_hears_what_was_missed() {
        let hub = hub();
        hub.publish((1..=9).map(|number| change(&[Topic::Jobs], number)).collect());
        hub.publish(vec![change(&[Topic::Workers], 10)]);
        let back = subscribe(&hub, "jobs", Some("abc-7"));
        assert_eq!(back.from(), "abc-7");
        assert_eq!(heard(&hub, &back).await, pairs(&[("abc-8", "8"), ("abc-9", "9")]));
        let newest = subscribe(&hub, "jobs", Some("abc-11"));
        assert_eq!(heard(&hub, &newest).await, []);
        for unknown in ["abc-13", "abd-7", "7", "", "abc-", "abc-x"] {
            let reset = subscribe(&hub, "jobs", Some(unknown));
            let heard = heard(&hub, &reset).await;
            assert!(
                matches!(&heard[..], [(id, reset)] if reset == "reset" && *id == reset_id(&hub)),
                "{unknown}"
            );
        }
    }

    /// Of a reset before the event that ended the test.
    fn reset_id(hub: &Hub) -> String {
        hub.id(lock(&hub.feed).sequence - 1)
    }

    #[tokio::test]
    async fn what_is_too_long_ago_is_not_sent_again() {
        let hub = hub();
        hub.publish((1..=BACKLOG + 5).map(|number| change(&[Topic::Workers], number)).collect());
        assert_eq!(lock(&hub.feed).backlog.len(), BACKLOG);
        let (kept, lost) = (subscribe(&hub, "jobs", Some("abc-5")), subscribe(&hub, "jobs", Some("abc-4")));
        assert_eq!(heard(&hub, &kept).await, []);
        assert_eq!(heard(&hub, &lost).await, pairs(&[("abc-10005", "reset")]));
    }

    #[test]
    fn places_are_counted_and_given_back() {
        let hub = hub();
        let mut all: Vec<Subscription> = (0..STREAMS_MAX).map(|_| subscribe(&hub, "jobs", None)).collect();
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
