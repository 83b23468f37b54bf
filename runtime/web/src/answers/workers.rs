//! Workers of a cluster.

use napreduce_protocol::{SuspendedMemory, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

/// A worker in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkerAnswer {
    pub worker: String,
    pub name: String,
    pub host: String,
    pub rack: String,
    /// `up`, `excluded`, `draining`, `leaving`, `left` or `lost`, with a remark.
    pub state: String,
    pub gone_millis: Option<u64>,
    /// Why it was lost, or how it left.
    pub reason: Option<String>,
    pub map: SlotsAnswer,
    pub reduce: SlotsAnswer,
    pub isolation: String,
    /// Time since its last message.
    pub silent_millis: u64,
    /// Suspended attempts that it keeps.
    pub suspended: Vec<SuspendedAnswer>,
    /// Memory of its machine that is available to programs; `null` if unknown.
    pub free_bytes: Option<u64>,
}

impl From<&WorkerSummary> for WorkerAnswer {
    fn from(worker: &WorkerSummary) -> WorkerAnswer {
        WorkerAnswer {
            worker: worker.worker.to_string(),
            name: worker.name.clone(),
            host: worker.host.clone(),
            rack: worker.rack.clone(),
            state: worker.state_in_words(),
            gone_millis: worker.gone_millis,
            reason: worker.reason.clone(),
            map: worker.map_slots.into(),
            reduce: worker.reduce_slots.into(),
            isolation: worker.isolation.clone(),
            silent_millis: worker.silent_millis,
            suspended: worker.memory.suspended.iter().map(SuspendedAnswer::from).collect(),
            free_bytes: Some(worker.memory.free_bytes).filter(|free| *free > 0),
        }
    }
}

/// A suspended attempt and the current memory of its process.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SuspendedAnswer {
    pub attempt: String,
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
}

impl From<&SuspendedMemory> for SuspendedAnswer {
    fn from(held: &SuspendedMemory) -> SuspendedAnswer {
        SuspendedAnswer {
            attempt: held.attempt.to_string(),
            resident_bytes: held.resident_bytes,
            swapped_bytes: held.swapped_bytes,
        }
    }
}

/// The slots of a worker for one kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SlotsAnswer {
    pub slots: u32,
    pub used: u32,
}

impl From<(u32, u32)> for SlotsAnswer {
    fn from(there: (u32, u32)) -> SlotsAnswer {
        SlotsAnswer { slots: there.0, used: there.1 }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::WorkerPhase;

    use super::super::samples::worker;
    use super::*;

    #[test]
    fn worker_is_an_object() {
        assert_eq!(
            serde_json::to_value(WorkerAnswer::from(&worker(1, WorkerPhase::Up, 1)))
                .expect("JSON")
                .to_string(),
            r#"{"free_bytes":null,"gone_millis":null,"host":"h","isolation":"none","map":{"slots":2,"used":1},"name":"w1","rack":"r","reason":null,"reduce":{"slots":1,"used":0},"silent_millis":0,"state":"up","suspended":[],"worker":"worker_0001"}"#
        );
    }
}
