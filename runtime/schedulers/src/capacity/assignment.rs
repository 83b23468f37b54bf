//! To whom a free slot goes: from the root down to the queue that has least of its guarantee, and there to
//! the first job that can use it.
//!
//! Owns the walk, maxima and the limits of users. Does not own the books, nor what the job does with the
//! slot.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use napreduce_engine::{JobId, TaskKind, is_other_first};

use super::books::Books;

/// Why a slot went to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Whoever may have another slot cannot use this one.
    NotHere,
    /// Nobody who wants one may have another.
    Nowhere,
}

/// A slot to be given.
pub(super) struct Assignment<'a> {
    pub books: &'a Books,
    pub kind: TaskKind,
    /// How many slots of the kind there are.
    pub slots: u32,
}

impl Assignment<'_> {
    /// Offers the slot to jobs, the most deserving first, until one takes it.
    pub fn give(&self, takes: &mut dyn FnMut(JobId) -> bool) -> Result<(), Refused> {
        let mut asked = false;
        let mut ask = |job| {
            asked = true;
            takes(job)
        };
        if self.give_below(0, &mut ask) {
            return Ok(());
        }
        Err(if asked { Refused::NotHere } else { Refused::Nowhere })
    }

    /// Where slots are of one kind: whether the job that comes first wants one for the other kind of task. Of
    /// one job maps go first.
    pub fn other_kind_first(&self) -> bool {
        let wants = |queue: usize, kind| self.books.of(kind, queue).wanting_below > 0;
        let mut queue = 0;
        while !self.books.queues.queue(queue).children.is_empty() {
            let children = self.books.queues.queue(queue).children.iter().copied();
            let able = children.filter(|&child| self.may_grow(child));
            let able: Vec<usize> =
                able.filter(|&child| TaskKind::ALL.iter().any(|kind| wants(child, *kind))).collect();
            let Some(first) = self.first_of(&able) else { return false };
            queue = able[first];
        }
        is_other_first(self.kind, |kind| self.books.of(kind, queue).wanting.first())
    }

    /// Whether the queue of a job, and all it is a part of, may have another slot.
    pub fn is_within_maxima(&self, leaf: usize) -> bool {
        let mut queue = Some(leaf);
        while let Some(number) = queue {
            if !self.may_grow(number) {
                return false;
            }
            queue = self.books.queues.queue(number).parent;
        }
        true
    }

    fn may_grow(&self, queue: usize) -> bool {
        self.books.of(self.kind, queue).used < self.books.queues.maximum(queue, self.slots)
    }

    fn give_below(&self, parent: usize, takes: &mut dyn FnMut(JobId) -> bool) -> bool {
        let queue = self.books.queues.queue(parent);
        if queue.children.is_empty() {
            return self.give_in(parent, takes);
        }
        let wants =
            |child: &usize| self.books.of(self.kind, *child).wanting_below > 0 && self.may_grow(*child);
        // Mostly the first of them takes it, so that the order of the others is not looked for.
        let mut children: Vec<usize> = queue.children.iter().copied().filter(wants).collect();
        while let Some(first) = self.first_of(&children) {
            if self.give_below(children.swap_remove(first), takes) {
                return true;
            }
        }
        false
    }

    /// The place of the child that comes first.
    fn first_of(&self, children: &[usize]) -> Option<usize> {
        (0..children.len()).min_by(|&one, &other| self.compare(children[one], children[other]))
    }

    /// Walks the jobs of a leaf, past those of users at their limit.
    fn give_in(&self, leaf: usize, takes: &mut dyn FnMut(JobId) -> bool) -> bool {
        let Some(limit) = self.books.user_limit(self.kind, leaf, self.slots) else {
            let mut wanting = self.books.of(self.kind, leaf).wanting.iter();
            return wanting.any(|&(.., job)| takes(job));
        };
        let users = self.books.leaf(self.kind, leaf).users.values();
        let within = || users.clone().filter(|user| user.used < limit);
        // Mostly the first of them takes it, so that the order of the others is not looked for.
        let first = within().filter_map(|user| user.wanting.first()).min();
        match first {
            Some(&(.., job)) if takes(job) => return true,
            Some(_) => {}
            None => return false,
        }
        let mut heads = BTreeMap::new();
        for mut jobs in within().map(|user| user.wanting.iter()) {
            heads.extend(jobs.next().map(|place| (place, jobs)));
        }
        while let Some((place, mut jobs)) = heads.pop_first() {
            if Some(place) != first && takes(place.3) {
                return true;
            }
            heads.extend(jobs.next().map(|place| (place, jobs)));
        }
        false
    }

    /// The order of [`super::QueueStanding`], on whole numbers; of equal ones, the queue whose turn it is.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        let queues = &self.books.queues;
        let (first, second) = (queues.queue(one), queues.queue(other));
        let (used, others) = (self.books.of(self.kind, one).used, self.books.of(self.kind, other).used);
        let (mine, theirs) = (queues.weight(one), queues.weight(other));
        let by_class = (mine == 0).cmp(&(theirs == 0));
        let by_turn = || self.books.turn(self.kind, one).cmp(&self.books.turn(self.kind, other));
        let by_need = || {
            if mine == 0 {
                let standing = (Reverse(first.priority), used).cmp(&(Reverse(second.priority), others));
                return standing.then_with(by_turn);
            }
            let is_satisfied =
                |used: u32, weight| u128::from(used) * queues.unit() >= weight * u128::from(self.slots);
            let by_priority = (is_satisfied(used, mine), Reverse(first.priority))
                .cmp(&(is_satisfied(others, theirs), Reverse(second.priority)));
            let by_share = || (u128::from(used) * theirs).cmp(&(u128::from(others) * mine));
            by_priority.then_with(by_share).then_with(by_turn).then_with(|| theirs.cmp(&mine))
        };
        by_class.then_with(by_need).then_with(|| first.name.cmp(&second.name))
    }
}
