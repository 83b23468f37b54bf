//! Makes room for what important queues reserved long ago and still wait for.
//!
//! Owns that selector. Does not own the order of queues for anything else.

use napreduce_engine::{Ratio, Span};

use super::reserved::{Occupants, OnNode};
use super::round::Round;
use super::tree::QueueTree;
use super::victims::{Pass, Victim};

/// Chooses containers of less important queues on the nodes where a queue below its guarantee waits for
/// longer than `delay`.
pub(super) fn select(round: &mut Round<'_>, delay: Span) {
    let occupants = Occupants::of(round);
    let mut marked = vec![0_u64; round.tree.len()];
    let mut waiting = occupants.waiting.clone();
    waiting.retain(|one| round.settings.now.since(one.container.since) > delay);
    waiting.sort_by_key(|one| (one.container.since, one.container.id));
    for one in waiting {
        if !is_below_guarantee(round.tree, one.queue, marked[one.queue]) {
            continue;
        }
        for victim in room_for(round, &occupants, &one) {
            if round.chosen.take(victim) {
                marked[one.queue] += victim.size;
            }
        }
    }
}

/// Whether a queue has less than its guarantee, with what is already to be taken for it and without what it
/// only reserved.
fn is_below_guarantee(tree: &QueueTree, queue: usize, marked: u64) -> bool {
    let state = tree.queue(queue);
    Ratio::whole(state.used.saturating_sub(state.reserved) + marked) < state.guaranteed
}

/// What must be taken so that a reservation fits; nothing if it fits already, or cannot.
fn room_for(round: &Round<'_>, occupants: &Occupants, waiting: &OnNode) -> Vec<Victim> {
    let Some(node) = waiting.container.node else { return Vec::new() };
    let (mut room, mut budget) = (occupants.room_on(round, node), round.chosen.budget);
    let mut victims = Vec::new();
    for one in occupants.takeable_on(node).filter(|one| !round.chosen.holds(one.container.id)) {
        if room >= waiting.container.size {
            break;
        }
        let disabled = round.tree.queue(one.queue).preemption_disabled;
        if one.container.size <= budget && !disabled && is_above(round.tree, waiting.queue, one.queue) {
            budget -= one.container.size;
            room += one.container.size;
            victims.push(one.victim(Pass::Priority, waiting));
        }
    }
    if room >= waiting.container.size { victims } else { Vec::new() }
}

/// Whether a queue is more important than another: their ancestors just below the lowest they share decide.
fn is_above(tree: &QueueTree, queue: usize, other: usize) -> bool {
    let (path, other) = (tree.path(queue), tree.path(other));
    let parted = path.iter().zip(&other).find(|(mine, theirs)| mine != theirs);
    parted.is_some_and(|(&mine, &theirs)| tree.queue(mine).priority > tree.queue(theirs).priority)
}
