//! The order in which sibling queues are offered a free slot.

use std::cmp::{Ordering, Reverse};

use napreduce_engine::Ratio;

/// The sort key of a queue among its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStanding<'a> {
    /// Breaks ties.
    pub name: &'a str,
    pub used: Ratio,
    pub guaranteed: Ratio,
    /// Larger is more important.
    pub priority: i32,
}

/// A queue's used fraction of its guarantee; smaller goes first. Priority decides between two queues below
/// their guarantee and between two at or above it, never across.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    satisfied: bool,
    priority: Reverse<i32>,
    unguaranteed: bool,
    share: Ratio,
}

impl Need {
    /// Returns the need of a queue that holds `amount` of `guaranteed`. A queue without a guarantee comes
    /// after all satisfied ones.
    pub fn new(amount: Ratio, guaranteed: Ratio, priority: i32) -> Need {
        let priority = Reverse(priority);
        if guaranteed <= Ratio::ZERO {
            return Need {
                satisfied: true,
                priority,
                unguaranteed: true,
                share: Ratio::ZERO,
            };
        }
        let share = amount / guaranteed;
        Need {
            satisfied: share >= Ratio::ONE,
            priority,
            unguaranteed: false,
            share,
        }
    }
}

impl QueueStanding<'_> {
    /// Compares siblings: queues with a guarantee first, by need, then by larger guarantee; the others by
    /// priority, then usage; ties by name.
    pub fn compare(&self, other: &QueueStanding<'_>) -> Ordering {
        let unguaranteed = |standing: &QueueStanding<'_>| standing.guaranteed <= Ratio::ZERO;
        let by_class = unguaranteed(self).cmp(&unguaranteed(other));
        by_class
            .then_with(|| self.compare_alike(other))
            .then_with(|| self.name.cmp(other.name))
    }

    fn compare_alike(&self, other: &QueueStanding<'_>) -> Ordering {
        if self.guaranteed <= Ratio::ZERO {
            return (Reverse(self.priority), self.used).cmp(&(Reverse(other.priority), other.used));
        }
        let need = |standing: &QueueStanding<'_>| {
            Need::new(standing.used, standing.guaranteed, standing.priority)
        };
        need(self)
            .cmp(&need(other))
            .then_with(|| other.guaranteed.cmp(&self.guaranteed))
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
        standings
            .into_iter()
            .map(|standing| standing.name)
            .collect()
    }

    #[test]
    fn queue_below_guarantee_precedes_higher_priority() {
        assert_eq!(
            first(&[("important", 50, 50, 9), ("below", 49, 50, 0)]),
            ["below", "important"]
        );
    }

    #[test]
    fn queues_without_guarantee_sort_last() {
        let queues = [
            ("d", 2, 0, 9),
            ("c", 2, 0, 0),
            ("b", 1, 0, 0),
            ("a", 2, 0, 0),
            ("g", 90, 30, -5),
        ];
        assert_eq!(first(&queues), ["g", "d", "b", "a", "c"]);
    }

    #[test]
    fn equal_shares_sort_by_guarantee_then_name() {
        assert_eq!(
            first(&[("b", 1, 2, 0), ("c", 2, 4, 0), ("a", 1, 2, 0)]),
            ["c", "a", "b"]
        );
    }
}
