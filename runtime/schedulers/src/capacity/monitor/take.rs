//! The amount to take from each queue in one round: applies the round's budget, the dead zone and the natural
//! termination factor (YARN's `PreemptableResourceCalculator`).

use napreduce_engine::Ratio;

use super::RoundSettings;
use super::ideal::{Distribution, rounded_half_up};
use super::tree::QueueTree;

/// Returns the amount to take from each leaf; zero for parents.
pub(super) fn obtained(
    tree: &QueueTree,
    distribution: &Distribution,
    settings: &RoundSettings,
    natural_termination: bool,
) -> Vec<u64> {
    let mut obtain = vec![0; tree.len()];
    for parent in (0..tree.len()).filter(|&number| !tree.is_leaf(number)) {
        let scale = scale_of(tree, distribution, parent, settings.allowed());
        let leaves = tree
            .children(parent)
            .iter()
            .copied()
            .filter(|&child| tree.is_leaf(child));
        for leaf in leaves.filter(|&leaf| is_beyond_dead_zone(tree, leaf, settings)) {
            let take = scaled_excess(tree, distribution, leaf, scale, settings.least);
            obtain[leaf] = if natural_termination {
                after_natural_termination(take, settings.natural_termination_factor)
                    .max(take.min(settings.least))
            } else {
                take
            };
        }
    }
    obtain
}

/// Returns the part of an amount that is requested now; the rest is expected to end by itself.
pub fn after_natural_termination(take: u64, factor: Ratio) -> u64 {
    whole(rounded_half_up(Ratio::whole(take) * factor))
}

/// Returns the scaling factor for siblings whose total excess is above the budget.
fn scale_of(tree: &QueueTree, distribution: &Distribution, parent: usize, allowed: u64) -> Ratio {
    let too_much = |&child: &usize| {
        (Ratio::whole(tree.queue(child).used) - distribution.ideal[child]).max(Ratio::ZERO)
    };
    let needed = tree
        .children(parent)
        .iter()
        .map(too_much)
        .fold(Ratio::ZERO, |sum, share| sum + share);
    let allowed = Ratio::whole(allowed);
    if needed <= allowed {
        Ratio::ONE
    } else {
        allowed / needed
    }
}

/// Returns the scaled excess of a leaf; at least `least` if the excess is that large.
fn scaled_excess(
    tree: &QueueTree,
    distribution: &Distribution,
    leaf: usize,
    scale: Ratio,
    least: u64,
) -> u64 {
    let queue = tree.queue(leaf);
    let wanted = Ratio::whole(queue.used + queue.pending);
    let floor = distribution.ideal[leaf].max(wanted.min(queue.guaranteed));
    let beyond = Ratio::whole(queue.used.saturating_sub(queue.killable)) - floor;
    whole(beyond * scale).max(whole(beyond).min(least))
}

/// Whether a leaf exceeds its guarantee by more than the dead zone.
fn is_beyond_dead_zone(tree: &QueueTree, leaf: usize, settings: &RoundSettings) -> bool {
    let queue = tree.queue(leaf);
    let ignored = queue.guaranteed * (Ratio::ONE + settings.dead_zone);
    !queue.preemption_disabled && Ratio::whole(queue.used) > ignored
}

/// Returns the integer part; zero for negative values.
fn whole(value: Ratio) -> u64 {
    value.of(1)
}
