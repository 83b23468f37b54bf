//! Which containers of a leaf are taken: of the least deserving application first, its youngest first,
//! masters last.
//!
//! Owns the walk through a leaf and the books of what a round chose. Does not own how much is to be taken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use napreduce_engine::{Ratio, Time};

use crate::capacity::configuration::ApplicationOrder;

/// An application in a leaf: here a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    pub id: u64,
    pub user: String,
    /// Larger is more important.
    pub priority: i32,
    /// Its place among the applications by age; the oldest has the smallest.
    pub age: u64,
    /// What it wants more.
    pub pending: u64,
    /// What it reserved: containers that wait for room on a node.
    pub reserved: Vec<Container>,
    /// What runs.
    pub live: Vec<Container>,
}

/// Something that can be taken: here a slot, with the attempt that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// Which; of the whole cluster, not of the application.
    pub id: u64,
    /// How much it holds.
    pub size: u64,
    /// The smaller the number the more important it is to its application.
    pub importance: u32,
    /// Since when it holds it, or waits; ties by number.
    pub since: Time,
    pub node: Option<u32>,
    /// The application cannot go on without it.
    pub is_master: bool,
    /// To be killed already, as soon as somebody needs it.
    pub is_killable: bool,
}

/// Which pass of a round chose a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// For a reservation of a more important queue.
    Priority,
    /// For a reservation.
    Reserved,
    /// For a queue that has less than it is guaranteed.
    Guarantee,
    /// For a queue that has its guarantee, but less of what is left than another.
    Balance,
    /// For another application of the same queue.
    IntraQueue,
}

/// A container to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    pub container: u64,
    /// What it holds.
    pub size: u64,
    pub application: u64,
    pub queue: usize,
    /// Who chose it.
    pub pass: Pass,
    /// The container that it is to make room for, where it is for one.
    pub reservation: Option<u64>,
}

impl Application {
    pub fn used(&self) -> u64 {
        self.live.iter().map(|container| container.size).sum()
    }

    /// What of it its masters have.
    pub(super) fn masters(&self) -> u64 {
        self.live.iter().filter(|container| container.is_master).map(|container| container.size).sum()
    }

    /// Its live containers as they are taken: the least important first, of these the youngest.
    pub(super) fn by_taking(&self) -> Vec<Container> {
        let mut live = self.live.clone();
        live.sort_by_key(|container| Reverse((container.importance, container.since, container.id)));
        live
    }
}

/// Puts applications in the order in which they are given to; they are taken from in the reverse.
pub(super) fn sort_by_giving(applications: &mut [&Application], order: ApplicationOrder) {
    applications.sort_by_key(|application| match order {
        ApplicationOrder::Fifo => (Reverse(application.priority), 0, application.age),
        ApplicationOrder::Fair => (Reverse(0), application.used(), application.age),
    });
}

/// What a round chose so far, and what it still may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// What may be taken yet.
    pub budget: u64,
    /// In the order chosen.
    pub victims: Vec<Victim>,
    containers: BTreeSet<u64>,
    by_application: BTreeMap<u64, u64>,
}

impl Chosen {
    /// Nothing yet, of so much at most.
    pub fn with_budget(budget: u64) -> Chosen {
        Chosen { budget, ..Chosen::default() }
    }

    /// Whether a container was chosen.
    pub fn holds(&self, container: u64) -> bool {
        self.containers.contains(&container)
    }

    /// Chooses a container if the budget is large enough for it.
    pub fn take(&mut self, victim: Victim) -> bool {
        if victim.size > self.budget || self.holds(victim.container) {
            return false;
        }
        self.budget -= victim.size;
        self.containers.insert(victim.container);
        *self.by_application.entry(victim.application).or_default() += victim.size;
        self.victims.push(victim);
        true
    }

    /// What was chosen of a leaf so far.
    pub fn of_queue(&self, queue: usize) -> impl Iterator<Item = &Victim> + '_ {
        self.victims.iter().filter(move |victim| victim.queue == queue)
    }

    /// How much was chosen of an application so far.
    pub fn of_application(&self, application: u64) -> u64 {
        self.by_application.get(&application).copied().unwrap_or_default()
    }
}

/// What is taken of one leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    pub queue: usize,
    /// How much; the last container may be more than that.
    pub obtain: u64,
    /// How much its masters may keep, once all else is taken.
    pub masters_kept: Ratio,
    /// The order of its applications.
    pub order: ApplicationOrder,
    /// On whose behalf.
    pub pass: Pass,
    /// What is reserved can be taken, too.
    pub reserved: bool,
}

/// Chooses containers of a leaf.
pub(super) fn take_from_leaf(applications: &[Application], demand: Demand, chosen: &mut Chosen) {
    let mut missing = demand.obtain;
    let mut sorted: Vec<&Application> = applications.iter().collect();
    sort_by_giving(&mut sorted, demand.order);
    let mut masters = Vec::new();
    for application in sorted.into_iter().rev() {
        let free = |container: &Container| !chosen.holds(container.id);
        let reserved = application.reserved.iter().copied().filter(|_| demand.reserved).filter(free);
        let live = application.by_taking().into_iter().filter(free).filter(|one| !one.is_killable);
        let candidates: Vec<(Container, bool)> =
            reserved.map(|one| (one, false)).chain(live.map(|one| (one, one.is_master))).collect();
        for (container, is_master) in candidates {
            if missing == 0 {
                return;
            }
            let victim = demand.victim(application, container);
            if is_master {
                masters.push(victim);
            } else if chosen.take(victim) {
                missing = missing.saturating_sub(victim.size);
            }
        }
    }
    let mut spared: u64 = masters.iter().map(|victim| victim.size).sum();
    for victim in masters {
        if missing == 0 || Ratio::whole(spared) <= demand.masters_kept {
            return;
        }
        if chosen.take(victim) {
            missing = missing.saturating_sub(victim.size);
            spared -= victim.size;
        }
    }
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
