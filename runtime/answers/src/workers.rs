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
    /// Free swap of its machine; `null` if it has none.
    pub swap_free_bytes: Option<u64>,
    /// Free space of the disk that its attempts write to; `null` if unknown.
    pub disk_free_bytes: Option<u64>,
    /// Memory of the control groups of its attempts, with the files that they cache; `null` without groups.
    pub groups_bytes: Option<u64>,
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
            suspended: worker
                .memory
                .suspended
                .iter()
                .map(SuspendedAnswer::from)
                .collect(),
            free_bytes: known(worker.memory.free_bytes),
            swap_free_bytes: known(worker.memory.swap_free_bytes),
            disk_free_bytes: known(worker.memory.disk_free_bytes),
            groups_bytes: worker.memory.groups_bytes,
        }
    }
}

fn known(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|bytes| *bytes > 0)
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
        SlotsAnswer {
            slots: there.0,
            used: there.1,
        }
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
            r#"{"disk_free_bytes":null,"free_bytes":null,"gone_millis":null,"groups_bytes":null,"host":"h","isolation":"none","map":{"slots":2,"used":1},"name":"w1","rack":"r","reason":null,"reduce":{"slots":1,"used":0},"silent_millis":0,"state":"up","suspended":[],"swap_free_bytes":null,"worker":"worker_0001"}"#
        );
    }
}
