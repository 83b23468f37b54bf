//! Makes room for reservations of important queues that have waited for long (YARN's
//! `QueuePriorityContainerCandidateSelector`).

use napreduce_engine::{Ratio, Span, sort_by_key};

use super::Arithmetic;
use super::reserved::{Occupants, OnNode};
use super::round::Round;
use super::tree::QueueTree;
use super::victims::{Pass, Victim};

/// Chooses containers of less important queues on nodes where a queue below its guarantee has waited for
/// longer than `delay`.
pub(super) fn select(round: &mut Round<'_>, delay: Span) {
    let occupants = Occupants::new(round);
    let mut marked = vec![0_u64; round.tree.len()];
    let mut waiting = occupants.waiting.clone();
    waiting.retain(|one| round.settings.now.since(one.container.since) > delay);
    sort_by_key(&mut waiting, |one| (one.container.since, one.container.id));
    for one in waiting {
        if !is_below_guarantee(round, one.queue, marked[one.queue]) {
            continue;
        }
        for victim in room_for(round, &occupants, &one) {
            if round.add(victim) {
                marked[one.queue] += victim.size;
            }
        }
    }
}

/// Whether a queue is below its guarantee, counting containers already marked for it but not its
/// reservations.
fn is_below_guarantee(round: &Round<'_>, queue: usize, marked: u64) -> bool {
    let state = round.tree.queue(queue);
    let holds = state.used.saturating_sub(state.reserved) + marked;
    match round.settings.arithmetic {
        Arithmetic::Published => Ratio::whole(holds) < state.guaranteed,
        Arithmetic::WholeSlots => Ratio::whole(holds + 1) <= state.guaranteed,
    }
}

/// Whether a queue can give another container. In whole slots, no queue falls below its guarantee.
fn can_give(round: &Round<'_>, queue: usize, given: u64) -> bool {
    let state = round.tree.queue(queue);
    let chosen: u64 = round
        .selection
        .of_queue(queue)
        .map(|victim| victim.size)
        .sum();
    match round.settings.arithmetic {
        _ if state.preemption_disabled => false,
        Arithmetic::Published => true,
        Arithmetic::WholeSlots => {
            state.used.saturating_sub(chosen + given) > state.guaranteed.of(1)
        }
    }
}

/// Returns the containers to take so that a reservation fits; empty if it fits already or cannot.
fn room_for(round: &Round<'_>, occupants: &Occupants, waiting: &OnNode) -> Vec<Victim> {
    let Some(node) = waiting.container.node else {
        return Vec::new();
    };
    let mut room = occupants.room_on(round, node);
    let mut budget = round.selection.budget;
    let mut victims = Vec::new();
    for one in occupants
        .candidates_on(node)
        .filter(|one| !round.selection.contains(one.container.id))
    {
        if room >= waiting.container.size {
            break;
        }
        let given: u64 = victims
            .iter()
            .filter(|victim: &&Victim| victim.queue == one.queue)
            .map(|one| one.size)
            .sum();
        let gives = can_give(round, one.queue, given);
        if one.container.size <= budget && gives && precedes(round.tree, waiting.queue, one.queue) {
            budget -= one.container.size;
            room += one.container.size;
            victims.push(one.victim(Pass::Priority, waiting));
        }
    }
    if room >= waiting.container.size {
        victims
    } else {
        Vec::new()
    }
}

/// Whether a queue is more important than another: compares their ancestors below the lowest common one.
fn precedes(tree: &QueueTree, queue: usize, other: usize) -> bool {
    let path = tree.path(queue);
    let other = tree.path(other);
    let parted = path
        .iter()
        .zip(&other)
        .find(|(mine, theirs)| mine != theirs);
    parted.is_some_and(|(&mine, &theirs)| tree.queue(mine).priority > tree.queue(theirs).priority)
}
