//! Who is given to first under Fair: the order of the children of a pool.
//!
//! Owns the comparison of plain standings, as keys for ordered sets. Does not own how they are kept up to
//! date.

use std::cmp::Ordering;
use std::num::NonZeroU32;
use std::sync::Arc;

use napreduce_engine::{JobId, Ratio, Time};

use crate::turns::TurnWeight;

/// A positive weight as a fraction of two integers of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weight {
    above: NonZeroU32,
    below: NonZeroU32,
}

impl Weight {
    pub const ONE: Weight = Weight { above: NonZeroU32::MIN, below: NonZeroU32::MIN };

    /// The weight that a ratio is; none for nothing and less. Exact up to nine digits above and below the
    /// line; of longer ones both lose their last binary digits.
    pub fn new(ratio: Ratio) -> Option<Weight> {
        if ratio <= Ratio::ZERO {
            return None;
        }
        let (above, below) = (ratio.numerator().unsigned_abs(), ratio.denominator().unsigned_abs());
        let longest = u128::BITS - above.max(below).leading_zeros();
        let cut = longest.saturating_sub(u32::BITS);
        let part = |number: u128| {
            u32::try_from(number >> cut).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
        };
        Some(Weight { above: part(above), below: part(below) })
    }

    /// The weight for turns.
    pub(crate) fn in_turns(self) -> TurnWeight {
        TurnWeight { above: self.above.get().into(), below: self.below.get().into() }
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

/// What a child is called; decides last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    Pool(Arc<str>),
    Job(JobId),
}

/// A child as the fair order sees it. Smaller is given to first; equal are only standings of one child.
/// Amounts and names may be shorter than the usual ones, and something may go before the start.
#[derive(Debug, Clone, Copy)]
pub struct ChildStanding<A = u64, N = Name, S = Time> {
    /// What it holds.
    pub usage: A,
    /// What it should hold at least.
    pub min: A,
    /// What it holds or wants.
    pub demand: A,
    /// None: it is given to after those that have a weight.
    pub weight: Option<Weight>,
    /// Since when it is there; a pool that is configured was always there.
    pub start: S,
    /// What it is called.
    pub name: N,
}

impl<A: Copy + Into<u64>, N: Ord, S: Ord> ChildStanding<A, N, S> {
    /// What it holds and what it should hold at least and can use, while it holds less.
    fn need(&self) -> Option<(u64, u64)> {
        let (usage, bound) = (self.usage.into(), self.min.into().min(self.demand.into()));
        (usage < bound).then_some((usage, bound))
    }

    fn compare_needs(&self, other: &Self) -> Ordering {
        match (self.need(), other.need()) {
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((mine, bound)), Some((others, other_bound))) => {
                (u128::from(mine) * u128::from(other_bound)).cmp(&(u128::from(others) * u128::from(bound)))
            }
        }
    }

    fn compare_loads(&self, other: &Self) -> Ordering {
        let (usage, others_usage) = (self.usage.into(), other.usage.into());
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
        // Nearly all: without a minimum, of one weight, and wanted by somebody.
        let plain = self.weight == other.weight && self.min.into() == 0 && other.min.into() == 0;
        if plain && self.demand.into() > 0 && other.demand.into() > 0 {
            let usage = self.usage.into().cmp(&other.usage.into());
            return usage.then_with(|| self.start.cmp(&other.start)).then_with(|| self.name.cmp(&other.name));
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
