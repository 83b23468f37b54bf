//! Queues.
//!
//! Owns the names of the fields. Does not own what is counted (the coordinator).

use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary};

answer! {
    /// The queues of a scheduler.
    pub struct QueuesAnswer from |listing: &QueueListing| {
        /// Its name.
        pub scheduler: String = listing.scheduler.clone(),
        /// Each after the one that it is part of; nothing where the scheduler has no queues.
        pub queues: Option<Vec<QueueAnswer>> =
            listing.queues.as_ref().map(|queues| queues.iter().map(QueueAnswer::from).collect()),
    }

    /// A queue, with what its parts hold and want.
    pub struct QueueAnswer from |queue: &QueueSummary| {
        pub queue: String = queue.name.clone(),
        /// The queue that it is part of.
        pub parent: Option<String> = queue.parent.clone(),
        /// Its part in relation to those beside it, where slots are divided so.
        pub weight: Option<f64> = queue.weight_permille.map(whole),
        pub map: QueueSlotsAnswer = queue.map.into(),
        pub reduce: QueueSlotsAnswer = queue.reduce.into(),
        /// Jobs that hold a slot.
        pub running: u32 = queue.running,
        /// Jobs that hold none.
        pub waiting: u32 = queue.waiting,
        pub remark: Option<String> = queue.remark.clone(),
    }

    /// The slots of a queue, of one kind.
    #[derive(Copy)]
    pub struct QueueSlotsAnswer from |slots: QueueSlots| {
        /// What it has in any case; fractions count.
        pub guaranteed: Option<f64> = slots.guaranteed_permille.map(whole),
        pub maximum: Option<u64> = slots.maximum,
        pub used: u64 = slots.used,
        /// What its jobs could use beside that.
        pub wanted: u64 = slots.wanted,
    }
}

fn whole(thousandths: u64) -> f64 {
    thousandths as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_an_object() {
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
