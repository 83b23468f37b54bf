//! The ideal share of each queue: what it uses up to its guarantee, plus a share of the remaining capacity,
//! neediest first. Distributed from the root down, as in YARN's `AbstractPreemptableResourceCalculator`.

use napreduce_engine::{Ratio, sort_by_key};

use super::tree::{QueueTree, Surplus};
use crate::capacity::order::Need;

/// Options of the distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sharing {
    /// Whether a leaf may grow beyond its usage and guarantee at the expense of another.
    pub beyond_guaranteed: bool,
    /// Whether demand that reservations will satisfy counts.
    pub count_reserved: bool,
}

/// The ideal shares of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Distribution {
    /// By queue number.
    pub ideal: Vec<Ratio>,
    /// Leaves that wanted more than their initial share, in the order visited.
    pub wanting: Vec<usize>,
}

impl Distribution {
    /// Distributes the guarantee of the root.
    pub fn new(tree: &QueueTree, sharing: Sharing) -> Distribution {
        let mut ideal = vec![Ratio::ZERO; tree.len()];
        if let Some(root) = ideal.first_mut() {
            *root = tree.queue(0).guaranteed;
        }
        let mut wanting = Vec::new();
        let surpluses = tree.surpluses();
        for parent in (0..tree.len()).filter(|&number| !tree.is_leaf(number)) {
            let mut group = Group {
                tree,
                sharing,
                left: ideal[parent],
                ideal: &mut ideal,
                visited: Vec::new(),
            };
            let guaranteed = |&child: &usize| tree.queue(child).guaranteed > Ratio::ZERO;
            let (first, last): (Vec<usize>, Vec<usize>) =
                tree.children(parent).iter().copied().partition(guaranteed);
            group.distribute(&first, &surpluses);
            group.distribute(&last, &surpluses);
            let visited = group
                .visited
                .into_iter()
                .filter(|&child| tree.is_leaf(child));
            for leaf in visited {
                if !wanting.contains(&leaf) {
                    wanting.push(leaf);
                }
            }
        }
        Distribution { ideal, wanting }
    }
}

/// The children of one queue during the distribution.
struct Group<'a> {
    tree: &'a QueueTree,
    sharing: Sharing,
    /// Undistributed amount; negative if the children exceed it.
    left: Ratio,
    ideal: &'a mut Vec<Ratio>,
    visited: Vec<usize>,
}

impl Group<'_> {
    /// Distributes to children that all have a guarantee, or all have none.
    fn distribute(&mut self, children: &[usize], surpluses: &[Surplus]) {
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
            need = self.offer_to_neediest(need);
        }
        // Nothing is left for these, but they still count as wanting.
        sort_by_key(&mut need, |&child| (self.need(child), child));
        self.visited.extend(need);
    }

    /// Offers the remainder to the neediest children. Returns the children that still need more.
    fn offer_to_neediest(&mut self, mut need: Vec<usize>) -> Vec<usize> {
        let total = need.iter().fold(Ratio::ZERO, |sum, &child| {
            sum + self.tree.queue(child).guaranteed
        });
        let count = Ratio::whole(need.len() as u64);
        let weight = |child: usize| {
            if total > Ratio::ZERO {
                self.tree.queue(child).guaranteed / total
            } else {
                Ratio::ONE / count
            }
        };
        // Siblings of equal need stay in tree order.
        sort_by_key(&mut need, |&child| (self.need(child), child));
        let neediest = need
            .iter()
            .take_while(|&&child| self.need(child) == self.need(need[0]))
            .count();
        let mut still = need.split_off(neediest);
        let offers: Vec<(usize, Ratio)> = need
            .iter()
            .map(|&child| (child, rounded_half_up(self.left * weight(child))))
            .collect();
        self.visited.extend(&need);
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

    /// Returns the need of a child with its current ideal share.
    fn need(&self, child: usize) -> Need {
        let queue = self.tree.queue(child);
        Need::new(self.ideal[child], queue.guaranteed, queue.priority)
    }

    /// Returns the part of an offer that a queue can use.
    fn accepted(&self, child: usize, offer: Ratio) -> Ratio {
        let queue = self.tree.queue(child);
        let ideal = self.ideal[child];
        let wanted = if self.sharing.count_reserved {
            queue.pending
        } else {
            self.tree.unreserved_pending(child)
        };
        let below_maximum = (queue.maximum - ideal).max(Ratio::ZERO);
        let mut accepted = offer
            .min(below_maximum)
            .min(Ratio::whole(queue.used + wanted) - ideal);
        if self.tree.is_leaf(child) && !self.sharing.beyond_guaranteed {
            // Satisfied leaves must not take from one another. A parent is exempt, since it may have a leaf
            // in need.
            let satisfied = Ratio::whole(queue.used).max(queue.guaranteed);
            accepted = accepted.min((satisfied - ideal).max(Ratio::ZERO));
        }
        accepted.max(Ratio::ZERO)
    }
}

/// Rounds to the nearest integer, halves up.
pub(super) fn rounded_half_up(value: Ratio) -> Ratio {
    let doubled = 2 * value.numerator() + value.denominator();
    Ratio::new(doubled.div_euclid(2 * value.denominator()), 1)
}
