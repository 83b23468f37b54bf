//! Victim selection in a leaf (YARN's `FifoCandidatesSelector`): last application first, youngest container
//! first, masters last. Also holds the selection of a round.

use std::cmp::Reverse;

use napreduce_engine::{Ratio, SortedMap, SortedSet, Time, sort_by_key};

use super::source::Source;
use crate::capacity::configuration::ApplicationOrder;

/// An application in a leaf; here a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub id: u64,
    pub user: String,
    /// Larger is more important.
    pub priority: i32,
    /// Rank by age; the oldest has the smallest.
    pub age: u64,
    /// Unmet demand.
    pub pending: u64,
    /// Reservations: containers that wait for room on a node.
    pub reserved: Vec<Container>,
    /// Running containers.
    pub live: Vec<Container>,
}

/// A unit of preemption; here the slot of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// Unique in the cluster.
    pub id: u64,
    pub size: u64,
    /// Smaller is more important to its application.
    pub importance: u32,
    /// Start of the container or reservation; ties by id.
    pub since: Time,
    pub node: Option<u32>,
    /// The application cannot run without it.
    pub is_master: bool,
    /// Marked to be killed on demand.
    pub is_killable: bool,
}

/// The pass that chose a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// For a reservation of a more important queue.
    Priority,
    /// For a reservation.
    Reserved,
    /// For a queue below its guarantee.
    Guarantee,
    /// For a queue at its guarantee with a smaller share of the remaining capacity.
    Balance,
    /// For another application of the same queue.
    IntraQueue,
}

/// A container to preempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    pub container: u64,
    pub size: u64,
    pub application: u64,
    pub queue: usize,
    pub pass: Pass,
    /// The reservation for which it makes room.
    pub reservation: Option<u64>,
}

impl Application {
    pub fn used(&self) -> u64 {
        self.live.iter().map(|container| container.size).sum()
    }

    /// Returns the size of its masters.
    pub(super) fn masters(&self) -> u64 {
        self.live
            .iter()
            .filter(|container| container.is_master)
            .map(|container| container.size)
            .sum()
    }

    /// Returns its containers in preemption order: least important first, then youngest.
    pub(super) fn in_preemption_order(&self) -> Vec<Container> {
        let mut live = self.live.clone();
        sort_by_key(&mut live, |container| {
            Reverse((container.importance, container.since, container.id))
        });
        live
    }
}

/// Sorts applications in service order; containers are taken in reverse.
pub(super) fn sort_in_service_order(applications: &mut [&Application], order: ApplicationOrder) {
    sort_by_key(applications, |application| match order {
        ApplicationOrder::Fifo => (Reverse(application.priority), 0, application.age),
        ApplicationOrder::Fair => (Reverse(0), application.used(), application.age),
    });
}

/// The victims of a round and its remaining budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub budget: u64,
    /// In the order chosen.
    pub victims: Vec<Victim>,
    containers: SortedSet<u64>,
    by_application: SortedMap<u64, u64>,
}

impl Selection {
    pub fn with_budget(budget: u64) -> Selection {
        Selection {
            budget,
            ..Selection::default()
        }
    }

    pub fn contains(&self, container: u64) -> bool {
        self.containers.contains(&container)
    }

    /// Adds a victim if the budget allows and the source accepts it; returns whether it did.
    pub fn add(&mut self, victim: Victim, source: &mut dyn Source) -> bool {
        if victim.size > self.budget || self.contains(victim.container) || !source.accepts(&victim)
        {
            return false;
        }
        self.budget -= victim.size;
        self.containers.insert(victim.container);
        *self.by_application.get_or_default(victim.application) += victim.size;
        self.victims.push(victim);
        true
    }

    /// Returns the victims of a leaf so far.
    pub fn of_queue(&self, queue: usize) -> impl Iterator<Item = &Victim> + '_ {
        self.victims
            .iter()
            .filter(move |victim| victim.queue == queue)
    }

    /// Returns the amount chosen of an application so far.
    pub fn of_application(&self, application: u64) -> u64 {
        self.by_application
            .get(&application)
            .copied()
            .unwrap_or_default()
    }
}

/// The amount to take from one leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    pub queue: usize,
    /// The last container may exceed it.
    pub obtain: u64,
    /// Amount that masters keep after all other containers are taken.
    pub masters_kept: Ratio,
    pub order: ApplicationOrder,
    pub pass: Pass,
    /// Whether reservations can be taken too.
    pub reserved: bool,
}

/// Chooses containers of a leaf; returns the amount that is still missing.
pub(super) fn take_from_leaf(
    applications: &[Application],
    demand: Demand,
    selection: &mut Selection,
    source: &mut dyn Source,
) -> u64 {
    let mut missing = demand.obtain;
    let mut sorted: Vec<&Application> = applications.iter().collect();
    sort_in_service_order(&mut sorted, demand.order);
    let mut masters = Vec::new();
    for application in sorted.into_iter().rev() {
        let free = |container: &Container| !selection.contains(container.id);
        let reserved = application
            .reserved
            .iter()
            .copied()
            .filter(|_| demand.reserved)
            .filter(free);
        let live = application
            .in_preemption_order()
            .into_iter()
            .filter(free)
            .filter(|one| !one.is_killable);
        let candidates: Vec<(Container, bool)> = reserved
            .map(|one| (one, false))
            .chain(live.map(|one| (one, one.is_master)))
            .collect();
        for (container, is_master) in candidates {
            if missing == 0 {
                return 0;
            }
            let victim = demand.victim(application, container);
            if is_master {
                masters.push(victim);
            } else if selection.add(victim, source) {
                missing = missing.saturating_sub(victim.size);
            }
        }
    }
    let mut spared: u64 = masters.iter().map(|victim| victim.size).sum();
    for victim in masters {
        if missing == 0 || Ratio::whole(spared) <= demand.masters_kept {
            return missing;
        }
        if selection.add(victim, source) {
            missing = missing.saturating_sub(victim.size);
            spared -= victim.size;
        }
    }
    missing
}

impl Demand {
    fn victim(&self, application: &Application, container: Container) -> Victim {
        Victim {
            container: container.id,
            size: container.size,
            application: application.id,
            queue: self.queue,
            pass: self.pass,
            reservation: None,
        }
    }
}
