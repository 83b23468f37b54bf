//! Queues of the scheduler, and the users of one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use napreduce_protocol::{JobSummary, QueueListing, QueueSlots, QueueSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// The queues of a scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueuesAnswer {
    pub scheduler: String,
    /// Parents precede their children; `null` if the scheduler has no queues.
    pub queues: Option<Vec<QueueAnswer>>,
}

impl From<&QueueListing> for QueuesAnswer {
    fn from(listing: &QueueListing) -> QueuesAnswer {
        QueuesAnswer {
            scheduler: listing.scheduler.clone(),
            queues: listing
                .queues
                .as_ref()
                .map(|queues| queues.iter().map(QueueAnswer::from).collect()),
        }
    }
}

/// A queue, including its child queues.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueAnswer {
    pub queue: String,
    pub parent: Option<String>,
    /// Weight among its siblings, if the scheduler uses weights.
    pub weight: Option<f64>,
    pub map: QueueSlotsAnswer,
    pub reduce: QueueSlotsAnswer,
    /// Jobs that hold a slot.
    pub running: u32,
    /// Jobs that hold no slot.
    pub waiting: u32,
    pub remark: Option<String>,
}

impl From<&QueueSummary> for QueueAnswer {
    fn from(queue: &QueueSummary) -> QueueAnswer {
        QueueAnswer {
            queue: queue.name.clone(),
            parent: queue.parent.clone(),
            weight: queue.weight_permille.map(whole),
            map: queue.map.into(),
            reduce: queue.reduce.into(),
            running: queue.running,
            waiting: queue.waiting,
            remark: queue.remark.clone(),
        }
    }
}

/// The slots of a queue for one kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct QueueSlotsAnswer {
    /// Guaranteed slots; may be a fraction.
    pub guaranteed: Option<f64>,
    pub maximum: Option<u64>,
    pub used: u64,
    /// Further slots that its jobs could use.
    pub wanted: u64,
}

impl From<QueueSlots> for QueueSlotsAnswer {
    fn from(slots: QueueSlots) -> QueueSlotsAnswer {
        QueueSlotsAnswer {
            guaranteed: slots.guaranteed_permille.map(whole),
            maximum: slots.maximum,
            used: slots.used,
            wanted: slots.wanted,
        }
    }
}

/// One queue, with the users who have jobs in it or in its child queues.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueStatusAnswer {
    pub queue: String,
    pub scheduler: String,
    /// `null` if the scheduler does not know it, as in a history.
    pub now: Option<QueueAnswer>,
    /// Queues directly below it.
    pub children: Vec<String>,
    /// Those who hold most slots first.
    pub users: Vec<QueueUserAnswer>,
}

impl QueueStatusAnswer {
    /// Returns `None` if neither the scheduler nor a job knows the queue.
    pub fn of(
        name: &str,
        listing: &QueueListing,
        jobs: &[JobSummary],
    ) -> Option<QueueStatusAnswer> {
        let known: &[QueueSummary] = listing.queues.as_deref().unwrap_or_default();
        // Parents precede their children.
        let mut within = HashSet::from([name]);
        for queue in known {
            if queue
                .parent
                .as_deref()
                .is_some_and(|parent| within.contains(parent))
            {
                within.insert(&queue.name);
            }
        }
        let mut users: BTreeMap<&str, QueueUserAnswer> = BTreeMap::new();
        for job in jobs
            .iter()
            .filter(|job| within.contains(job.queue.as_str()))
        {
            users.entry(&job.user).or_default().add(job);
        }
        let now = known
            .iter()
            .find(|queue| queue.name == name)
            .map(QueueAnswer::from);
        if now.is_none() && users.is_empty() {
            return None;
        }
        let mut users: Vec<QueueUserAnswer> = users.into_values().collect();
        users.sort_by_key(|user| {
            Reverse((
                user.map_slots + user.reduce_slots,
                user.running,
                user.waiting,
            ))
        });
        let children = known
            .iter()
            .filter(|queue| queue.parent.as_deref() == Some(name));
        Some(QueueStatusAnswer {
            queue: name.to_owned(),
            scheduler: listing.scheduler.clone(),
            now,
            children: children.map(|queue| queue.name.clone()).collect(),
            users,
        })
    }
}

/// The jobs of one user in a queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueUserAnswer {
    pub user: String,
    /// Jobs that hold a slot.
    pub running: u32,
    /// Jobs that hold no slot.
    pub waiting: u32,
    /// Ended jobs, while the history keeps them.
    pub ended: u32,
    /// Slots that its jobs hold.
    pub map_slots: u32,
    pub reduce_slots: u32,
    /// Suspended attempts, which hold no slot.
    pub suspended: u32,
}

impl QueueUserAnswer {
    fn add(&mut self, job: &JobSummary) {
        self.user.clone_from(&job.user);
        let map = &job.progress.map;
        let reduce = &job.progress.reduce;
        self.map_slots += map.running;
        self.reduce_slots += reduce.running;
        self.suspended += map.suspended + reduce.suspended;
        let count = match (job.ended_millis, map.running + reduce.running) {
            (Some(_), _) => &mut self.ended,
            (None, 0) => &mut self.waiting,
            (None, _) => &mut self.running,
        };
        *count += 1;
    }
}

fn whole(thousandths: u64) -> f64 {
    thousandths as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{JobPhase, SlotsWanted};

    use super::super::samples::job;
    use super::*;

    fn queue(name: &str, parent: Option<&str>) -> QueueSummary {
        QueueSummary {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            weight_permille: None,
            map: QueueSlots::default(),
            reduce: QueueSlots::default(),
            running: 0,
            waiting: 0,
            remark: None,
        }
    }

    #[test]
    fn queue_has_the_users_of_its_jobs_and_children() {
        let queues = vec![
            queue("etl", None),
            queue("etl.daily", Some("etl")),
            queue("adhoc", None),
        ];
        let listing = |queues| QueueListing {
            scheduler: "capacity".to_owned(),
            queues,
            wanted: SlotsWanted::default(),
        };
        let with = listing(Some(queues));
        let without = listing(None);
        let of = |number, user: &str, queue: &str, phase, running, suspended| JobSummary {
            user: user.to_owned(),
            queue: queue.to_owned(),
            ..job(number, phase, running, suspended)
        };
        let ended = JobPhase::Succeeded;
        let open = of(4, "", "", JobPhase::Running, 0, 0).phase;
        let jobs = [
            of(5, "ada", "etl.daily", open, 0, 2),
            of(4, "alan", "etl.daily", open, 3, 1),
            of(3, "ada", "etl", open, 1, 0),
            of(2, "ada", "etl.daily", ended, 0, 0),
            of(1, "grace", "adhoc", open, 4, 0),
        ];
        let users = |name: &str, listing: &QueueListing| -> Option<Vec<(String, [u32; 5])>> {
            let found = QueueStatusAnswer::of(name, listing, &jobs)?;
            let figures = |user: QueueUserAnswer| {
                (
                    user.user,
                    [
                        user.running,
                        user.waiting,
                        user.ended,
                        user.map_slots,
                        user.suspended,
                    ],
                )
            };
            Some(found.users.into_iter().map(figures).collect())
        };
        let ada = ("ada".to_owned(), [1, 1, 1, 1, 2]);
        let alan = ("alan".to_owned(), [1, 0, 0, 3, 1]);
        assert_eq!(users("etl", &with), Some(vec![alan.clone(), ada]));
        assert_eq!(
            users("etl.daily", &without),
            Some(vec![alan, ("ada".to_owned(), [0, 1, 1, 0, 2])])
        );
        assert_eq!(users("none", &with), None);
        let found = QueueStatusAnswer::of("etl", &with, &[]).expect("the scheduler knows it");
        assert_eq!(
            (found.children, found.users.len()),
            (vec!["etl.daily".to_owned()], 0)
        );
        assert!(QueueStatusAnswer::of("etl", &without, &[]).is_none());
    }

    #[test]
    fn queue_is_an_object() {
        let map = QueueSlots {
            guaranteed_permille: Some(2_500),
            maximum: Some(8),
            used: 3,
            wanted: 1,
        };
        let queue = QueueSummary {
            name: "etl.daily".to_owned(),
            parent: Some("etl".to_owned()),
            weight_permille: None,
            map,
            reduce: QueueSlots::default(),
            running: 1,
            waiting: 2,
            remark: None,
        };
        assert_eq!(
            serde_json::to_value(QueueAnswer::from(&queue))
                .expect("JSON")
                .to_string(),
            r#"{"map":{"guaranteed":2.5,"maximum":8,"used":3,"wanted":1},"parent":"etl","queue":"etl.daily","reduce":{"guaranteed":null,"maximum":null,"used":0,"wanted":0},"remark":null,"running":1,"waiting":2,"weight":null}"#
        );
    }
}
