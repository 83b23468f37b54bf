//! When jobs come: Poisson, at a fixed distance, with any gaps, or in bursts.
//!
//! Owns the times. Does not own the jobs.

use napreduce_engine::{Span, Time};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;

/// How jobs follow each other. Times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process with this mean gap; the first job comes after a gap.
    Poisson(f64),
    /// One after each gap of this length; the first one at once.
    Fixed(f64),
    /// Gaps between these two; the first job comes after a gap.
    Uniform([f64; 2]),
    /// Gaps of any distribution; the first job comes after a gap.
    Gaps(Distribution),
    /// So many at once, again and again; the first ones at once.
    Burst {
        size: u32,
        /// How long after the burst before.
        every: f64,
    },
}

impl Arrivals {
    /// The times of so many jobs.
    pub fn times(&self, from: Time, count: usize, random: &mut impl Rng) -> Vec<Time> {
        let mut at = from;
        let time = |index: usize| {
            let gap = match self {
                Arrivals::Poisson(mean) => Distribution::Exponential(*mean).draw(random),
                Arrivals::Uniform(range) => Distribution::Uniform(*range).draw(random),
                Arrivals::Gaps(gaps) => gaps.draw(random),
                Arrivals::Fixed(gap) => {
                    if index == 0 {
                        0.0
                    } else {
                        *gap
                    }
                }
                Arrivals::Burst { size, every } => {
                    let first_of_a_burst = index.is_multiple_of((*size).max(1) as usize);
                    if index > 0 && first_of_a_burst { *every } else { 0.0 }
                }
            };
            at = at + span(gap);
            at
        };
        (0..count).map(time).collect()
    }

    /// What is wrong with its parameters, if anything is.
    ///
    /// # Errors
    /// Says which parameter is out of bounds.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Arrivals::Poisson(mean) => Distribution::Exponential(*mean).check(),
            Arrivals::Fixed(gap) => Distribution::Fixed(*gap).check(),
            Arrivals::Uniform(range) => Distribution::Uniform(*range).check(),
            Arrivals::Gaps(gaps) => gaps.check(),
            Arrivals::Burst { size: 0, .. } => Err("a burst of 0 jobs; give at least 1".to_owned()),
            Arrivals::Burst { every, .. } => Distribution::Fixed(*every).check(),
        }
    }
}

/// A number of seconds as a span, to the microsecond; nothing below zero.
pub(super) fn span(seconds: f64) -> Span {
    Span((seconds * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    fn times(arrivals: &Arrivals, count: usize) -> Vec<f64> {
        let mut random = Pcg64::seed_from_u64(5);
        let times = arrivals.times(Time(10_000_000), count, &mut random);
        times.into_iter().map(|time| time.0 as f64 / 1e6).collect()
    }

    #[test]
    fn fixed_and_burst_begin_at_once() {
        assert_eq!(times(&Arrivals::Fixed(5.0), 3), [10.0, 15.0, 20.0]);
        let burst = Arrivals::Burst { size: 2, every: 60.0 };
        assert_eq!(times(&burst, 5), [10.0, 10.0, 70.0, 70.0, 130.0]);
    }

    #[test]
    fn poisson_arrivals_have_their_mean_gap_and_its_spread() {
        let times = times(&Arrivals::Poisson(30.0), 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 30.0).abs() < 0.5 && (variance.sqrt() - 30.0).abs() < 0.7, "{mean} {variance}");
    }

    #[test]
    fn equal_seeds_give_equal_times() {
        let gaps = Arrivals::Gaps(Distribution::Pareto { minimum: 1.0, shape: 1.5, maximum: None });
        assert_eq!(times(&gaps, 50), times(&gaps, 50));
        assert!(times(&Arrivals::Uniform([1.0, 2.0]), 50).is_sorted());
    }

    #[test]
    fn parameters_out_of_bounds_are_refused() {
        assert!(Arrivals::Burst { size: 0, every: 1.0 }.check().is_err());
        assert!(Arrivals::Poisson(-3.0).check().is_err());
        assert!(Arrivals::Uniform([3.0, 1.0]).check().is_err());
    }
}
