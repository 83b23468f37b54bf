//! Lists the policy's queues with the slots that their jobs hold and could use.

use std::collections::BTreeMap;

use napreduce_engine::{ClusterView, JobId, QueueLimits, QueueShare, Ratio, TaskKind};
use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary, SlotsWanted};

use super::ClusterCoordinator;

impl ClusterCoordinator {
    /// Lists the policy's queues.
    pub(super) fn list_queues(&self) -> QueueListing {
        let view = self.local.state().view();
        let queues = self
            .local
            .state()
            .engine()
            .queues()
            .map(|shares| summed(&shares, &view));
        QueueListing {
            scheduler: self.local.state().policy().to_owned(),
            queues,
            wanted: wanted(&view),
        }
    }
}

/// Returns the slots that all jobs could use in addition to those they hold.
fn wanted(view: &ClusterView<'_>) -> SlotsWanted {
    let of = |kind| {
        view.jobs()
            .map(|job| u64::from(job.demand(kind) - job.holding(kind)))
            .sum()
    };
    SlotsWanted {
        map: of(TaskKind::Map),
        reduce: of(TaskKind::Reduce),
    }
}

/// Sums every queue with its sub-queues.
fn summed(shares: &[QueueShare], view: &ClusterView<'_>) -> Vec<QueueSummary> {
    let mut queues: Vec<QueueSummary> = shares.iter().map(|share| alone(share, view)).collect();
    let at: BTreeMap<&str, usize> = shares
        .iter()
        .enumerate()
        .map(|(at, share)| (share.name.as_str(), at))
        .collect();
    // A sub-queue follows its parent, so sums are complete in reverse order.
    for part in (0..shares.len()).rev() {
        let Some(&whole) = shares[part]
            .parent
            .as_deref()
            .and_then(|parent| at.get(parent))
        else {
            continue;
        };
        let QueueSummary {
            map,
            reduce,
            running,
            waiting,
            ..
        } = queues[part].clone();
        let whole = &mut queues[whole];
        for (sum, more) in [(&mut whole.map, map), (&mut whole.reduce, reduce)] {
            sum.used += more.used;
            sum.wanted += more.wanted;
        }
        whole.running += running;
        whole.waiting += waiting;
    }
    queues
}

/// Sums a queue's own jobs.
fn alone(share: &QueueShare, view: &ClusterView<'_>) -> QueueSummary {
    let holds = |job: &&JobId| {
        view.job(**job)
            .is_some_and(|job| TaskKind::ALL.into_iter().any(|kind| job.holding(kind) > 0))
    };
    let running = share.jobs.iter().filter(holds).count();
    QueueSummary {
        name: share.name.clone(),
        parent: share.parent.clone(),
        weight_permille: share.weight.map(permille),
        map: slots(share, TaskKind::Map, view),
        reduce: slots(share, TaskKind::Reduce, view),
        running: running as u32,
        waiting: (share.jobs.len() - running) as u32,
        remark: share.remark.clone(),
    }
}

fn slots(share: &QueueShare, kind: TaskKind, view: &ClusterView<'_>) -> QueueSlots {
    let QueueLimits {
        guaranteed,
        maximum,
    } = share.limits[kind];
    let mut slots = QueueSlots {
        guaranteed_permille: guaranteed.map(permille),
        maximum,
        ..QueueSlots::default()
    };
    for job in share.jobs.iter().filter_map(|job| view.job(*job)) {
        slots.used += u64::from(job.holding(kind));
        slots.wanted += u64::from(job.demand(kind) - job.holding(kind));
    }
    slots
}

fn permille(ratio: Ratio) -> u64 {
    ratio.of_rounded(1_000)
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{
        Engine, EngineSettings, Event, JobSpec, MapSpec, Slots, Time, WorkerId,
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
        let queues = summed(&engine.queues().expect("fair has pools"), &engine.view());
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
