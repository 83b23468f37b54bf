//! Assignment of a free slot: from the root down to the queue with the smallest fraction of its guarantee,
//! and there to the first job that can use it. Respects maximum capacities and user limits.

use std::cmp::{Ordering, Reverse};

use napreduce_engine::{JobId, SortedMap, TaskKind, is_other_first, sort_by};

use super::usage::Usage;

/// Why no job got a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declined {
    /// No job below its limits can use a slot of this worker.
    WorkerUnsuitable,
    /// Every queue or user with demand is at its limit.
    AtLimits,
}

/// The assignment of one free slot.
pub(super) struct Assignment<'a> {
    pub usage: &'a Usage,
    pub kind: TaskKind,
    /// Total slots of the kind.
    pub slots: u32,
    /// Whether queues below the whole slots of their guarantee go first, as the monitor would restore these.
    pub whole_slots_first: bool,
}

impl Assignment<'_> {
    /// Offers the slot to jobs in order of need until one accepts it.
    pub fn assign(&self, accepts: &mut dyn FnMut(JobId) -> bool) -> Result<(), Declined> {
        let mut offered = false;
        let mut offer = |job| {
            offered = true;
            accepts(job)
        };
        if self.assign_below(0, &mut offer) {
            return Ok(());
        }
        Err(if offered {
            Declined::WorkerUnsuitable
        } else {
            Declined::AtLimits
        })
    }

    /// With slots shared by both kinds: whether the first job in order wants the slot for a task of the other
    /// kind. Within a job, maps go first.
    pub fn other_kind_first(&self) -> bool {
        let wants = |queue: usize, kind| self.usage.of(kind, queue).wanting_below > 0;
        let mut queue = 0;
        while !self.usage.queues.queue(queue).children.is_empty() {
            let children = self.usage.queues.queue(queue).children.iter().copied();
            let able = children.filter(|&child| self.may_grow(child));
            let able: Vec<usize> = able
                .filter(|&child| TaskKind::ALL.iter().any(|kind| wants(child, *kind)))
                .collect();
            let Some(first) = self.first_of(&able) else {
                return false;
            };
            queue = able[first];
        }
        is_other_first(self.kind, |kind| self.usage.of(kind, queue).wanting.first())
    }

    /// Returns the jobs that want slots, in the order in which one would be offered to them now.
    pub fn order(&self) -> Vec<JobId> {
        let mut jobs = Vec::new();
        self.add_in_order(0, &mut jobs);
        jobs
    }

    fn add_in_order(&self, queue: usize, jobs: &mut Vec<JobId>) {
        let children = &self.usage.queues.queue(queue).children;
        if children.is_empty() {
            jobs.extend(
                self.usage
                    .of(self.kind, queue)
                    .wanting
                    .iter()
                    .map(|(.., job)| *job),
            );
            return;
        }
        let mut children: Vec<usize> = children
            .iter()
            .copied()
            .filter(|&child| self.may_grow(child))
            .collect();
        sort_by(&mut children, |&one, &other| self.compare(one, other));
        for child in children {
            self.add_in_order(child, jobs);
        }
    }

    /// Whether the queue and all its ancestors are below their maximum.
    pub fn is_within_maxima(&self, leaf: usize) -> bool {
        let mut queue = Some(leaf);
        while let Some(number) = queue {
            if !self.may_grow(number) {
                return false;
            }
            queue = self.usage.queues.queue(number).parent;
        }
        true
    }

    fn may_grow(&self, queue: usize) -> bool {
        self.usage.of(self.kind, queue).used < self.usage.queues.maximum(queue, self.slots)
    }

    fn assign_below(&self, parent: usize, accepts: &mut dyn FnMut(JobId) -> bool) -> bool {
        let queue = self.usage.queues.queue(parent);
        if queue.children.is_empty() {
            return self.assign_in_leaf(parent, accepts);
        }
        let wants = |child: &usize| {
            self.usage.of(self.kind, *child).wanting_below > 0 && self.may_grow(*child)
        };
        // The first child usually accepts, so the rest is not sorted.
        let mut children: Vec<usize> = queue.children.iter().copied().filter(wants).collect();
        while let Some(first) = self.first_of(&children) {
            if self.assign_below(children.swap_remove(first), accepts) {
                return true;
            }
        }
        false
    }

    /// Returns the position of the child with the highest need.
    fn first_of(&self, children: &[usize]) -> Option<usize> {
        (0..children.len()).min_by(|&one, &other| self.compare(children[one], children[other]))
    }

    /// Offers the slot to the jobs of a leaf, skipping users at their limit.
    fn assign_in_leaf(&self, leaf: usize, accepts: &mut dyn FnMut(JobId) -> bool) -> bool {
        let Some(limit) = self.usage.user_limit(self.kind, leaf, self.slots) else {
            let mut wanting = self.usage.of(self.kind, leaf).wanting.iter();
            return wanting.any(|&(.., job)| accepts(job));
        };
        let users = self.usage.leaf(self.kind, leaf).users.values();
        let within = || users.clone().filter(|user| user.used < limit);
        // The first job usually accepts, so the others are not merged.
        let first = within().filter_map(|user| user.wanting.first()).min();
        match first {
            Some(&(.., job)) if accepts(job) => return true,
            Some(_) => {}
            None => return false,
        }
        let mut heads = SortedMap::new();
        for user in within() {
            let mut jobs = user.wanting.iter();
            if let Some(place) = jobs.next() {
                heads.insert(place, jobs);
            }
        }
        while let Some((place, mut jobs)) = heads.pop_first() {
            if Some(place) != first && accepts(place.3) {
                return true;
            }
            if let Some(next) = jobs.next() {
                heads.insert(next, jobs);
            }
        }
        false
    }

    /// The order of [`super::QueueStanding`] in integer arithmetic; the turn breaks ties.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        let queues = &self.usage.queues;
        let first = queues.queue(one);
        let second = queues.queue(other);
        let used = self.usage.of(self.kind, one).used;
        let others = self.usage.of(self.kind, other).used;
        let mine = queues.weight(one);
        let theirs = queues.weight(other);
        let by_class = (mine == 0).cmp(&(theirs == 0));
        let by_turn = || {
            self.usage
                .turn(self.kind, one)
                .cmp(&self.usage.turn(self.kind, other))
        };
        let by_need = || {
            if mine == 0 {
                let standing =
                    (Reverse(first.priority), used).cmp(&(Reverse(second.priority), others));
                return standing.then_with(by_turn);
            }
            let is_satisfied = |used: u32, weight| {
                u128::from(used) * queues.unit() >= weight * u128::from(self.slots)
            };
            // A queue that lacks less than one slot holds all whole slots of its guarantee.
            let lacks_none = |used: u32, weight| {
                let next = (u128::from(used) + 1) * queues.unit();
                !self.whole_slots_first || next > weight * u128::from(self.slots)
            };
            let standing = |used: u32, weight, priority| {
                (
                    lacks_none(used, weight),
                    is_satisfied(used, weight),
                    Reverse(priority),
                )
            };
            let by_priority = standing(used, mine, first.priority).cmp(&standing(
                others,
                theirs,
                second.priority,
            ));
            let by_share = || (u128::from(used) * theirs).cmp(&(u128::from(others) * mine));
            by_priority
                .then_with(by_share)
                .then_with(by_turn)
                .then_with(|| theirs.cmp(&mine))
        };
        by_class
            .then_with(by_need)
            .then_with(|| first.name.cmp(&second.name))
    }
}
