//! A snapshot of the queues for one round, and their surplus over the guarantee.

use napreduce_engine::Ratio;

/// One queue at the start of a round. All amounts are of one resource; here slots of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    pub name: String,
    /// Number of the parent, which precedes it; `None` for the root.
    pub parent: Option<usize>,
    /// Not rounded: a small guarantee cut to zero would be taken from without demand.
    pub guaranteed: Ratio,
    pub maximum: Ratio,
    /// Includes reservations.
    pub used: u64,
    /// Reserved but not in use.
    pub reserved: u64,
    /// Marked to be killed on demand.
    pub killable: u64,
    /// Unmet demand; for a parent, the sum over its leaves.
    pub pending: u64,
    /// Larger is more important.
    pub priority: i32,
    pub preemption_disabled: bool,
}

/// The queues of a round, parents before children; the root is first. Siblings keep the order of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTree {
    queues: Vec<QueueState>,
    children: Vec<Vec<usize>>,
    unreserved: Vec<u64>,
}

/// The usage of a queue above its guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Surplus {
    pub untouchable: Ratio,
    pub preemptable: Ratio,
}

impl QueueTree {
    /// Builds the tree.
    ///
    /// # Panics
    /// Panics if the first queue is not the only root, or a parent does not precede its children.
    pub fn new(mut queues: Vec<QueueState>) -> QueueTree {
        let mut children = vec![Vec::new(); queues.len()];
        for (number, queue) in queues.iter().enumerate() {
            match queue.parent {
                None => assert!(number == 0, "{} is a second root", queue.name),
                Some(parent) => {
                    assert!(parent < number, "{} comes before its parent", queue.name);
                    children[parent].push(number);
                }
            }
        }
        let mut unreserved: Vec<u64> = Vec::with_capacity(queues.len());
        unreserved.extend(
            queues
                .iter()
                .map(|queue| queue.pending.saturating_sub(queue.reserved)),
        );
        for number in (0..queues.len())
            .rev()
            .filter(|&number| !children[number].is_empty())
        {
            queues[number].pending = children[number]
                .iter()
                .map(|&child| queues[child].pending)
                .sum();
            unreserved[number] = children[number]
                .iter()
                .map(|&child| unreserved[child])
                .sum();
        }
        QueueTree {
            queues,
            children,
            unreserved,
        }
    }

    pub fn len(&self) -> usize {
        self.queues.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub fn queue(&self, number: usize) -> &QueueState {
        &self.queues[number]
    }

    pub fn children(&self, number: usize) -> &[usize] {
        &self.children[number]
    }

    pub fn is_leaf(&self, number: usize) -> bool {
        self.children[number].is_empty()
    }

    /// Returns the leaves in tree order.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|&number| self.is_leaf(number))
    }

    /// Returns the demand that reservations will not satisfy.
    pub(super) fn unreserved_pending(&self, number: usize) -> u64 {
        self.unreserved[number]
    }

    /// Returns the path from the root to a queue, inclusive.
    pub(super) fn path(&self, number: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(number), |&queue| self.queues[queue].parent).collect();
        path.reverse();
        path
    }

    /// Returns the surplus of each queue, from the leaves up. The preemptable surplus of a parent is limited
    /// to that of its children.
    pub(super) fn surpluses(&self) -> Vec<Surplus> {
        let zero = Surplus {
            untouchable: Ratio::ZERO,
            preemptable: Ratio::ZERO,
        };
        let mut surpluses = vec![zero; self.len()];
        for number in (0..self.len()).rev() {
            let queue = &self.queues[number];
            let extra = (Ratio::whole(queue.used) - queue.guaranteed).max(Ratio::ZERO);
            let givable = if self.is_leaf(number) {
                if queue.preemption_disabled {
                    Ratio::ZERO
                } else {
                    extra
                }
            } else {
                let below = self.children[number]
                    .iter()
                    .map(|&child| surpluses[child].preemptable);
                below.fold(Ratio::ZERO, |sum, share| sum + share)
            };
            surpluses[number] = Surplus {
                untouchable: (extra - givable).max(Ratio::ZERO),
                preemptable: givable.min(extra),
            };
        }
        surpluses
    }
}
