//! Lists the policy's queues with the slots that their jobs hold and could use.

use std::collections::BTreeMap;

use napreduce_engine::{ClusterView, Job, QueueShare, Ratio, TaskKind};
use napreduce_protocol::requests::ListQueues;
use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary, SlotsWanted};

use super::ClusterCoordinator;
use super::refusal::Refusal;
use super::requests::Handle;

impl Handle for ListQueues {
    fn handle(self, coordinator: &mut ClusterCoordinator) -> Result<QueueListing, Refusal> {
        Ok(coordinator.list_queues())
    }
}

impl ClusterCoordinator {
    /// Lists the policy's queues.
    pub(super) fn list_queues(&self) -> QueueListing {
        let view = self.local.state().view();
        let shares = self.local.state().engine().queues();
        QueueListing {
            scheduler: self.local.state().policy().to_owned(),
            queues: shares.map(|shares| summarize(&shares, &view)),
            wanted: wanted(&view),
        }
    }
}

/// Returns the slots that all jobs could use in addition to those they hold.
fn wanted(view: &ClusterView<'_>) -> SlotsWanted {
    let mut wanted = SlotsWanted::default();
    for job in view.jobs() {
        wanted.map += unmet_demand(job, TaskKind::Map);
        wanted.reduce += unmet_demand(job, TaskKind::Reduce);
    }
    wanted
}

fn unmet_demand(job: &Job, kind: TaskKind) -> u64 {
    u64::from(job.demand(kind) - job.holding(kind))
}

/// Summarizes every queue, with the jobs of its sub-queues.
fn summarize(shares: &[QueueShare], view: &ClusterView<'_>) -> Vec<QueueSummary> {
    let mut queues: Vec<QueueSummary> = shares
        .iter()
        .map(|share| summarize_own_jobs(share, view))
        .collect();
    let mut positions = BTreeMap::new();
    for (position, share) in shares.iter().enumerate() {
        positions.insert(share.name.as_str(), position);
    }
    // A sub-queue follows its parent, so sums are complete in reverse order.
    for (child, share) in shares.iter().enumerate().rev() {
        let Some(parent) = &share.parent else {
            continue;
        };
        let Some(&parent) = positions.get(parent.as_str()) else {
            continue;
        };
        let child = queues[child].clone();
        let parent = &mut queues[parent];
        parent.map.used += child.map.used;
        parent.map.wanted += child.map.wanted;
        parent.reduce.used += child.reduce.used;
        parent.reduce.wanted += child.reduce.wanted;
        parent.running += child.running;
        parent.waiting += child.waiting;
    }
    queues
}

/// Summarizes a queue without its sub-queues.
fn summarize_own_jobs(share: &QueueShare, view: &ClusterView<'_>) -> QueueSummary {
    let mut running = 0;
    for job in share.jobs.iter().filter_map(|job| view.job(*job)) {
        if job.holding(TaskKind::Map) > 0 || job.holding(TaskKind::Reduce) > 0 {
            running += 1;
        }
    }
    QueueSummary {
        name: share.name.clone(),
        parent: share.parent.clone(),
        weight_permille: share.weight.map(permille),
        map: slots(share, TaskKind::Map, view),
        reduce: slots(share, TaskKind::Reduce, view),
        running,
        waiting: share.jobs.len() as u32 - running,
        remark: share.remark.clone(),
    }
}

fn slots(share: &QueueShare, kind: TaskKind, view: &ClusterView<'_>) -> QueueSlots {
    let limits = share.limits[kind];
    let mut slots = QueueSlots {
        guaranteed_permille: limits.guaranteed.map(permille),
        maximum: limits.maximum,
        ..QueueSlots::default()
    };
    for job in share.jobs.iter().filter_map(|job| view.job(*job)) {
        slots.used += u64::from(job.holding(kind));
        slots.wanted += unmet_demand(job, kind);
    }
    slots
}

fn permille(ratio: Ratio) -> u64 {
    ratio.of_rounded(1_000)
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{
        Engine, EngineSettings, Event, JobId, JobSpec, MapSpec, Slots, Time, WorkerId,
    };
    use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};

    use super::*;

    fn job(name: &str, queue: &str, maps: usize) -> JobSpec {
        JobSpec {
            name: name.to_owned(),
            user: "ada".to_owned(),
            queue: queue.to_owned(),
            priority: 0,
            deadline: None,
            maps: vec![
                MapSpec {
                    bytes: 1,
                    preferred: Vec::new()
                };
                maps
            ],
            reduces: 0,
            attempts_max: 4,
            slowstart_permille: 1_000,
            unsaved: Vec::new(),
            memory: 0,
            outputs_move: false,
        }
    }

    /// Two map slots; two jobs of one map each in `etl`, one of three in `adhoc`.
    fn busy(scheduler: SchedulerName) -> Engine {
        let policy = SchedulerConfiguration::named(scheduler)
            .build()
            .expect("a policy");
        let mut engine = Engine::new(policy, EngineSettings::default());
        let slots = Slots { map: 2, reduce: 1 };
        let joined = Event::WorkerJoined {
            worker: WorkerId(1),
            slots,
            host: String::new(),
            rack: "/r".to_owned(),
        };
        engine.handle(Time(1), joined);
        for (number, queue, maps) in [(1, "etl.daily", 1), (2, "etl.weekly", 1), (3, "adhoc", 3)] {
            engine.handle(
                Time(2),
                Event::JobSubmitted {
                    job: JobId(number),
                    spec: job("j", queue, maps),
                },
            );
        }
        engine
    }

    #[test]
    fn queue_sums_its_children() {
        let engine = busy(SchedulerName::Fair);
        let queues = summarize(&engine.queues().expect("fair has pools"), &engine.view());
        let find = |name: &str| {
            queues
                .iter()
                .find(|queue| queue.name == name)
                .unwrap_or_else(|| panic!("no {name}"))
        };
        let etl = find("etl");
        let daily = find("etl.daily");
        let adhoc = find("adhoc");
        assert_eq!(
            (daily.parent.as_deref(), etl.parent.as_deref()),
            (Some("etl"), None)
        );
        assert_eq!((etl.running, etl.waiting, etl.map.used), (2, 0, 2));
        assert_eq!((daily.running, daily.map.used, daily.map.wanted), (1, 1, 0));
        assert_eq!(
            (
                adhoc.running,
                adhoc.waiting,
                adhoc.map.used,
                adhoc.map.wanted
            ),
            (0, 1, 0, 3)
        );
        assert_eq!(adhoc.weight_permille, Some(1_000));
    }

    #[test]
    fn only_waiting_tasks_want_slots() {
        for scheduler in [SchedulerName::Fair, SchedulerName::Fifo] {
            assert_eq!(
                wanted(&busy(scheduler).view()),
                SlotsWanted { map: 3, reduce: 0 }
            );
        }
    }

    #[test]
    fn policy_without_queues_lists_none() {
        assert_eq!(busy(SchedulerName::Fifo).queues(), None);
        assert_eq!(
            busy(SchedulerName::Hfsp).queues(),
            None,
            "it has those with weights"
        );
        let natjam = busy(SchedulerName::Natjam)
            .queues()
            .expect("it has two classes");
        assert!(
            natjam
                .iter()
                .any(|queue| queue.name == "adhoc" && queue.jobs == [JobId(3)]),
            "{natjam:?}"
        );
    }
}
