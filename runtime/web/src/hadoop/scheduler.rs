//! The scheduler and its queues, as YARN describes them.
//!
//! Owns these objects: the trees of the capacity and the fair scheduler as documented, one line for FIFO, and
//! for policies that YARN does not know the capacity scheduler's tree under their own name. Maps and reduces
//! are added up; megabytes are 0.

use napreduce_protocol::{QueueListing, QueueSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::cluster::ClusterMetrics;

/// `schedulerInfo`
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerInfo {
    /// `capacityScheduler`, `fairScheduler`, `fifoScheduler`, `natjamScheduler` and so on.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub form: SchedulerForm,
}

/// What is said of a scheduler, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SchedulerForm {
    Fifo(FifoInfo),
    Fair(FairInfo),
    Capacity(Box<CapacityQueue>),
}

answer! {
    #[serde(rename_all = "camelCase")]
    pub struct FifoInfo {
        /// 1: it has all there is.
        pub capacity: f64 = 1.0,
        pub used_capacity: f64 = share(used as f64, total as f64) / 100.0,
        pub qstate: &'static str = "RUNNING",
        pub min_queue_memory_capacity: u64,
        pub max_queue_memory_capacity: u64,
        pub num_nodes: usize = cluster.active_nodes,
        pub used_node_capacity: u64 = used,
        pub avail_node_capacity: u64 = total.saturating_sub(used),
        pub total_node_capacity: u64 = total,
        pub num_containers: u64 = used,
    }

    fn of(cluster: &ClusterMetrics) {
        let ClusterMetrics { total_virtual_cores: total, allocated_virtual_cores: used, .. } = *cluster;
    }
}

/// A queue of the capacity scheduler; shares are per cent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityQueue {
    pub queue_name: String,
    pub state: &'static str,
    /// Of what the queue above it has.
    pub capacity: f64,
    /// Of what it is guaranteed.
    pub used_capacity: f64,
    pub max_capacity: f64,
    /// Of the cluster, as the next two.
    pub absolute_capacity: f64,
    pub absolute_used_capacity: f64,
    pub absolute_max_capacity: f64,
    pub num_applications: u32,
    pub num_active_applications: u32,
    pub num_pending_applications: u32,
    pub num_containers: u64,
    pub resources_used: YarnResource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<CapacityQueues>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CapacityQueues {
    pub queue: Vec<CapacityQueue>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairInfo {
    pub root_queue: FairQueue,
}

/// A queue of the fair scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairQueue {
    pub queue_name: String,
    pub scheduling_policy: &'static str,
    pub max_apps: u32,
    pub min_resources: YarnResource,
    pub max_resources: YarnResource,
    pub used_resources: YarnResource,
    pub demand_resources: YarnResource,
    pub num_active_apps: u32,
    pub num_pending_apps: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_queues: Option<FairQueues>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FairQueues {
    pub queue: Vec<FairQueue>,
}

/// Slots are virtual cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct YarnResource {
    pub memory: u64,
    pub v_cores: u64,
}

fn cores(v_cores: u64) -> YarnResource {
    YarnResource { memory: 0, v_cores }
}

impl SchedulerInfo {
    pub fn of(listing: &QueueListing, cluster: &ClusterMetrics) -> SchedulerInfo {
        let tree = Tree { queues: listing.queues.as_deref().unwrap_or_default(), cluster };
        let form = match listing.scheduler.as_str() {
            "fifo" => SchedulerForm::Fifo(FifoInfo::of(cluster)),
            "fair" => SchedulerForm::Fair(FairInfo { root_queue: tree.fair_root() }),
            _ => SchedulerForm::Capacity(Box::new(tree.capacity_root())),
        };
        SchedulerInfo { kind: format!("{}Scheduler", listing.scheduler), form }
    }
}

struct Tree<'a> {
    queues: &'a [QueueSummary],
    cluster: &'a ClusterMetrics,
}

impl<'a> Tree<'a> {
    fn below(&self, parent: Option<&'a str>) -> impl Iterator<Item = &'a QueueSummary> {
        self.queues.iter().filter(move |queue| queue.parent.as_deref() == parent)
    }

    fn percent(&self, slots: f64) -> f64 {
        share(slots, self.cluster.total_virtual_cores as f64)
    }

    fn capacity_root(&self) -> CapacityQueue {
        let ClusterMetrics { allocated_virtual_cores: used, apps_running, apps_pending, .. } = *self.cluster;
        let (running, pending) = (apps_running as u32, apps_pending as u32);
        let used_percent = self.percent(used as f64);
        CapacityQueue {
            queue_name: "root".to_owned(),
            state: "RUNNING",
            capacity: 100.0,
            used_capacity: used_percent,
            max_capacity: 100.0,
            absolute_capacity: 100.0,
            absolute_used_capacity: used_percent,
            absolute_max_capacity: 100.0,
            num_applications: running + pending,
            num_active_applications: running,
            num_pending_applications: pending,
            num_containers: used,
            resources_used: cores(used),
            queues: self.capacity_below(None, 100.0),
        }
    }

    fn capacity_below(&self, parent: Option<&'a str>, of: f64) -> Option<CapacityQueues> {
        let queue: Vec<CapacityQueue> = self.below(parent).map(|queue| self.capacity(queue, of)).collect();
        (!queue.is_empty()).then_some(CapacityQueues { queue })
    }

    /// Where nothing is guaranteed, everything may be had.
    fn capacity(&self, queue: &'a QueueSummary, of: f64) -> CapacityQueue {
        let used = queue.map.used + queue.reduce.used;
        let guaranteed = guaranteed(queue);
        let absolute = guaranteed.map_or(0.0, |slots| self.percent(slots));
        let maximum = maximum(queue).map_or(100.0, |slots| self.percent(slots as f64).min(100.0));
        CapacityQueue {
            queue_name: queue.name.clone(),
            state: "RUNNING",
            capacity: share(absolute, of),
            used_capacity: share(used as f64, guaranteed.unwrap_or(0.0)),
            max_capacity: share(maximum, of).min(100.0),
            absolute_capacity: absolute,
            absolute_used_capacity: self.percent(used as f64),
            absolute_max_capacity: maximum,
            num_applications: queue.running + queue.waiting,
            num_active_applications: queue.running,
            num_pending_applications: queue.waiting,
            num_containers: used,
            resources_used: cores(used),
            queues: self.capacity_below(Some(&queue.name), absolute),
        }
    }

    fn fair_root(&self) -> FairQueue {
        let ClusterMetrics { total_virtual_cores: total, allocated_virtual_cores: used, .. } = *self.cluster;
        FairQueue {
            queue_name: "root".to_owned(),
            scheduling_policy: "fair",
            max_apps: u32::MAX,
            min_resources: cores(0),
            max_resources: cores(total),
            used_resources: cores(used),
            demand_resources: cores(used + self.cluster.pending_virtual_cores),
            num_active_apps: self.cluster.apps_running as u32,
            num_pending_apps: self.cluster.apps_pending as u32,
            child_queues: self.fair_below(None),
        }
    }

    fn fair_below(&self, parent: Option<&'a str>) -> Option<FairQueues> {
        let queue: Vec<FairQueue> = self.below(parent).map(|queue| self.fair(queue)).collect();
        (!queue.is_empty()).then_some(FairQueues { queue })
    }

    fn fair(&self, queue: &'a QueueSummary) -> FairQueue {
        let used = queue.map.used + queue.reduce.used;
        FairQueue {
            queue_name: format!("root.{}", queue.name),
            scheduling_policy: "fair",
            max_apps: u32::MAX,
            min_resources: cores(guaranteed(queue).unwrap_or(0.0) as u64),
            max_resources: cores(maximum(queue).unwrap_or(self.cluster.total_virtual_cores)),
            used_resources: cores(used),
            demand_resources: cores(used + queue.map.wanted + queue.reduce.wanted),
            num_active_apps: queue.running,
            num_pending_apps: queue.waiting,
            child_queues: self.fair_below(Some(&queue.name)),
        }
    }
}

/// Per cent; of nothing, nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole * 100.0 } else { 0.0 }
}

/// Slots of both kinds, where one of them has a guarantee.
fn guaranteed(queue: &QueueSummary) -> Option<f64> {
    let (map, reduce) = (queue.map.guaranteed_permille, queue.reduce.guaranteed_permille);
    (map.is_some() || reduce.is_some()).then(|| (map.unwrap_or(0) + reduce.unwrap_or(0)) as f64 / 1_000.0)
}

/// Slots of both kinds, where both have a bound.
fn maximum(queue: &QueueSummary) -> Option<u64> {
    Some(queue.map.maximum? + queue.reduce.maximum?)
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::{QueueSlots, SlotsWanted};
    use serde_json::{Value, json, to_value};

    use super::*;

    fn listing(scheduler: &str) -> QueueListing {
        let queue = |name: &str, parent: Option<&str>, slots: u64, used: u64| {
            let map =
                QueueSlots { guaranteed_permille: Some(slots * 1_000), maximum: Some(8), used, wanted: 3 };
            let reduce =
                QueueSlots { guaranteed_permille: Some(0), maximum: Some(2), ..QueueSlots::default() };
            QueueSummary {
                name: name.to_owned(),
                parent: parent.map(str::to_owned),
                weight_permille: None,
                map,
                reduce,
                running: 1,
                waiting: 2,
                remark: None,
            }
        };
        let queues =
            vec![queue("etl", None, 6, 3), queue("etl.daily", Some("etl"), 3, 3), queue("adhoc", None, 2, 0)];
        let queues = (scheduler != "fifo").then_some(queues);
        QueueListing { scheduler: scheduler.to_owned(), queues, wanted: SlotsWanted::default() }
    }

    fn info(scheduler: &str) -> Value {
        let cluster = ClusterMetrics {
            total_virtual_cores: 12,
            allocated_virtual_cores: 3,
            active_nodes: 2,
            apps_running: 1,
            ..ClusterMetrics::default()
        };
        to_value(SchedulerInfo::of(&listing(scheduler), &cluster)).expect("JSON")
    }

    #[test]
    fn a_capacity_scheduler_is_a_tree_of_shares() {
        let info = info("capacity");
        assert_eq!((&info["type"], &info["queueName"]), (&json!("capacityScheduler"), &json!("root")));
        let etl = &info["queues"]["queue"][0];
        assert_eq!((&etl["absoluteCapacity"], &etl["usedCapacity"]), (&json!(50.0), &json!(50.0)));
        assert_eq!((&etl["numApplications"], &etl["resourcesUsed"]["vCores"]), (&json!(3), &json!(3)));
        let daily = &etl["queues"]["queue"][0];
        assert_eq!((&daily["queueName"], &daily["capacity"]), (&json!("etl.daily"), &json!(50.0)));
        assert_eq!(info["queues"]["queue"].as_array().map(Vec::len), Some(2));
        assert!(daily.get("queues").is_none());
        assert_eq!(self::info("natjam")["type"], "natjamScheduler");
    }

    #[test]
    fn a_fair_scheduler_has_a_root_and_fifo_has_no_queues() {
        let info = info("fair");
        let etl = &info["rootQueue"]["childQueues"]["queue"][0];
        assert_eq!((&etl["queueName"], &etl["minResources"]["vCores"]), (&json!("root.etl"), &json!(6)));
        assert_eq!(etl["demandResources"]["vCores"], 6);
        assert_eq!(etl["childQueues"]["queue"][0]["queueName"], "root.etl.daily");
        let fifo = self::info("fifo");
        assert_eq!((&fifo["type"], &fifo["usedCapacity"]), (&json!("fifoScheduler"), &json!(0.25)));
    }
}
