//! What each queue should have: what it has or is guaranteed, and then a share of what is left, neediest
//! first.
//!
//! Owns the distribution from the root down. Does not own what is taken from a queue that has more.

use napreduce_engine::Ratio;

use super::tree::{QueueTree, Surplus};
use crate::capacity::order::Need;

/// How what is left is distributed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sharing {
    /// A leaf may grow beyond what it has and is guaranteed at the cost of another.
    pub beyond_guaranteed: bool,
    /// What a queue wants counts with what its reservations will give it.
    pub count_reserved: bool,
}

/// What each queue should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distribution {
    /// By the number of the queue.
    pub ideal: Vec<Ratio>,
    /// The leaves that wanted more than they were given at first, as they came to turn.
    pub wanting: Vec<usize>,
}

impl Distribution {
    /// The distribution of all that the root is guaranteed.
    pub fn of(tree: &QueueTree, sharing: Sharing) -> Distribution {
        let mut ideal = vec![Ratio::ZERO; tree.len()];
        if let Some(root) = ideal.first_mut() {
            *root = tree.queue(0).guaranteed;
        }
        let mut wanting = Vec::new();
        let surpluses = tree.surpluses();
        for parent in (0..tree.len()).filter(|&number| !tree.is_leaf(number)) {
            let mut group = Group { tree, sharing, left: ideal[parent], ideal: &mut ideal, came: Vec::new() };
            let guaranteed = |&child: &usize| tree.queue(child).guaranteed > Ratio::ZERO;
            let (first, last): (Vec<usize>, Vec<usize>) =
                tree.children(parent).iter().copied().partition(guaranteed);
            group.give(&first, &surpluses);
            group.give(&last, &surpluses);
            let came = group.came.into_iter().filter(|&child| tree.is_leaf(child));
            for leaf in came {
                if !wanting.contains(&leaf) {
                    wanting.push(leaf);
                }
            }
        }
        Distribution { ideal, wanting }
    }
}

/// The children of one queue while it is distributed among them.
struct Group<'a> {
    tree: &'a QueueTree,
    sharing: Sharing,
    /// What is not given yet; less than nothing while they have more than there is.
    left: Ratio,
    ideal: &'a mut Vec<Ratio>,
    came: Vec<usize>,
}

impl Group<'_> {
    /// Gives to children which all have a guarantee, or none of which has.
    fn give(&mut self, children: &[usize], surpluses: &[Surplus]) {
        for &child in children {
            let queue = self.tree.queue(child);
            let used = Ratio::whole(queue.used);
            let start = if used > queue.guaranteed {
                queue.guaranteed.min(used) + surpluses[child].untouchable
            } else {
                used
            };
            self.ideal[child] = start;
            self.left = self.left - start;
        }
        let wants = |child: &usize| {
            let queue = self.tree.queue(*child);
            self.ideal[*child] < Ratio::whole(queue.used + queue.pending)
        };
        let mut need: Vec<usize> = children.iter().copied().filter(wants).collect();
        while !need.is_empty() && self.left > Ratio::ZERO {
            need = self.pass(need);
        }
        // Without anything left they did not come to turn, but they want all the same.
        need.sort_by_key(|&child| (self.need(child), child));
        self.came.extend(need);
    }

    /// Offers what is left to the neediest; who goes on needing.
    fn pass(&mut self, mut need: Vec<usize>) -> Vec<usize> {
        let total = need.iter().fold(Ratio::ZERO, |sum, &child| sum + self.tree.queue(child).guaranteed);
        let count = Ratio::whole(need.len() as u64);
        let weight = |child: usize| {
            if total > Ratio::ZERO { self.tree.queue(child).guaranteed / total } else { Ratio::ONE / count }
        };
        // Brothers of equal need stay in the order of the tree, wherever they were put back.
        need.sort_by_key(|&child| (self.need(child), child));
        let neediest = need.iter().take_while(|&&child| self.need(child) == self.need(need[0])).count();
        let mut still = need.split_off(neediest);
        let offers: Vec<(usize, Ratio)> =
            need.iter().map(|&child| (child, rounded_half_up(self.left * weight(child)))).collect();
        self.came.extend(&need);
        for (child, offer) in offers {
            if self.left <= Ratio::ZERO {
                break;
            }
            let accepted = self.accepted(child, offer.min(self.left));
            self.ideal[child] = self.ideal[child] + accepted;
            self.left = self.left - accepted;
            if accepted > Ratio::ZERO {
                still.push(child);
            }
        }
        still
    }

    /// How much it needs more than its brothers, with what it is given so far.
    fn need(&self, child: usize) -> Need {
        let queue = self.tree.queue(child);
        Need::of(self.ideal[child], queue.guaranteed, queue.priority)
    }

    /// How much of an offer a queue can use.
    fn accepted(&self, child: usize, offer: Ratio) -> Ratio {
        let (queue, ideal) = (self.tree.queue(child), self.ideal[child]);
        let wanted =
            if self.sharing.count_reserved { queue.pending } else { self.tree.unreserved_pending(child) };
        let below_maximum = (queue.maximum - ideal).max(Ratio::ZERO);
        let mut accepted = offer.min(below_maximum).min(Ratio::whole(queue.used + wanted) - ideal);
        if self.tree.is_leaf(child) && !self.sharing.beyond_guaranteed {
            // So leaves that have their guarantee do not take from one another. A parent may have a hungry
            // leaf.
            let satisfied = Ratio::whole(queue.used).max(queue.guaranteed);
            accepted = accepted.min((satisfied - ideal).max(Ratio::ZERO));
        }
        accepted.max(Ratio::ZERO)
    }
}

/// To the nearest whole number, halves up.
pub(super) fn rounded_half_up(value: Ratio) -> Ratio {
    let doubled = 2 * value.numerator() + value.denominator();
    Ratio::new(doubled.div_euclid(2 * value.denominator()), 1)
}
