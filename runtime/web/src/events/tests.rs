//! The watcher over a cluster that does what a test says.
//!
//! Owns when it is asked, how often, and what is told of a cluster that goes and comes back. Does not own
//! what a change is (`changes`, `details`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use napreduce_engine::{AttemptId, JobId, Reason, TaskId};
use napreduce_protocol::{
    JobDetail, JobPhase, JobSummary, LogStream, QueueListing, SlotsWanted, TaskSummary, WorkerSummary,
};
use tokio::time::timeout;

use super::*;
use crate::answers::samples::{detail, job};
use crate::source::{OperatorCommand, SourceError};

const DEADLINE: Duration = Duration::from_secs(30);

/// A cluster with one job, of which as many maps run as were asked for how often; it says when it is asked
/// for its jobs.
#[derive(Debug)]
struct Scripted {
    asked: AtomicU32,
    changes: AtomicBool,
    is_away: AtomicBool,
    looks: Mutex<Sender<u32>>,
}

impl Scripted {
    fn new() -> (Arc<Scripted>, Receiver<u32>) {
        let (looks, looked) = channel();
        let scripted = Scripted {
            asked: AtomicU32::new(0),
            changes: AtomicBool::new(true),
            is_away: AtomicBool::new(false),
            looks: Mutex::new(looks),
        };
        (Arc::new(scripted), looked)
    }

    fn summary(&self) -> JobSummary {
        let running = if self.changes.load(SeqCst) { self.asked.load(SeqCst) } else { 1 };
        job(7, JobPhase::Active, running, 0)
    }
}

fn absent<T>() -> Result<T, SourceError> {
    Err(SourceError::Absent("this test asks for nothing else".to_owned()))
}

impl PageSource for Scripted {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn is_live(&self) -> bool {
        true
    }

    fn jobs(&self) -> Result<Arc<Vec<JobSummary>>, SourceError> {
        let asked = self.asked.fetch_add(1, SeqCst) + 1;
        // A test that has ended looks no more.
        let _ = self.looks.lock().expect("no test panicked").send(asked);
        match self.is_away.load(SeqCst) {
            true => Err(SourceError::Unavailable("nobody answers".to_owned())),
            false => Ok(Arc::new(vec![self.summary()])),
        }
    }

    fn job(&self, _: JobId) -> Result<Arc<JobDetail>, SourceError> {
        Ok(Arc::new(JobDetail { summary: self.summary(), ..detail() }))
    }

    fn workers(&self) -> Result<Arc<Vec<WorkerSummary>>, SourceError> {
        Ok(Arc::default())
    }

    /// Others each time that its jobs were asked for.
    fn queues(&self) -> Result<Arc<QueueListing>, SourceError> {
        let scheduler = format!("of moment {}", self.asked.load(SeqCst));
        Ok(Arc::new(QueueListing { scheduler, queues: None, wanted: SlotsWanted::default() }))
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

    fn order(&self, _: &OperatorCommand, _: &str) -> Result<Vec<AttemptId>, SourceError> {
        absent()
    }
}

fn subscribe(events: &Events, topics: &str) -> Subscription {
    events.hub.subscribe(topics.parse().expect("topics"), None).expect("a place")
}

async fn next(subscription: &Subscription) -> (String, &'static str) {
    let event = timeout(DEADLINE, subscription.next()).await.expect("an event in time");
    let (id, event) = event.expect("it goes on");
    (id, event.change.name)
}

async fn until(subscription: &Subscription, name: &str) {
    while next(subscription).await.1 != name {}
}

#[tokio::test]
async fn nobody_is_asked_while_nobody_listens() {
    let (source, looked) = Scripted::new();
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    assert_eq!(looked.recv_timeout(DEADLINE), Ok(1));
    until(&reader, "job").await;
    drop(reader);
    // A look that has begun ends; then there is none.
    while looked.recv_timeout(Duration::from_millis(700)).is_ok() {
        assert!(source.asked.load(SeqCst) < 10, "it looks though nobody listens");
    }
    let before = source.asked.load(SeqCst);
    let _reader = subscribe(&events, "jobs");
    assert_eq!(looked.recv_timeout(DEADLINE), Ok(before + 1), "nobody looks for the next reader");
}

#[tokio::test]
async fn an_object_that_changes_all_the_time_is_told_four_times_a_second() {
    let (source, _looked) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "jobs");
    until(&reader, "job").await;
    let begun = Instant::now();
    for _ in 0..4 {
        assert_eq!(next(&reader).await.1, "job");
    }
    let took = begun.elapsed();
    // The first of them may wait already.
    assert!(took >= Duration::from_millis(750), "four events came within {took:?}");
}

#[tokio::test]
async fn queues_are_sampled_once_a_second_for_who_wants_them() {
    let (source, _looked) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "shares");
    assert_eq!(next(&reader).await.1, "reset", "the first look");
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(next(&reader).await.1, "shares");
    }
    let took = begun.elapsed();
    // The first of them may wait already.
    assert!(took >= Duration::from_millis(1_900), "three samples came within {took:?}");
}

#[tokio::test]
async fn many_readers_cost_no_more_than_one() {
    let (source, _looked) = Scripted::new();
    let events = Events::start(source.clone()).expect("a thread");
    let readers: Vec<Subscription> = (0..20).map(|_| subscribe(&events, "jobs,job:job_0007")).collect();
    let begun = Instant::now();
    for reader in &readers {
        until(reader, "job").await;
    }
    let (asked, most) = (source.asked.load(SeqCst), 2 + begun.elapsed().as_millis() / 250);
    assert!(u128::from(asked) <= most, "{asked} questions for {} readers", readers.len());
}

#[tokio::test]
async fn a_cluster_that_goes_and_comes_back_is_asked_for_anew_and_nothing_is_missed() {
    let (source, looked) = Scripted::new();
    source.changes.store(false, SeqCst);
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    assert_eq!(next(&reader).await.1, "reset", "the first look");
    source.is_away.store(true, SeqCst);
    assert_eq!(next(&reader).await.1, "reset", "it is gone");
    let gone = source.asked.load(SeqCst);
    while looked.recv_timeout(DEADLINE).expect("it is asked all the same") < gone + 2 {}
    source.changes.store(true, SeqCst);
    source.is_away.store(false, SeqCst);
    assert_eq!(next(&reader).await.1, "job", "what happened meanwhile");
    assert_eq!(next(&reader).await.1, "reset", "it is back");
}

#[tokio::test]
async fn whoever_comes_back_after_a_time_when_nobody_listened_hears_what_happened_then() {
    let (source, looked) = Scripted::new();
    source.changes.store(false, SeqCst);
    let events = Events::start(source.clone()).expect("a thread");
    let reader = subscribe(&events, "jobs");
    let (id, name) = next(&reader).await;
    assert_eq!(name, "reset");
    drop(reader);
    while looked.recv_timeout(Duration::from_millis(700)).is_ok() {}
    source.changes.store(true, SeqCst);
    let back = events.hub.subscribe("jobs".parse().expect("topics"), Some(&id)).expect("a place");
    assert_eq!(next(&back).await.1, "job");
}

#[tokio::test]
async fn the_end_of_the_server_ends_every_stream() {
    let (source, _looked) = Scripted::new();
    let events = Events::start(source).expect("a thread");
    let reader = subscribe(&events, "jobs");
    events.close();
    assert_eq!(timeout(DEADLINE, reader.next()).await.expect("in time"), None);
    assert_eq!(events.hub.subscribe(Topics::default(), None).err(), Some(SubscribeError::Closed));
}
