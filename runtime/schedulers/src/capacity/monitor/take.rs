//! How much of each queue is to be taken in one round.
//!
//! Owns the limit of a round, the dead zone and the allowance for tasks that end by themselves. Does not own
//! from whom in a queue it is taken.

use napreduce_engine::Ratio;

use super::RoundSettings;
use super::ideal::{Distribution, rounded_half_up};
use super::tree::QueueTree;

/// How much of each queue is to be taken; of parents nothing, it is their leaves' business.
pub(super) fn obtained(
    tree: &QueueTree,
    distribution: &Distribution,
    settings: &RoundSettings,
    natural_termination: bool,
) -> Vec<u64> {
    let mut obtain = vec![0; tree.len()];
    for parent in (0..tree.len()).filter(|&number| !tree.is_leaf(number)) {
        let scale = scale_of(tree, distribution, parent, settings.allowed());
        let leaves = tree.children(parent).iter().copied().filter(|&child| tree.is_leaf(child));
        for leaf in leaves.filter(|&leaf| is_beyond_dead_zone(tree, leaf, settings)) {
            let take = due(tree, distribution, leaf, scale, settings.least);
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

/// What is asked for of an amount to be taken: some of its holders will end by themselves in the meantime.
pub fn after_natural_termination(take: u64, factor: Ratio) -> u64 {
    whole(rounded_half_up(Ratio::whole(take) * factor))
}

/// Which part of what brothers have too much may be taken, so that no more is taken than is allowed.
fn scale_of(tree: &QueueTree, distribution: &Distribution, parent: usize, allowed: u64) -> Ratio {
    let too_much =
        |&child: &usize| (Ratio::whole(tree.queue(child).used) - distribution.ideal[child]).max(Ratio::ZERO);
    let needed = tree.children(parent).iter().map(too_much).fold(Ratio::ZERO, |sum, share| sum + share);
    let allowed = Ratio::whole(allowed);
    if needed <= allowed { Ratio::ONE } else { allowed / needed }
}

/// What is to be taken of a queue at that scale; at least `least` if there is so much, which is nothing as
/// published.
fn due(tree: &QueueTree, distribution: &Distribution, leaf: usize, scale: Ratio, least: u64) -> u64 {
    let queue = tree.queue(leaf);
    let wanted = Ratio::whole(queue.used + queue.pending);
    let floor = distribution.ideal[leaf].max(wanted.min(queue.guaranteed));
    let beyond = Ratio::whole(queue.used.saturating_sub(queue.killable)) - floor;
    whole(beyond * scale).max(whole(beyond).min(least))
}

/// Whether so much of a queue is beyond its guarantee that something is done about it.
fn is_beyond_dead_zone(tree: &QueueTree, leaf: usize, settings: &RoundSettings) -> bool {
    let queue = tree.queue(leaf);
    let ignored = queue.guaranteed * (Ratio::ONE + settings.dead_zone);
    !queue.preemption_disabled && Ratio::whole(queue.used) > ignored
}

/// The whole part; nothing of what is negative.
fn whole(value: Ratio) -> u64 {
    value.of(1)
}
