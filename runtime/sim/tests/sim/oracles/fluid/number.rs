//! The number types of the fluid reference: exact ratios, or floats for a million jobs.

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

use napreduce_engine::Ratio;

/// A number of the fluid reference.
pub trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Converts an integer.
    fn whole(number: u64) -> Self;
    /// A total order.
    fn order(self, other: Self) -> Ordering;

    /// Returns the smaller number.
    #[must_use]
    fn least(self, other: Self) -> Self {
        if other.order(self) == Ordering::Less {
            other
        } else {
            self
        }
    }

    /// Whether it is smaller.
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
