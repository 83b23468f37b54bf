//! Which queue is offered a free slot first: the one that has least of what it is guaranteed.
//!
//! Owns the order of queues below one parent. Does not own who below the first of them gets the slot.

use std::cmp::{Ordering, Reverse};

use napreduce_engine::Ratio;

/// What the order of queues looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStanding<'a> {
    /// Ties go by name.
    pub name: &'a str,
    pub used: Ratio,
    pub guaranteed: Ratio,
    /// Larger is more important.
    pub priority: i32,
}

/// How two queues compare by what they have of their guarantee; smaller goes first. Priority decides between
/// two that are both below their guarantee and between two that are not, never between one below and one that
/// is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    satisfied: bool,
    priority: Reverse<i32>,
    unguaranteed: bool,
    share: Ratio,
}

impl Need {
    /// The need of a queue that has `amount` of what it is `guaranteed`. Without a guarantee it is satisfied
    /// beyond all others, whatever it has.
    pub fn of(amount: Ratio, guaranteed: Ratio, priority: i32) -> Need {
        let priority = Reverse(priority);
        if guaranteed <= Ratio::ZERO {
            return Need { satisfied: true, priority, unguaranteed: true, share: Ratio::ZERO };
        }
        let share = amount / guaranteed;
        Need { satisfied: share >= Ratio::ONE, priority, unguaranteed: false, share }
    }
}

impl QueueStanding<'_> {
    /// The order in which queues below one parent are offered a slot: those without a guarantee after all
    /// others, by priority and then by use; the others by need, then the larger guarantee; at last by name.
    pub fn compare(&self, other: &QueueStanding<'_>) -> Ordering {
        let unguaranteed = |standing: &QueueStanding<'_>| standing.guaranteed <= Ratio::ZERO;
        let by_class = unguaranteed(self).cmp(&unguaranteed(other));
        by_class.then_with(|| self.compare_alike(other)).then_with(|| self.name.cmp(other.name))
    }

    fn compare_alike(&self, other: &QueueStanding<'_>) -> Ordering {
        if self.guaranteed <= Ratio::ZERO {
            return (Reverse(self.priority), self.used).cmp(&(Reverse(other.priority), other.used));
        }
        let need =
            |standing: &QueueStanding<'_>| Need::of(standing.used, standing.guaranteed, standing.priority);
        need(self).cmp(&need(other)).then_with(|| other.guaranteed.cmp(&self.guaranteed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(queues: &[(&'a str, u64, u64, i32)]) -> Vec<&'a str> {
        let mut standings: Vec<QueueStanding<'_>> = queues
            .iter()
            .map(|&(name, used, guaranteed, priority)| QueueStanding {
                name,
                used: Ratio::whole(used),
                guaranteed: Ratio::whole(guaranteed),
                priority,
            })
            .collect();
        standings.sort_by(QueueStanding::compare);
        standings.into_iter().map(|standing| standing.name).collect()
    }

    #[test]
    fn the_queue_below_its_guarantee_goes_before_a_more_important_one_that_is_not() {
        assert_eq!(first(&[("important", 50, 50, 9), ("below", 49, 50, 0)]), ["below", "important"]);
    }

    #[test]
    fn queues_without_a_guarantee_come_last_by_priority_then_use_then_name() {
        let queues = [("d", 2, 0, 9), ("c", 2, 0, 0), ("b", 1, 0, 0), ("a", 2, 0, 0), ("g", 90, 30, -5)];
        assert_eq!(first(&queues), ["g", "d", "b", "a", "c"]);
    }

    #[test]
    fn equal_shares_go_to_the_larger_guarantee_then_by_name() {
        assert_eq!(first(&[("b", 1, 2, 0), ("c", 2, 4, 0), ("a", 1, 2, 0)]), ["c", "a", "b"]);
    }
}
