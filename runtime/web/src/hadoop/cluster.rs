//! The cluster as a whole, as a ResourceManager and a history server describe it.
//!
//! Owns these objects. Memory is not what slots are counted in here, so megabytes are 0.

use napreduce_protocol::{JobSummary, WorkerSummary};

use super::nodes::NodeState;
use super::yarn_apps::{AppState, FinalStatus};
use crate::foreign::{VERSION, is_there};

answer! {
    /// `clusterInfo`
    #[serde(rename_all = "camelCase")]
    pub struct ClusterInfo {
        pub id: u64,
        pub started_on: u64,
        /// `STARTED` of a cluster that runs, `STOPPED` of a history.
        pub state: &'static str = if is_live { "STARTED" } else { "STOPPED" },
        pub ha_state: &'static str = if is_live { "ACTIVE" } else { "STOPPED" },
        pub rm_state_store_name: &'static str = "journal",
        pub resource_manager_version: &'static str = VERSION,
        pub resource_manager_build_version: &'static str = VERSION,
        pub resource_manager_version_built_on: &'static str,
        pub hadoop_version: &'static str = VERSION,
        pub hadoop_build_version: &'static str = VERSION,
        pub hadoop_version_built_on: &'static str,
        pub ha_zoo_keeper_connection_state: &'static str =
            "Could not find leader elector. Verify both HA and automatic failover are enabled.",
    }

    pub fn new(is_live: bool);
}

answer! {
    /// `historyInfo`
    #[serde(rename_all = "camelCase")]
    pub struct HistoryInfo {
        pub started_on: u64,
        pub hadoop_version: &'static str = VERSION,
        pub hadoop_build_version: &'static str = VERSION,
        pub hadoop_version_built_on: &'static str,
    }
}

answer! {
    /// `clusterMetrics`: a slot is a virtual core, and an attempt that holds one a container.
    #[derive(Default)]
    #[serde(rename_all = "camelCase")]
    pub struct ClusterMetrics {
        pub apps_submitted: usize = jobs.len(),
        pub apps_completed: usize = ended(FinalStatus::Succeeded),
        pub apps_pending: usize = apps(AppState::Accepted),
        pub apps_running: usize = apps(AppState::Running),
        pub apps_failed: usize = ended(FinalStatus::Failed),
        pub apps_killed: usize = ended(FinalStatus::Killed),
        #[serde(rename = "reservedMB")]
        pub reserved_mb: u64,
        #[serde(rename = "availableMB")]
        pub available_mb: u64,
        #[serde(rename = "allocatedMB")]
        pub allocated_mb: u64,
        #[serde(rename = "pendingMB")]
        pub pending_mb: u64,
        #[serde(rename = "totalMB")]
        pub total_mb: u64,
        pub reserved_virtual_cores: u64,
        pub available_virtual_cores: u64 = total.saturating_sub(used),
        pub allocated_virtual_cores: u64 = used,
        pub pending_virtual_cores: u64 = pending,
        pub total_virtual_cores: u64 = total,
        pub containers_allocated: u64 = used,
        pub containers_reserved: u64,
        pub containers_pending: u64 = pending,
        pub total_nodes: usize = workers.len(),
        pub active_nodes: usize = nodes(NodeState::Running),
        pub lost_nodes: usize = nodes(NodeState::Lost),
        pub unhealthy_nodes: usize = nodes(NodeState::Unhealthy),
        pub decommissioning_nodes: usize = nodes(NodeState::Decommissioning),
        pub decommissioned_nodes: usize = nodes(NodeState::Decommissioned),
        pub rebooted_nodes: usize,
        pub shutdown_nodes: usize,
    }

    pub fn of(workers: &[WorkerSummary], jobs: &[JobSummary]) {
        let apps = |state| jobs.iter().filter(|job| AppState::of(job) == state).count();
        let ended = |status| jobs.iter().filter(|job| FinalStatus::of(job) == status).count();
        let nodes = |state| workers.iter().filter(|worker| NodeState::of(worker) == state).count();
        let (mut total, mut used) = (0, 0);
        for worker in workers.iter().filter(|worker| is_there(worker)) {
            for (slots, in_use) in [worker.map_slots, worker.reduce_slots] {
                total += u64::from(slots);
                used += u64::from(in_use);
            }
        }
        let wanted = jobs.iter().filter(|job| job.phase.is_active()).flat_map(|job| job.progress.phases());
        let pending: u64 =
            wanted.map(|(_, phase)| u64::from(phase.tasks.saturating_sub(phase.done + phase.running))).sum();
    }
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{JobPhase, WorkerPhase};

    use super::super::super::answers::samples::{job, worker};
    use super::*;

    #[test]
    fn slots_are_cores_and_what_is_gone_has_none() {
        let workers = [
            worker(1, WorkerPhase::Up, 1),
            worker(2, WorkerPhase::Lost, 2),
            worker(3, WorkerPhase::Left, 0),
            worker(4, WorkerPhase::Draining, 2),
            worker(5, WorkerPhase::Excluded, 0),
        ];
        let jobs = [
            job(1, JobPhase::Active, 0, 0),
            job(2, JobPhase::Active, 3, 1),
            job(3, JobPhase::Succeeded, 0, 0),
            job(4, JobPhase::Killed, 0, 0),
            job(5, JobPhase::Failed, 0, 0),
        ];
        let metrics = ClusterMetrics::of(&workers, &jobs);
        let apps = [
            metrics.apps_submitted,
            metrics.apps_pending,
            metrics.apps_running,
            metrics.apps_completed,
            metrics.apps_killed,
            metrics.apps_failed,
        ];
        assert_eq!(apps, [5, 1, 1, 1, 1, 1]);
        let cores = [
            metrics.total_virtual_cores,
            metrics.allocated_virtual_cores,
            metrics.available_virtual_cores,
            metrics.pending_virtual_cores,
        ];
        assert_eq!(cores, [9, 3, 6, 5]);
        let nodes = [
            metrics.total_nodes,
            metrics.active_nodes,
            metrics.lost_nodes,
            metrics.decommissioned_nodes,
            metrics.decommissioning_nodes,
            metrics.unhealthy_nodes,
        ];
        assert_eq!(nodes, [5, 1, 1, 1, 1, 1]);
    }
}
