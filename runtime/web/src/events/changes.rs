//! Changes of the cluster, its jobs, workers and queues between two polls.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

use napreduce_answers::{JobAnswer, QueuesAnswer, StatusAnswer, WorkerAnswer};
use napreduce_protocol::{JobSummary, QueueListing, WorkerMemory, WorkerSummary};
use serde_json::Value;

use super::event::Change;
use super::topic::Topic;

/// The lists of the last poll.
#[derive(Debug, Default)]
pub struct LastLists {
    lists: Option<Lists>,
    cluster: Value,
}

/// The jobs and the workers at one time.
#[derive(Debug, Clone)]
pub struct Lists {
    pub jobs: Arc<Vec<JobSummary>>,
    pub workers: Arc<Vec<WorkerSummary>>,
}

impl LastLists {
    /// Returns the changes since the last poll; the first time, a `reset`.
    ///
    /// # Errors
    /// Fails if an object cannot be serialized.
    pub fn compare(&mut self, now: Lists) -> Result<Vec<Change>, serde_json::Error> {
        let Some(before) = self.lists.replace(now.clone()) else {
            self.cluster = cluster_status(&now)?;
            return Ok(vec![Change::reset()]);
        };
        if Arc::ptr_eq(&before.jobs, &now.jobs) && Arc::ptr_eq(&before.workers, &now.workers) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        for job in differing(&before.jobs, &now.jobs, |job| job.job, PartialEq::ne) {
            let name = if job.ended_millis.is_some() {
                "ended"
            } else {
                "job"
            };
            changes.push(Change::new(
                name,
                vec![Topic::Jobs, Topic::Job(job.job)],
                &JobAnswer::from(job),
            )?);
        }
        for worker in differing(
            &before.workers,
            &now.workers,
            |worker| worker.worker,
            worker_differs,
        ) {
            changes.push(Change::new(
                "worker",
                vec![Topic::Workers],
                &WorkerAnswer::from(worker),
            )?);
        }
        let cluster = cluster_status(&now)?;
        if cluster != self.cluster {
            changes.push(Change::new("cluster", vec![Topic::Cluster], &cluster)?);
            self.cluster = cluster;
        }
        Ok(changes)
    }

    /// Returns the jobs of the last poll.
    pub fn jobs(&self) -> &[JobSummary] {
        self.lists.as_ref().map_or(&[], |lists| &lists.jobs)
    }
}

/// The queues of the last poll.
#[derive(Debug, Default)]
pub struct LastQueues(Value);

impl LastQueues {
    /// Returns the queues if they have changed.
    ///
    /// # Errors
    /// Fails if an object cannot be serialized.
    pub fn compare(&mut self, now: &QueueListing) -> Result<Option<Change>, serde_json::Error> {
        let now = serde_json::to_value(QueuesAnswer::from(now))?;
        if now == self.0 {
            return Ok(None);
        }
        self.0 = now;
        Change::new("shares", vec![Topic::Shares], &self.0).map(Some)
    }
}

/// Returns the status of the cluster without its jobs, which have events of their own; their explanations would be
/// requests to the coordinator.
fn cluster_status(lists: &Lists) -> Result<Value, serde_json::Error> {
    let Ok(status) = StatusAnswer::of(&lists.workers, &lists.jobs, |_| {
        Ok::<_, Infallible>(Vec::new())
    });
    let mut cluster = serde_json::to_value(StatusAnswer {
        current: Vec::new(),
        ..status
    })?;
    if let Some(fields) = cluster.as_object_mut() {
        fields.remove("current");
    }
    Ok(cluster)
}

/// Whether a worker has changed, apart from the time since its last message and its memory and disk, which always
/// change.
fn worker_differs(before: &WorkerSummary, now: &WorkerSummary) -> bool {
    let stable = |worker: &WorkerSummary| {
        let mut stable = worker.clone();
        stable.silent_millis = 0;
        stable.memory = WorkerMemory {
            suspended: stable.memory.suspended,
            ..WorkerMemory::default()
        };
        stable
    };
    stable(before) != stable(now)
}

/// Returns the items of `now` that are new or differ from `before`.
pub fn differing<'now, T, K: Eq + Hash>(
    before: &[T],
    now: &'now [T],
    key: fn(&T) -> K,
    differ: fn(&T, &T) -> bool,
) -> Vec<&'now T> {
    // Usually most of the list is unchanged.
    let same = before
        .iter()
        .zip(now)
        .take_while(|(before, now)| key(before) == key(now) && !differ(before, now));
    let same = same.count();
    let known: HashMap<K, &T> = before[same..]
        .iter()
        .map(|item| (key(item), item))
        .collect();
    let is_new = |item: &&T| {
        known
            .get(&key(item))
            .is_none_or(|known| differ(known, item))
    };
    now[same..].iter().filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use napreduce_answers::samples::{job, worker};
    use napreduce_protocol::{JobPhase, SlotsWanted, WorkerPhase};

    use super::*;

    fn lists(jobs: &[JobSummary], workers: &[WorkerSummary]) -> Lists {
        Lists {
            jobs: Arc::new(jobs.to_vec()),
            workers: Arc::new(workers.to_vec()),
        }
    }

    fn named(changes: &[Change]) -> Vec<(&'static str, Value)> {
        let data = |change: &Change| serde_json::from_str(&change.data).expect("JSON");
        changes
            .iter()
            .map(|change| (change.name, data(change)))
            .collect()
    }

    #[test]
    fn changed_objects_become_events() {
        let mut last = LastLists::default();
        let eighth = job(8, JobPhase::Running, 1, 0);
        let up = worker(1, WorkerPhase::Up, 1);
        let first = lists(
            &[eighth.clone(), job(7, JobPhase::Running, 1, 0)],
            &[up.clone(), worker(2, WorkerPhase::Up, 0)],
        );
        assert_eq!(
            last.compare(first.clone()).expect("JSON"),
            [Change::reset()]
        );
        assert_eq!(last.compare(first).expect("JSON"), []);
        let ninth = job(9, JobPhase::Running, 0, 0);
        let next = lists(
            &[ninth.clone(), eighth, job(7, JobPhase::Succeeded, 0, 0)],
            &[
                WorkerSummary {
                    silent_millis: 900,
                    ..up
                },
                worker(2, WorkerPhase::Lost, 0),
            ],
        );
        let changes = last.compare(next).expect("JSON");
        let answer = serde_json::to_value(JobAnswer::from(&ninth)).expect("JSON");
        let events = named(&changes);
        assert_eq!(events[0], ("job", answer));
        assert_eq!(changes[0].topics, [Topic::Jobs, Topic::Job(ninth.job)]);
        assert_eq!(
            (events[1].0, &events[1].1["state"]),
            ("ended", &"succeeded".into())
        );
        assert_eq!(
            (events[2].0, &events[2].1["worker"]),
            ("worker", &"worker_0002".into())
        );
        assert_eq!(
            (events[3].0, &events[3].1["jobs"]["running"]),
            ("cluster", &2.into())
        );
        assert!(
            events[3].1["current"].is_null() && events.len() == 4,
            "{events:?}"
        );
    }

    #[test]
    fn queues_are_sent_at_first_and_when_changed() {
        let mut last = LastQueues::default();
        let listing = |scheduler: &str| QueueListing {
            scheduler: scheduler.to_owned(),
            queues: None,
            wanted: SlotsWanted::default(),
        };
        let mut compare = |scheduler| {
            let change = last.compare(&listing(scheduler)).expect("JSON");
            change.map(|change| (change.name, change.topics, change.data))
        };
        let fifo = r#"{"queues":null,"scheduler":"fifo"}"#.to_owned();
        assert_eq!(compare("fifo"), Some(("shares", vec![Topic::Shares], fifo)));
        assert_eq!(compare("fifo"), None);
        assert!(compare("fair").is_some_and(|(.., data)| data.contains("fair")));
    }

    #[test]
    fn differing_returns_new_and_changed_items() {
        let key = |number: &u32| *number / 10;
        let differing =
            |before: &[u32], now: &'static [u32]| differing(before, now, key, PartialEq::ne);
        assert_eq!(differing(&[10, 20, 30], &[10, 20, 30]), Vec::<&u32>::new());
        assert_eq!(differing(&[10, 20, 30], &[40, 10, 21]), [&40, &21]);
        assert_eq!(differing(&[10, 20], &[20]), Vec::<&u32>::new());
    }
}
