//! Workers, as YARN describes nodes.
//!
//! Owns this object. Memory is not what slots are counted in here, so megabytes are 0.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use napreduce_engine::listed;
use napreduce_protocol::{WorkerPhase, WorkerSummary};
use schemars::JsonSchema;
use serde::Serialize;

listed! {
    /// YARN's words for the state of a node.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum NodeState {
        New = "NEW",
        Running = "RUNNING",
        Unhealthy = "UNHEALTHY",
        Decommissioning = "DECOMMISSIONING",
        Decommissioned = "DECOMMISSIONED",
        Lost = "LOST",
        Rebooted = "REBOOTED",
        Shutdown = "SHUTDOWN",
    }
}

impl NodeState {
    pub fn of(worker: &WorkerSummary) -> NodeState {
        match worker.state {
            WorkerPhase::Up => NodeState::Running,
            WorkerPhase::Excluded => NodeState::Unhealthy,
            WorkerPhase::Draining | WorkerPhase::Leaving => NodeState::Decommissioning,
            WorkerPhase::Left => NodeState::Decommissioned,
            WorkerPhase::Lost => NodeState::Lost,
        }
    }
}

read_words!(NodeState: "Invalid node state {} specified.");

answer! {
    /// `node`
    #[serde(rename_all = "camelCase")]
    pub struct YarnNode {
        pub id: String = worker.worker.to_string(),
        pub rack: String =
            if worker.rack.is_empty() { "/default-rack".to_owned() } else { worker.rack.clone() },
        pub state: NodeState = state,
        pub node_host_name: String = worker.host.clone(),
        #[serde(rename = "nodeHTTPAddress")]
        pub node_http_address: String,
        pub last_health_update: u64 = worker.gone_millis.unwrap_or(heard),
        pub version: &'static str = env!("CARGO_PKG_VERSION"),
        pub health_report: String = worker.reason.clone().unwrap_or_else(|| worker.remarks.join(", ")),
        pub num_containers: u32 = if is_gone { 0 } else { used },
        #[serde(rename = "usedMemoryMB")]
        pub used_memory_mb: u64,
        #[serde(rename = "availMemoryMB")]
        pub avail_memory_mb: u64,
        pub used_virtual_cores: u32 = if is_gone { 0 } else { used },
        pub available_virtual_cores: u32 = if is_gone { 0 } else { free },
        pub node_labels: Vec<String>,
    }

    pub fn of(worker: &WorkerSummary) {
        let state = NodeState::of(worker);
        let is_gone = matches!(state, NodeState::Lost | NodeState::Decommissioned);
        let used = worker.map_slots.1 + worker.reduce_slots.1;
        let free = (worker.map_slots.0 + worker.reduce_slots.0).saturating_sub(used);
        let heard = SystemTime::now().checked_sub(Duration::from_millis(worker.silent_millis));
        let heard = heard.and_then(|heard| heard.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let heard = u64::try_from(heard.as_millis()).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::answers::samples::worker;
    use super::*;

    #[test]
    fn a_worker_is_a_node_with_yarns_fields() {
        let node = serde_json::to_value(YarnNode::of(&worker(1, WorkerPhase::Up, 1))).expect("JSON");
        for (field, value) in [
            ("id", "\"worker_0001\""),
            ("state", "\"RUNNING\""),
            ("nodeHostName", "\"h\""),
            ("numContainers", "1"),
            ("usedVirtualCores", "1"),
            ("availableVirtualCores", "2"),
            ("usedMemoryMB", "0"),
            ("nodeHTTPAddress", "\"\""),
        ] {
            assert_eq!(node[field].to_string(), value, "{field}");
        }
        let lost = YarnNode::of(&worker(1, WorkerPhase::Lost, 1));
        assert_eq!((lost.state, lost.num_containers, lost.available_virtual_cores), (NodeState::Lost, 0, 0));
    }
}
