//! What the monitor knows of the queues, and what each has beyond its guarantee.
//!
//! Owns the snapshot of one round. Does not own where its numbers come from, nor what follows from them.

use napreduce_engine::Ratio;

/// One queue at the start of a round. All amounts are of one resource in one unit; here these are slots of
/// one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// Its name, for people.
    pub name: String,
    /// The number of its parent, which comes before it; the root has none.
    pub parent: Option<usize>,
    /// What it is guaranteed. Fractions count: cut to nothing, a small guarantee would be taken from when
    /// nobody wants.
    pub guaranteed: Ratio,
    /// What it may have at most.
    pub maximum: Ratio,
    /// What it has, reservations included.
    pub used: u64,
    /// What of that is reserved and not in use.
    pub reserved: u64,
    /// What of it is to be killed already as soon as somebody needs it.
    pub killable: u64,
    /// What it wants more; of a leaf only, a parent wants what its leaves want.
    pub pending: u64,
    /// Larger is more important.
    pub priority: i32,
    /// Nothing is taken from it.
    pub preemption_disabled: bool,
}

/// The queues of a round, each after its parent; the first is the root. Brothers are in the order of the
/// tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTree {
    queues: Vec<QueueState>,
    children: Vec<Vec<usize>>,
    unreserved: Vec<u64>,
}

/// What a queue has beyond its guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Surplus {
    /// Nobody may take it.
    pub untouchable: Ratio,
    /// It may be taken.
    pub preemptable: Ratio,
}

impl QueueTree {
    /// A tree of these queues.
    ///
    /// # Panics
    /// When the first is not the only root, or a parent does not come before its children.
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
        unreserved.extend(queues.iter().map(|queue| queue.pending.saturating_sub(queue.reserved)));
        for number in (0..queues.len()).rev().filter(|&number| !children[number].is_empty()) {
            queues[number].pending = children[number].iter().map(|&child| queues[child].pending).sum();
            unreserved[number] = children[number].iter().map(|&child| unreserved[child]).sum();
        }
        QueueTree { queues, children, unreserved }
    }

    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether there is no queue.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub fn queue(&self, number: usize) -> &QueueState {
        &self.queues[number]
    }

    /// The queues right below one.
    pub fn children(&self, number: usize) -> &[usize] {
        &self.children[number]
    }

    /// Whether it has no queue below it.
    pub fn is_leaf(&self, number: usize) -> bool {
        self.children[number].is_empty()
    }

    /// The queues without children, in the order of the tree.
    pub fn leaves(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|&number| self.is_leaf(number))
    }

    /// What it wants beyond what its reservations will give it.
    pub(super) fn unreserved_pending(&self, number: usize) -> u64 {
        self.unreserved[number]
    }

    /// The way from the root to a queue, both included.
    pub(super) fn path(&self, number: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(number), |&queue| self.queues[queue].parent).collect();
        path.reverse();
        path
    }

    /// What each queue has beyond its guarantee, from the leaves up: of a parent only what its children may
    /// give can be taken.
    pub(super) fn surpluses(&self) -> Vec<Surplus> {
        let none = Surplus { untouchable: Ratio::ZERO, preemptable: Ratio::ZERO };
        let mut surpluses = vec![none; self.len()];
        for number in (0..self.len()).rev() {
            let queue = &self.queues[number];
            let extra = (Ratio::whole(queue.used) - queue.guaranteed).max(Ratio::ZERO);
            let givable = if self.is_leaf(number) {
                if queue.preemption_disabled { Ratio::ZERO } else { extra }
            } else {
                let below = self.children[number].iter().map(|&child| surpluses[child].preemptable);
                below.fold(Ratio::ZERO, |sum, share| sum + share)
            };
            surpluses[number] =
                Surplus { untouchable: (extra - givable).max(Ratio::ZERO), preemptable: givable.min(extra) };
        }
        surpluses
    }
}
