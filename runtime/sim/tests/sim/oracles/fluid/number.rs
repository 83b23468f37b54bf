//! The numbers of the fluid mode: exact ratios, or floats for a million jobs.
//!
//! Owns what the policies need of a number, and its order. Does not own any policy.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

use napreduce_engine::Ratio;

/// A number of the fluid mode.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A whole number.
    fn whole(number: u64) -> Self;
    /// The order of numbers, which is total.
    fn order(self, other: Self) -> Ordering;

    /// The smaller of two.
    #[must_use]
    fn least(self, other: Self) -> Self {
        if other.order(self) == Ordering::Less { other } else { self }
    }

    /// Whether it is smaller than another.
    fn below(self, other: Self) -> bool {
        self.order(other) == Ordering::Less
    }
}

impl Number for Ratio {
    fn whole(number: u64) -> Ratio {
        Ratio::whole(number)
    }

    fn order(self, other: Ratio) -> Ordering {
        self.cmp(&other)
    }
}

impl Number for f64 {
    fn whole(number: u64) -> f64 {
        number as f64
    }

    fn order(self, other: f64) -> Ordering {
        self.total_cmp(&other)
    }
}

/// A number as a key of ordered collections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<N>(pub N);

impl<N: Number> PartialEq for Key<N> {
    fn eq(&self, other: &Key<N>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<N: Number> Eq for Key<N> {}

impl<N: Number> PartialOrd for Key<N> {
    fn partial_cmp(&self, other: &Key<N>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: Number> Ord for Key<N> {
    fn cmp(&self, other: &Key<N>) -> Ordering {
        self.0.order(other.0)
    }
}
