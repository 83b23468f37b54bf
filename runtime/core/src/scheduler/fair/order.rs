//! Who is given to first under Fair: the order of the children of a pool.
//!
//! Owns the comparison of plain standings, as keys for ordered sets. Does not own how they are kept up to date.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use crate::ids::JobId;
use crate::ratio::Ratio;
use crate::time::Time;

/// A positive weight as a fraction of two integers, neither of them zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weight {
    above: u64,
    below: u64,
}

impl Weight {
    /// One.
    pub const ONE: Weight = Weight { above: 1, below: 1 };

    /// The weight that a ratio is; none for nothing and less. Ratios of configurations fit 64 bits; larger are cut.
    pub fn new(ratio: Ratio) -> Option<Weight> {
        if ratio <= Ratio::ZERO {
            return None;
        }
        let part = |number: i128| u64::try_from(number).unwrap_or(u64::MAX).max(1);
        Some(Weight { above: part(ratio.numerator()), below: part(ratio.denominator()) })
    }

    /// Compares `mine / self` with `other / others`, without rounding.
    fn compare(self, mine: u64, others: Weight, other: u64) -> Ordering {
        if self == others {
            return mine.cmp(&other);
        }
        let left = product(mine, self.below, others.above);
        let right = product(other, others.below, self.above);
        left.cmp(&right)
    }
}

/// A product of three 64-bit numbers: what is above 64 bits, and the rest.
fn product(first: u64, second: u64, third: u64) -> (u128, u64) {
    let (pair, third) = (u128::from(first) * u128::from(second), u128::from(third));
    let (high, low) = (pair >> 64, pair & u128::from(u64::MAX));
    let low = low * third;
    (high * third + (low >> 64), (low & u128::from(u64::MAX)) as u64)
}

/// What a child is called; decides last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// A pool.
    Pool(Arc<str>),
    /// A job.
    Job(JobId),
}

/// A child as the fair order sees it. Smaller is given to first; equal are only standings of one child.
#[derive(Debug, Clone)]
pub struct Standing {
    /// What it holds.
    pub usage: u64,
    /// What it should hold at least.
    pub min: u64,
    /// What it holds or wants.
    pub demand: u64,
    /// None: it is given to after those that have a weight.
    pub weight: Option<Weight>,
    /// Since when it is there; pools were always there.
    pub start: Time,
    /// What it is called.
    pub name: Name,
}

impl Standing {
    /// What it holds and what it should hold at least and can use, while it holds less.
    fn need(&self) -> Option<(u64, u64)> {
        let bound = self.min.min(self.demand);
        (self.usage < bound).then_some((self.usage, bound))
    }

    fn compare_needs(&self, other: &Standing) -> Ordering {
        match (self.need(), other.need()) {
            (None, None) => Ordering::Equal,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((mine, bound)), Some((others, other_bound))) => {
                (u128::from(mine) * u128::from(other_bound)).cmp(&(u128::from(others) * u128::from(bound)))
            }
        }
    }

    fn compare_loads(&self, other: &Standing) -> Ordering {
        match (self.weight, other.weight) {
            (Some(mine), Some(others)) => mine.compare(self.usage, others, other.usage),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.usage.cmp(&other.usage),
        }
    }
}

impl Ord for Standing {
    fn cmp(&self, other: &Standing) -> Ordering {
        let without_demand = |standing: &Standing| standing.demand == 0;
        without_demand(self)
            .cmp(&without_demand(other))
            .then_with(|| self.compare_needs(other))
            .then_with(|| self.compare_loads(other))
            .then_with(|| self.start.cmp(&other.start))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialEq for Standing {
    fn eq(&self, other: &Standing) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Standing {}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Standing) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A job in the order of a pool that serves one job after the other: priority, submit time, id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    priority: Reverse<i32>,
    submitted: Time,
    job: JobId,
}

impl Turn {
    /// The turn of a job.
    pub fn new(priority: i32, submitted: Time, job: JobId) -> Turn {
        Turn { priority: Reverse(priority), submitted, job }
    }
}
