//! Tests of the watcher with a scripted cluster: when and how often it polls, and what it reports when the
//! cluster disappears and returns.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_answers::samples::{detail, job};
use napreduce_engine::{AttemptId, JobId, Reason, TaskId};
use napreduce_protocol::{
    JobDetail, JobPhase, JobSummary, LogStream, QueueListing, SlotsWanted, TaskSummary,
    WorkerSummary,
};
use tokio::time::timeout;

use super::*;
use crate::source::SourceError;

const DEADLINE: Duration = Duration::from_secs(30);

/// A cluster with one job, whose number of running maps equals the number of polls. It reports each poll.
#[derive(Debug)]
struct Scripted {
    polls: AtomicU32,
    changes: AtomicBool,
    is_away: AtomicBool,
    reports: Mutex<Sender<u32>>,
}

impl Scripted {
    fn new() -> (Arc<Scripted>, Receiver<u32>) {
        let (reports, polled) = channel();
        let scripted = Scripted {
            polls: AtomicU32::new(0),
            changes: AtomicBool::new(true),
            is_away: AtomicBool::new(false),
            reports: Mutex::new(reports),
        };
        (Arc::new(scripted), polled)
    }

    fn summary(&self) -> JobSummary {
        let running = if self.changes.load(SeqCst) {
            self.polls.load(SeqCst)
        } else {
            1
        };
        job(7, JobPhase::Running, running, 0)
    }
}

fn absent<T>() -> Result<T, SourceError> {
    Err(SourceError::Absent("not used in this test".to_owned()))
}

impl PageSource for Scripted {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        let polls = self.polls.fetch_add(1, SeqCst) + 1;
        // The test may have ended.
        let _ = self.reports.lock().expect("no test panicked").send(polls);
        if self.is_away.load(SeqCst) {
            Err(SourceError::Unavailable("no coordinator".to_owned()))
        } else {
            Ok(Arc::new(vec![self.summary()]))
        }
    }

    fn job(&self, _: JobId) -> Result<Arc<JobDetail>, SourceError> {
        Ok(Arc::new(JobDetail {
            summary: self.summary(),
            ..detail()
        }))
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        Ok(Arc::default())
    }

    /// Returns a different result after each poll.
    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        let scheduler = format!("policy {}", self.polls.load(SeqCst));
        Ok(Arc::new(QueueListing {
            scheduler,
            queues: None,
            wanted: SlotsWanted::default(),
        }))
    }

    fn tasks(&self, _: JobId) -> Result<Arc<Vec<TaskSummary>>, SourceError> {
        absent()
    }

    fn explain(&self, _: JobId, _: Option<TaskId>) -> Result<Vec<Reason>, SourceError> {
        absent()
    }

    fn log(&self, _: AttemptId, _: LogStream, _: u64, _: u64) -> Result<Vec<u8>, SourceError> {
        absent()
    }
}

fn subscribe(events: &Events, topics: &str) -> Subscription {
    events
        .hub
        .subscribe(topics.parse().expect("topics"), None)
        .expect("a place")
}

async fn next(subscription: &Subscription) -> (String, &'static str) {
    let event = timeout(DEADLINE, subscription.next())
        .await
        .expect("an event in time");
    let (id, event) = event.expect("an event");
    (id, event.change.name)
}

async fn until(subscription: &Subscription, name: &str) {
    while next(subscription).await.1 != name {}
}

#[tokio::test]
async fn cluster_is_not_polled_without_readers() {
    let (source, polled) = Scripted::new();
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    assert_eq!(polled.recv_timeout(DEADLINE), Ok(1));
    until(&reader, "job").await;
    drop(reader);
    // A started poll finishes; then there is no further one.
    while polled.recv_timeout(Duration::from_millis(700)).is_ok() {
        assert!(source.polls.load(SeqCst) < 10, "polled without readers");
    }
    let before = source.polls.load(SeqCst);
    let _reader = subscribe(&events, "jobs");
    assert_eq!(
        polled.recv_timeout(DEADLINE),
        Ok(before + 1),
        "not polled for the next reader"
    );
}

#[tokio::test]
async fn changing_object_is_sent_four_times_a_second() {
    let (source, _polled) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "jobs");
    until(&reader, "job").await;
    let begun = Instant::now();
    for _ in 0..4 {
        assert_eq!(next(&reader).await.1, "job");
    }
    let took = begun.elapsed();
    // The first event may have been queued before.
    assert!(
        took >= Duration::from_millis(750),
        "four events within {took:?}"
    );
}

#[tokio::test]
async fn queues_are_sampled_once_a_second() {
    let (source, _polled) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "shares");
    assert_eq!(next(&reader).await.1, "reset", "the first poll");
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(next(&reader).await.1, "shares");
    }
    let took = begun.elapsed();
    // The first sample may have been queued before.
    assert!(
        took >= Duration::from_millis(1_900),
        "three samples within {took:?}"
    );
}

#[tokio::test]
async fn many_readers_share_one_poll() {
    let (source, _polled) = Scripted::new();
    let events = Events::start(source.clone()).expect("a thread");
    let readers: Vec<Subscription> = (0..20)
        .map(|_| subscribe(&events, "jobs,job:job_0007"))
        .collect();
    let begun = Instant::now();
    for reader in &readers {
        until(reader, "job").await;
    }
    let polls = source.polls.load(SeqCst);
    let most = 2 + begun.elapsed().as_millis() / 250;
    assert!(
        u128::from(polls) <= most,
        "{polls} polls for {} readers",
        readers.len()
    );
}

#[tokio::test]
async fn stream_survives_coordinator_restart() {
    let (source, polled) = Scripted::new();
    source.changes.store(false, SeqCst);
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    assert_eq!(next(&reader).await.1, "reset", "the first poll");
    source.is_away.store(true, SeqCst);
    assert_eq!(next(&reader).await.1, "reset", "the cluster is away");
    let away = source.polls.load(SeqCst);
    while polled.recv_timeout(DEADLINE).expect("polling continues") < away + 2 {}
    source.changes.store(true, SeqCst);
    source.is_away.store(false, SeqCst);
    assert_eq!(next(&reader).await.1, "job", "the change while it was away");
    assert_eq!(next(&reader).await.1, "reset", "the cluster is back");
}

#[tokio::test]
async fn reconnected_reader_receives_changes_without_readers() {
    let (source, polled) = Scripted::new();
    source.changes.store(false, SeqCst);
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    let (id, name) = next(&reader).await;
    assert_eq!(name, "reset");
    drop(reader);
    while polled.recv_timeout(Duration::from_millis(700)).is_ok() {}
    source.changes.store(true, SeqCst);
    let back = events
        .hub
        .subscribe("jobs".parse().expect("topics"), Some(&id))
        .expect("a place");
    assert_eq!(next(&back).await.1, "job");
}

#[tokio::test]
async fn close_ends_every_stream() {
    let (source, _polled) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "jobs");
    events.close();
    assert_eq!(
        timeout(DEADLINE, reader.next()).await.expect("in time"),
        None
    );
    assert_eq!(
        events.hub.subscribe(Topics::default(), None).err(),
        Some(SubscribeError::Closed)
    );
}
