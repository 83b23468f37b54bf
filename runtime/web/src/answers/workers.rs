//! Workers.
//!
//! Owns the names of the fields. Does not own what a cluster has of them in all (`cluster`).

use napreduce_protocol::{SuspendedMemory, WorkerSummary};

answer! {
    /// A worker in a listing.
    pub struct WorkerAnswer from |worker: &WorkerSummary| {
        pub worker: String = worker.worker.to_string(),
        pub name: String = worker.name.clone(),
        pub host: String = worker.host.clone(),
        pub rack: String = worker.rack.clone(),
        /// `up`, `excluded`, `draining`, `leaving`, `left` or `lost`, and what there is to add.
        pub state: String = worker.state_in_words(),
        pub gone_millis: Option<u64> = worker.gone_millis,
        /// Why it was lost, or how it left.
        pub reason: Option<String> = worker.reason.clone(),
        pub map: SlotsAnswer = worker.map_slots.into(),
        pub reduce: SlotsAnswer = worker.reduce_slots.into(),
        pub isolation: String = worker.isolation.clone(),
        /// Since it was last heard of.
        pub silent_millis: u64 = worker.silent_millis,
        /// The attempts that it keeps suspended.
        pub suspended: Vec<SuspendedAnswer> = worker.memory.suspended.iter().map(SuspendedAnswer::from).collect(),
        /// Memory of its machine that programs could have; nothing while it is unknown.
        pub free_bytes: Option<u64> = Some(worker.memory.free_bytes).filter(|free| *free > 0),
    }

    /// A suspended attempt, and what its process holds at present.
    pub struct SuspendedAnswer from |held: &SuspendedMemory| {
        pub attempt: String = held.attempt.to_string(),
        pub resident_bytes: u64 = held.resident_bytes,
        pub swapped_bytes: u64 = held.swapped_bytes,
    }

    /// The slots of a worker for one kind of task.
    #[derive(Copy)]
    pub struct SlotsAnswer from |there: (u32, u32)| {
        pub slots: u32 = there.0,
        pub used: u32 = there.1,
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::WorkerPhase;

    use super::super::samples::worker;
    use super::*;

    #[test]
    fn a_worker_is_an_object() {
        assert_eq!(
            serde_json::to_value(WorkerAnswer::from(&worker(1, WorkerPhase::Up, 1)))
                .expect("JSON")
                .to_string(),
            r#"{"free_bytes":null,"gone_millis":null,"host":"h","isolation":"none","map":{"slots":2,"used":1},"name":"w1","rack":"r","reason":null,"reduce":{"slots":1,"used":0},"silent_millis":0,"state":"up","suspended":[],"worker":"worker_0001"}"#
        );
    }
}
