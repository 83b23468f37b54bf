//! Means, percentiles and distributions. Percentiles use the nearest-rank convention.

use serde::{Deserialize, Serialize};

/// Summary statistics of a set of numbers; all zero if it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    pub median: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Spread {
    pub fn from_numbers(numbers: impl Iterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = numbers.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let Some(&max) = sorted.last() else {
            return Spread::default();
        };
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        Spread {
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            median: rank(50),
            p95: rank(95),
            p99: rank(99),
            max,
        }
    }
}

/// Returns the empirical distribution for a plot: ascending pairs of a value and the fraction that does not
/// exceed it.
pub fn ecdf(numbers: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (position, number) in sorted.into_iter().enumerate() {
        let share = (position + 1) as f64 / count;
        match steps.last_mut() {
            Some(last) if last.0 == number => last.1 = share,
            _ => steps.push((number, share)),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_nearest_rank() {
        let spread = Spread::from_numbers((1..=200).rev().map(f64::from));
        assert_eq!(
            spread,
            Spread {
                mean: 100.5,
                median: 100.0,
                p95: 190.0,
                p99: 198.0,
                max: 200.0
            }
        );
        assert_eq!(Spread::from_numbers([7.0].into_iter()).p99, 7.0);
        assert_eq!(Spread::from_numbers(std::iter::empty()), Spread::default());
    }

    #[test]
    fn ecdf_rises_to_one() {
        assert_eq!(
            ecdf([3.0, 1.0, 3.0, 2.0].into_iter()),
            [(1.0, 0.25), (2.0, 0.5), (3.0, 1.0)]
        );
        assert_eq!(ecdf(std::iter::empty()), []);
    }
}
