//! What is another one than it was: the cluster, jobs, workers, queues.
//!
//! Owns what was seen last, and which events follow from what is seen now. Of a list that is seen for the
//! first time nothing has changed. Does not own asking (`watcher`) nor what is inside a job (`details`).

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

use napreduce_protocol::{JobSummary, QueueListing, WorkerSummary};
use serde_json::Value;

use super::event::Change;
use super::topic::Topic;
use crate::answers::{JobAnswer, QueuesAnswer, StatusAnswer, WorkerAnswer};

/// The lists as they were seen last.
#[derive(Debug, Default)]
pub struct SeenLists {
    lists: Option<Lists>,
    cluster: Value,
}

/// The jobs and the workers at a moment.
#[derive(Debug, Clone)]
pub struct Lists {
    pub jobs: Arc<Vec<JobSummary>>,
    pub workers: Arc<Vec<WorkerSummary>>,
}

impl SeenLists {
    /// What has changed since the last time; everything, in a `reset`, the first time.
    ///
    /// # Errors
    /// When JSON cannot say it.
    pub fn compare(&mut self, now: Lists) -> Result<Vec<Change>, serde_json::Error> {
        let Some(before) = self.lists.replace(now.clone()) else {
            self.cluster = at_a_glance(&now)?;
            return Ok(vec![Change::reset()]);
        };
        if Arc::ptr_eq(&before.jobs, &now.jobs) && Arc::ptr_eq(&before.workers, &now.workers) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        for job in differing(&before.jobs, &now.jobs, |job| job.job, PartialEq::ne) {
            let name = if job.ended_millis.is_some() { "ended" } else { "job" };
            changes.push(Change::of(name, vec![Topic::Jobs, Topic::Job(job.job)], &JobAnswer::from(job))?);
        }
        for worker in differing(&before.workers, &now.workers, |worker| worker.worker, is_other_worker) {
            changes.push(Change::of("worker", vec![Topic::Workers], &WorkerAnswer::from(worker))?);
        }
        let cluster = at_a_glance(&now)?;
        if cluster != self.cluster {
            changes.push(Change::of("cluster", vec![Topic::Cluster], &cluster)?);
            self.cluster = cluster;
        }
        Ok(changes)
    }

    /// The jobs as they were seen last.
    pub fn jobs(&self) -> &[JobSummary] {
        self.lists.as_ref().map_or(&[], |lists| &lists.jobs)
    }
}

/// The queues as they were seen last; nothing before the first time.
#[derive(Debug, Default)]
pub struct SeenShares(Value);

impl SeenShares {
    /// The queues, if they are others than the last time.
    ///
    /// # Errors
    /// When JSON cannot say it.
    pub fn compare(&mut self, now: &QueueListing) -> Result<Option<Change>, serde_json::Error> {
        let now = serde_json::to_value(QueuesAnswer::from(now))?;
        if now == self.0 {
            return Ok(None);
        }
        self.0 = now;
        Change::of("shares", vec![Topic::Shares], &self.0).map(Some)
    }
}

/// The cluster at a glance, without its jobs: they have events of their own, and why they wait is a question
/// to the coordinator.
fn at_a_glance(lists: &Lists) -> Result<Value, serde_json::Error> {
    let Ok(status) = StatusAnswer::of(&lists.workers, &lists.jobs, |_| Ok::<_, Infallible>(Vec::new()));
    let mut cluster = serde_json::to_value(StatusAnswer { current: Vec::new(), ..status })?;
    if let Some(fields) = cluster.as_object_mut() {
        fields.remove("current");
    }
    Ok(cluster)
}

/// Whether a worker is another one than it was. How long it has been silent changes all the time, and so does
/// what is free.
fn is_other_worker(before: &WorkerSummary, now: &WorkerSummary) -> bool {
    let apart = |worker: &WorkerSummary| {
        let mut apart = worker.clone();
        (apart.silent_millis, apart.memory.free_bytes) = (0, 0);
        apart
    };
    apart(before) != apart(now)
}

/// Of a list, the items that were not there before, or differ from what was.
pub fn differing<'now, T, K: Eq + Hash>(
    before: &[T],
    now: &'now [T],
    key: fn(&T) -> K,
    differ: fn(&T, &T) -> bool,
) -> Vec<&'now T> {
    // Most lists stay as they are from one end to the other.
    let same =
        before.iter().zip(now).take_while(|(before, now)| key(before) == key(now) && !differ(before, now));
    let same = same.count();
    let known: HashMap<K, &T> = before[same..].iter().map(|item| (key(item), item)).collect();
    let is_new = |item: &&T| known.get(&key(item)).is_none_or(|known| differ(known, item));
    now[same..].iter().filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{JobPhase, SlotsWanted, WorkerPhase};

    use super::*;
    use crate::answers::samples::{job, worker};

    fn lists(jobs: &[JobSummary], workers: &[WorkerSummary]) -> Lists {
        Lists { jobs: Arc::new(jobs.to_vec()), workers: Arc::new(workers.to_vec()) }
    }

    fn named(changes: &[Change]) -> Vec<(&'static str, Value)> {
        let data = |change: &Change| serde_json::from_str(&change.data).expect("JSON");
        changes.iter().map(|change| (change.name, data(change))).collect()
    }

    #[test]
    fn what_differs_is_an_event_with_the_object_of_rest() {
        let mut seen = SeenLists::default();
        let (eighth, up) = (job(8, JobPhase::Active, 1, 0), worker(1, WorkerPhase::Up, 1));
        let first = lists(
            &[eighth.clone(), job(7, JobPhase::Active, 1, 0)],
            &[up.clone(), worker(2, WorkerPhase::Up, 0)],
        );
        assert_eq!(seen.compare(first.clone()).expect("JSON"), [Change::reset()]);
        assert_eq!(seen.compare(first).expect("JSON"), []);
        let ninth = job(9, JobPhase::Active, 0, 0);
        let next = lists(
            &[ninth.clone(), eighth, job(7, JobPhase::Succeeded, 0, 0)],
            &[WorkerSummary { silent_millis: 900, ..up }, worker(2, WorkerPhase::Lost, 0)],
        );
        let changes = seen.compare(next).expect("JSON");
        let answer = serde_json::to_value(JobAnswer::from(&ninth)).expect("JSON");
        let told = named(&changes);
        assert_eq!(told[0], ("job", answer));
        assert_eq!(changes[0].topics, [Topic::Jobs, Topic::Job(ninth.job)]);
        assert_eq!((told[1].0, &told[1].1["state"]), ("ended", &"succeeded".into()));
        assert_eq!((told[2].0, &told[2].1["worker"]), ("worker", &"worker_0002".into()));
        assert_eq!((told[3].0, &told[3].1["jobs"]["active"]), ("cluster", &2.into()));
        assert!(told[3].1["current"].is_null() && told.len() == 4, "{told:?}");
    }

    #[test]
    fn queues_are_told_when_they_are_first_seen_and_when_they_are_others() {
        let mut seen = SeenShares::default();
        let listing = |scheduler: &str| QueueListing {
            scheduler: scheduler.to_owned(),
            queues: None,
            wanted: SlotsWanted::default(),
        };
        let mut told = |scheduler| {
            let change = seen.compare(&listing(scheduler)).expect("JSON");
            change.map(|change| (change.name, change.topics, change.data))
        };
        let fifo = r#"{"queues":null,"scheduler":"fifo"}"#.to_owned();
        assert_eq!(told("fifo"), Some(("shares", vec![Topic::Shares], fifo)));
        assert_eq!(told("fifo"), None);
        assert!(told("fair").is_some_and(|(.., data)| data.contains("fair")));
    }

    #[test]
    fn a_list_that_is_the_same_says_nothing_and_one_that_moves_says_what_is_new() {
        let key = |number: &u32| *number / 10;
        let differing = |before: &[u32], now: &'static [u32]| differing(before, now, key, PartialEq::ne);
        assert_eq!(differing(&[10, 20, 30], &[10, 20, 30]), Vec::<&u32>::new());
        assert_eq!(differing(&[10, 20, 30], &[40, 10, 21]), [&40, &21]);
        assert_eq!(differing(&[10, 20], &[20]), Vec::<&u32>::new());
    }
}
