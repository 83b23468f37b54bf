//! The order in which a pool serves its children, as keys for ordered sets.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::sync::Arc;

use napreduce_engine::{JobId, Ratio, Time};

use crate::turns::TurnWeight;

/// A positive weight as a fraction of two 32-bit integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weight {
    above: NonZeroU32,
    below: NonZeroU32,
}

impl Weight {
    pub const ONE: Weight = Weight {
        above: NonZeroU32::MIN,
        below: NonZeroU32::MIN,
    };

    /// Converts a ratio; `None` if it is not positive. Exact up to nine digits in numerator and denominator;
    /// longer fractions lose their low bits.
    pub fn new(ratio: Ratio) -> Option<Weight> {
        if ratio <= Ratio::ZERO {
            return None;
        }
        let above = ratio.numerator().unsigned_abs();
        let below = ratio.denominator().unsigned_abs();
        let longest = u128::BITS - above.max(below).leading_zeros();
        let cut = longest.saturating_sub(u32::BITS);
        let part = |number: u128| {
            u32::try_from(number >> cut)
                .ok()
                .and_then(NonZeroU32::new)
                .unwrap_or(NonZeroU32::MIN)
        };
        Some(Weight {
            above: part(above),
            below: part(below),
        })
    }

    pub(crate) fn in_turns(self) -> TurnWeight {
        TurnWeight {
            above: self.above.get().into(),
            below: self.below.get().into(),
        }
    }

    /// Compares `mine / self` with `other / others`, without rounding.
    fn compare(self, mine: u64, others: Weight, other: u64) -> Ordering {
        if self == others {
            return mine.cmp(&other);
        }
        let product = |amount: u64, first: NonZeroU32, second: NonZeroU32| {
            u128::from(amount) * u128::from(first.get()) * u128::from(second.get())
        };
        product(mine, self.below, others.above).cmp(&product(other, others.below, self.above))
    }
}

/// The name of a child, the last tie-breaker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Pool(Arc<str>),
    Job(JobId),
}

/// The sort key of a child: the smallest is served first, and only standings of one child are equal. The type
/// parameters allow narrower amounts and names, and a field ahead of the start time.
#[derive(Debug, Clone, Copy)]
pub struct ChildStanding<A = u64, N = Name, S = Time> {
    pub usage: A,
    /// Minimum share.
    pub min: A,
    /// Usage plus pending demand.
    pub demand: A,
    /// `None` is a weight of zero: served after children with a weight.
    pub weight: Option<Weight>,
    /// Submission or creation time; zero for configured pools.
    pub start: S,
    pub name: N,
}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> ChildStanding<A, N, S> {
    /// Returns usage and reachable minimum while the usage is below it.
    fn need(&self) -> Option<(u64, u64)> {
        let usage = self.usage.into();
        let bound = self.min.into().min(self.demand.into());
        (usage < bound).then_some((usage, bound))
    }

    fn compare_needs(&self, other: &Self) -> Ordering {
        match (self.need(), other.need()) {
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((mine, bound)), Some((others, other_bound))) => (u128::from(mine)
                * u128::from(other_bound))
            .cmp(&(u128::from(others) * u128::from(bound))),
        }
    }

    fn compare_loads(&self, other: &Self) -> Ordering {
        let usage = self.usage.into();
        let others_usage = other.usage.into();
        match (self.weight, other.weight) {
            (Some(mine), Some(others)) => mine.compare(usage, others, others_usage),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => usage.cmp(&others_usage),
        }
    }
}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> Ord for ChildStanding<A, N, S> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Fast path for the common case: no minimum, equal weights, and demand on both sides.
        let plain = self.weight == other.weight && self.min.into() == 0 && other.min.into() == 0;
        if plain && self.demand.into() > 0 && other.demand.into() > 0 {
            let usage = self.usage.into().cmp(&other.usage.into());
            return usage
                .then_with(|| self.start.cmp(&other.start))
                .then_with(|| self.name.cmp(&other.name));
        }
        let without_demand = |standing: &Self| standing.demand.into() == 0;
        without_demand(self)
            .cmp(&without_demand(other))
            .then_with(|| self.compare_needs(other))
            .then_with(|| self.compare_loads(other))
            .then_with(|| self.start.cmp(&other.start))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> PartialEq for ChildStanding<A, N, S> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> Eq for ChildStanding<A, N, S> {}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> PartialOrd for ChildStanding<A, N, S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
