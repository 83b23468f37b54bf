//! Queues of the scheduler.

use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary};
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
            queues: listing.queues.as_ref().map(|queues| queues.iter().map(QueueAnswer::from).collect()),
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

fn whole(thousandths: u64) -> f64 {
    thousandths as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_is_an_object() {
        let map = QueueSlots { guaranteed_permille: Some(2_500), maximum: Some(8), used: 3, wanted: 1 };
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
            serde_json::to_value(QueueAnswer::from(&queue)).expect("JSON").to_string(),
            r#"{"map":{"guaranteed":2.5,"maximum":8,"used":3,"wanted":1},"parent":"etl","queue":"etl.daily","reduce":{"guaranteed":null,"maximum":null,"used":0,"wanted":0},"remark":null,"running":1,"waiting":2,"weight":null}"#
        );
    }
}
