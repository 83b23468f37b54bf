//! Makes room for reservations with the excess of queues, on the nodes with the lowest cost (YARN's
//! `ReservedContainerCandidatesSelector`).

use std::cmp::Reverse;

use napreduce_engine::{Ratio, SortedMap, sort_by_key};

use super::round::Round;
use super::victims::{Container, Pass, Victim};

/// A running container or a reservation on a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnNode {
    pub container: Container,
    pub application: u64,
    pub queue: usize,
}

/// Containers and reservations by node.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    pub running: SortedMap<u32, Vec<OnNode>>,
    /// In the order of leaves and applications.
    pub waiting: Vec<OnNode>,
}

impl Occupants {
    pub fn new(round: &mut Round<'_>) -> Occupants {
        let mut occupants = Occupants::default();
        let leaves: Vec<usize> = round.tree.leaves().collect();
        for queue in leaves {
            for application in round.applications(queue) {
                let on_node = |&container: &Container| OnNode {
                    container,
                    application: application.id,
                    queue,
                };
                occupants
                    .waiting
                    .extend(application.reserved.iter().map(on_node));
                for one in application.live.iter().map(on_node) {
                    if let Some(node) = one.container.node {
                        occupants.running.get_or_default(node).push(one);
                    }
                }
            }
        }
        for running in occupants.running.values_mut() {
            sort_by_key(running, |one| {
                Reverse((one.container.since, one.container.id))
            });
        }
        occupants
    }

    /// Returns the running containers of a node, youngest first, without masters and killable ones.
    pub fn candidates_on(&self, node: u32) -> impl Iterator<Item = OnNode> + '_ {
        let running = self.running.get(&node).into_iter().flatten().copied();
        running.filter(|one| !one.container.is_master && !one.container.is_killable)
    }

    /// Returns the capacity of a node that is free or becomes free on demand.
    pub fn room_on(&self, round: &Round<'_>, node: u32) -> u64 {
        let free = round
            .settings
            .nodes
            .iter()
            .find(|one| one.id == node)
            .map_or(0, |one| one.free);
        let running = self.running.get(&node).into_iter().flatten();
        let leaving = running
            .filter(|one| one.container.is_killable || round.selection.contains(one.container.id));
        free + leaving.map(|one| one.container.size).sum::<u64>()
    }
}

impl OnNode {
    /// Returns this container as the victim of a pass for a reservation.
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

/// Chooses containers for reservations, lowest cost first; `obtain` is the excess of each leaf.
pub(super) fn select(round: &mut Round<'_>, mut obtain: Vec<u64>) {
    let occupants = Occupants::new(round);
    let mut by_cost: Vec<(Ratio, u32, u64, OnNode)> = Vec::new();
    for waiting in &occupants.waiting {
        let Some(node) = waiting.container.node else {
            continue;
        };
        if let Some(victims) = room_for(round, &occupants, waiting, &obtain) {
            let taken: u64 = victims.iter().map(|victim| victim.size).sum();
            let cost = Ratio::whole(taken) / Ratio::whole(waiting.container.size.max(1));
            by_cost.push((cost, node, waiting.container.id, *waiting));
        }
    }
    sort_by_key(&mut by_cost, |&(cost, node, id, _)| (cost, node, id));
    for (_, _, _, waiting) in by_cost {
        // Recomputed: earlier reservations have used up candidates and budget.
        for victim in room_for(round, &occupants, &waiting, &obtain).unwrap_or_default() {
            if round.add(victim) {
                obtain[victim.queue] -= victim.size;
            }
        }
    }
}

/// Returns the containers to take so that a reservation fits; `None` if it fits already or cannot.
fn room_for(
    round: &Round<'_>,
    occupants: &Occupants,
    waiting: &OnNode,
    obtain: &[u64],
) -> Option<Vec<Victim>> {
    let node = waiting.container.node?;
    let mut room = occupants.room_on(round, node);
    let mut budget = round.selection.budget;
    let mut left = obtain.to_vec();
    let mut victims = Vec::new();
    if room >= waiting.container.size {
        return None;
    }
    for one in occupants
        .candidates_on(node)
        .filter(|one| !round.selection.contains(one.container.id))
    {
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
