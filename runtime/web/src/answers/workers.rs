//! Workers.
//!
//! Owns the names of the fields. Does not own what a cluster has of them in all (`cluster`).

use napreduce_protocol::WorkerSummary;
use schemars::JsonSchema;
use serde::Serialize;

/// A worker in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkerAnswer {
    pub worker: String,
    pub name: String,
    pub host: String,
    pub rack: String,
    /// `up`, `excluded`, `draining`, `leaving`, `left` or `lost`, and what there is to add.
    pub state: String,
    pub gone_millis: Option<u64>,
    /// Why it was lost, or how it left.
    pub reason: Option<String>,
    pub map: SlotsAnswer,
    pub reduce: SlotsAnswer,
    pub isolation: String,
    /// Since it was last heard of.
    pub silent_millis: u64,
}

/// The slots of a worker for one kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotsAnswer {
    pub slots: u32,
    pub used: u32,
}

impl From<(u32, u32)> for SlotsAnswer {
    fn from((slots, used): (u32, u32)) -> SlotsAnswer {
        SlotsAnswer { slots, used }
    }
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
        }
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
            r#"{"gone_millis":null,"host":"h","isolation":"none","map":{"slots":2,"used":1},"name":"w1","rack":"r","reason":null,"reduce":{"slots":1,"used":0},"silent_millis":0,"state":"up","worker":"worker_0001"}"#
        );
    }
}
