//! Makes room for reservations with what queues have too much, where the least must be taken for it.
//!
//! Owns that selector. Does not own how much a queue has too much.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use napreduce_engine::Ratio;

use super::round::Round;
use super::victims::{Container, Pass, Victim};

/// A reservation that waits, or a container that runs, on a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnNode {
    pub container: Container,
    pub application: u64,
    pub queue: usize,
}

/// What is on each node.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    pub running: BTreeMap<u32, Vec<OnNode>>,
    /// In the order of the leaves and their applications.
    pub waiting: Vec<OnNode>,
}

impl Occupants {
    /// Looks at all leaves.
    pub fn of(round: &mut Round<'_>) -> Occupants {
        let mut occupants = Occupants::default();
        let leaves: Vec<usize> = round.tree.leaves().collect();
        for queue in leaves {
            for application in round.applications(queue) {
                let on_node =
                    |&container: &Container| OnNode { container, application: application.id, queue };
                occupants.waiting.extend(application.reserved.iter().map(on_node));
                for one in application.live.iter().map(on_node) {
                    if let Some(node) = one.container.node {
                        occupants.running.entry(node).or_default().push(one);
                    }
                }
            }
        }
        for running in occupants.running.values_mut() {
            running.sort_by_key(|one| Reverse((one.container.since, one.container.id)));
        }
        occupants
    }

    /// What runs on a node, youngest first, masters and those already killable left out.
    pub fn takeable_on(&self, node: u32) -> impl Iterator<Item = OnNode> + '_ {
        let running = self.running.get(&node).into_iter().flatten().copied();
        running.filter(|one| !one.container.is_master && !one.container.is_killable)
    }

    /// What of a node is free, or will be as soon as somebody needs it.
    pub fn room_on(&self, round: &Round<'_>, node: u32) -> u64 {
        let free = round.settings.nodes.iter().find(|one| one.id == node).map_or(0, |one| one.free);
        let running = self.running.get(&node).into_iter().flatten();
        let going = running.filter(|one| one.container.is_killable || round.chosen.holds(one.container.id));
        free + going.map(|one| one.container.size).sum::<u64>()
    }
}

impl OnNode {
    /// It, chosen by a pass for one that waits.
    pub fn victim(&self, pass: Pass, waiting: &OnNode) -> Victim {
        Victim {
            container: self.container.id,
            size: self.container.size,
            application: self.application,
            queue: self.queue,
            pass,
            reservation: Some(waiting.container.id),
        }
    }
}

/// Chooses containers for reservations, the cheapest first; `obtain` is what each leaf has too much.
pub(super) fn select(round: &mut Round<'_>, mut obtain: Vec<u64>) {
    let occupants = Occupants::of(round);
    let mut by_cost: Vec<(Ratio, u32, u64, OnNode)> = Vec::new();
    for waiting in &occupants.waiting {
        let Some(node) = waiting.container.node else { continue };
        if let Some(victims) = room_for(round, &occupants, waiting, &obtain) {
            let taken: u64 = victims.iter().map(|victim| victim.size).sum();
            let cost = Ratio::whole(taken) / Ratio::whole(waiting.container.size.max(1));
            by_cost.push((cost, node, waiting.container.id, *waiting));
        }
    }
    by_cost.sort_by_key(|&(cost, node, id, _)| (cost, node, id));
    for (_, _, _, waiting) in by_cost {
        // Asked again: what an earlier one took is neither there any more, nor in the budget.
        for victim in room_for(round, &occupants, &waiting, &obtain).unwrap_or_default() {
            if round.chosen.take(victim) {
                obtain[victim.queue] -= victim.size;
            }
        }
    }
}

/// What must be taken so that a reservation fits; nothing if it fits already, or cannot.
fn room_for(
    round: &Round<'_>,
    occupants: &Occupants,
    waiting: &OnNode,
    obtain: &[u64],
) -> Option<Vec<Victim>> {
    let node = waiting.container.node?;
    let (mut room, mut budget) = (occupants.room_on(round, node), round.chosen.budget);
    let (mut left, mut victims) = (obtain.to_vec(), Vec::new());
    if room >= waiting.container.size {
        return None;
    }
    for one in occupants.takeable_on(node).filter(|one| !round.chosen.holds(one.container.id)) {
        let size = one.container.size;
        if size > left[one.queue] || size > budget {
            continue;
        }
        left[one.queue] -= size;
        budget -= size;
        room += size;
        victims.push(one.victim(Pass::Reserved, waiting));
        if room >= waiting.container.size {
            return Some(victims);
        }
    }
    None
}
