//! Ideal amounts and amounts to take in whole slots. The published arithmetic (`ideal`, `take`) rounds shares
//! of megabytes; with few slots such a rounding is a whole slot, and a queue may get nothing. Here the
//! guarantee of a queue is the integer part of its share, all guarantees fit into the cluster, and what is
//! left is given slot by slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use napreduce_engine::{Ratio, sort_by_key};

use super::RoundSettings;
use super::ideal::{Distribution, Sharing, rounded_half_up};
use super::tree::QueueTree;
use crate::capacity::order::Need;

/// The bounds of one queue's ideal amount.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    /// Its guarantee, as far as it has demand, and what cannot be taken from it.
    least: u64,
    /// What cannot be taken from it.
    kept: u64,
    /// What it can use, without growing beyond its guarantee at the cost of others.
    most: u64,
    /// Usage and demand, within its maximum.
    wanted: u64,
}

/// Distributes the slots of the cluster.
pub(super) fn distribute(tree: &QueueTree, sharing: Sharing) -> Distribution {
    let bounds = bounds(tree, sharing);
    let mut ideal = vec![0; tree.len()];
    if let Some(root) = ideal.first_mut() {
        *root = whole(tree.queue(0).guaranteed);
    }
    for parent in (0..tree.len()).filter(|&number| !tree.is_leaf(number)) {
        let slots = ideal[parent];
        distribute_to_children(tree, parent, slots, &bounds, &mut ideal);
    }
    let is_wanting = |leaf: &usize| tree.queue(*leaf).pending > 0;
    let mut wanting: Vec<usize> = tree.leaves().filter(is_wanting).collect();
    sort_by_key(&mut wanting, |&leaf| (need(tree, leaf, ideal[leaf]), leaf));
    Distribution {
        ideal: ideal.into_iter().map(Ratio::whole).collect(),
        wanting,
    }
}

fn bounds(tree: &QueueTree, sharing: Sharing) -> Vec<Bounds> {
    let mut bounds = vec![Bounds::default(); tree.len()];
    for number in (0..tree.len()).rev() {
        let queue = tree.queue(number);
        let guaranteed = whole(queue.guaranteed);
        let maximum = whole(queue.maximum).max(guaranteed);
        let mut kept = queue.used.min(guaranteed);
        let mut most = 0;
        let mut wanted = 0;
        if tree.is_leaf(number) {
            if queue.preemption_disabled {
                kept = queue.used;
            }
            wanted = queue.used + queue.pending;
            most = if sharing.beyond_guaranteed {
                wanted
            } else {
                wanted.min(queue.used.max(guaranteed))
            };
        } else {
            let children = || tree.children(number).iter().map(|&child| bounds[child]);
            kept = kept.max(children().map(|child| child.kept).sum());
            wanted = children()
                .map(|child| child.wanted)
                .sum::<u64>()
                .max(wanted);
            most = children().map(|child| child.most).sum::<u64>().max(most);
        }
        wanted = wanted.min(maximum);
        let least = wanted.min(guaranteed).max(kept);
        most = most.min(maximum).max(least);
        bounds[number] = Bounds {
            least,
            kept,
            most,
            wanted,
        };
    }
    bounds
}

/// Gives every child its least amount, and the remaining slots one by one to the neediest child. Children
/// without a guarantee come last.
fn distribute_to_children(
    tree: &QueueTree,
    parent: usize,
    slots: u64,
    bounds: &[Bounds],
    ideal: &mut [u64],
) {
    let children = tree.children(parent);
    let mut left = slots;
    for &child in children {
        ideal[child] = bounds[child].least;
        left = left.saturating_sub(bounds[child].least);
    }
    let extra: u64 = children
        .iter()
        .map(|&child| bounds[child].most - bounds[child].least)
        .sum();
    if extra <= left {
        for &child in children {
            ideal[child] = bounds[child].most;
        }
        return;
    }
    let rank = |child: usize, amount: u64| {
        let queue = tree.queue(child);
        let has_no_guarantee = queue.guaranteed <= Ratio::ZERO;
        let is_held = amount < queue.used;
        Reverse((
            has_no_guarantee,
            need(tree, child, amount),
            !is_held,
            amount,
            child,
        ))
    };
    let mut neediest = BinaryHeap::new();
    for &child in children {
        if ideal[child] < bounds[child].most {
            neediest.push(rank(child, ideal[child]));
        }
    }
    while left > 0 {
        let Some(Reverse((.., child))) = neediest.pop() else {
            return;
        };
        ideal[child] += 1;
        left -= 1;
        if ideal[child] < bounds[child].most {
            neediest.push(rank(child, ideal[child]));
        }
    }
}

fn need(tree: &QueueTree, number: usize, amount: u64) -> Need {
    let queue = tree.queue(number);
    Need::new(Ratio::whole(amount), queue.guaranteed, queue.priority)
}

/// Returns the amount to take from each leaf in this round; zero for parents.
///
/// The total is what queues lack, at most the budget, of that the natural termination factor, and at least
/// `least`. It is divided by the excess of the leaves, fractions by largest remainder.
pub(super) fn obtained(
    tree: &QueueTree,
    distribution: &Distribution,
    settings: &RoundSettings,
    natural_termination: bool,
) -> Vec<u64> {
    let excess = excess(tree, distribution, settings);
    let available: u64 = excess.iter().sum();
    let lacking: u64 = tree
        .leaves()
        .map(|leaf| lack(tree, distribution, leaf))
        .sum();
    let mut total = available.min(lacking).min(settings.allowed());
    if natural_termination {
        let least = total.min(settings.least);
        let part = Ratio::whole(total) * settings.natural_termination_factor;
        total = whole(rounded_half_up(part)).clamp(least, total);
    }
    divide(total, &excess)
}

/// Returns the excess of each leaf. A leaf in its dead zone gives nothing to queues that lack no more than
/// the dead zone of their own guarantee.
fn excess(tree: &QueueTree, distribution: &Distribution, settings: &RoundSettings) -> Vec<u64> {
    let mut excess = vec![0; tree.len()];
    let mut in_dead_zone = Vec::new();
    let mut beyond_dead_zone = 0;
    for leaf in tree.leaves() {
        let queue = tree.queue(leaf);
        if queue.preemption_disabled {
            continue;
        }
        let used = queue.used.saturating_sub(queue.killable);
        excess[leaf] = used.saturating_sub(whole(distribution.ideal[leaf]));
        let tolerated = queue.guaranteed * (Ratio::ONE + settings.dead_zone);
        if Ratio::whole(queue.used) > tolerated {
            beyond_dead_zone += excess[leaf];
        } else if excess[leaf] > 0 {
            in_dead_zone.push(leaf);
        }
    }
    let tolerated = |leaf: usize| whole(tree.queue(leaf).guaranteed * settings.dead_zone);
    let far_below = |leaf: usize| lack(tree, distribution, leaf).saturating_sub(tolerated(leaf));
    let mut needed = tree
        .leaves()
        .map(far_below)
        .sum::<u64>()
        .saturating_sub(beyond_dead_zone);
    for leaf in in_dead_zone {
        excess[leaf] = excess[leaf].min(needed);
        needed -= excess[leaf];
    }
    excess
}

/// Returns how many slots a leaf lacks.
fn lack(tree: &QueueTree, distribution: &Distribution, leaf: usize) -> u64 {
    whole(distribution.ideal[leaf]).saturating_sub(tree.queue(leaf).used)
}

/// Divides a total in proportion to amounts whose sum is not smaller, fractions by largest remainder.
fn divide(total: u64, amounts: &[u64]) -> Vec<u64> {
    let sum: u128 = amounts.iter().map(|amount| u128::from(*amount)).sum();
    let mut parts = vec![0; amounts.len()];
    if sum == 0 {
        return parts;
    }
    let mut left = total;
    let mut remainders = Vec::new();
    for (number, &amount) in amounts.iter().enumerate() {
        let product = u128::from(total) * u128::from(amount);
        parts[number] = (product / sum) as u64;
        left -= parts[number];
        if product % sum > 0 {
            remainders.push((Reverse(product % sum), number));
        }
    }
    remainders.sort_unstable();
    for (_, number) in remainders.into_iter().take(left as usize) {
        parts[number] += 1;
    }
    parts
}

/// Returns the integer part; zero for negative values.
fn whole(value: Ratio) -> u64 {
    value.of(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_divided_by_largest_remainder() {
        assert_eq!(divide(5, &[3, 3, 3]), [2, 2, 1]);
        assert_eq!(divide(3, &[10, 0, 1]), [3, 0, 0]);
        assert_eq!(divide(0, &[1, 2]), [0, 0]);
        assert_eq!(divide(4, &[4, 0]), [4, 0]);
    }
}
