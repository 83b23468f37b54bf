//! Arrival processes: Poisson, fixed or random gaps, and bursts.

use napreduce_engine::{Span, Time};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;

/// An arrival process. Times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process with this mean gap; the first job arrives after a gap.
    Poisson(f64),
    /// Gaps of this length; the first job arrives immediately.
    Fixed(f64),
    /// Gaps uniform in this range; the first job arrives after a gap.
    Uniform([f64; 2]),
    /// Gaps from a distribution; the first job arrives after a gap.
    Gaps(Distribution),
    /// Bursts of simultaneous jobs; the first burst arrives immediately.
    Burst {
        size: u32,
        /// Time between bursts.
        every: f64,
    },
}

impl Arrivals {
    /// Returns `count` arrival times.
    pub fn times(&self, from: Time, count: usize, random: &mut impl Rng) -> Vec<Time> {
        let mut at = from;
        let time = |index: usize| {
            let gap = match self {
                Arrivals::Poisson(mean) => Distribution::Exponential(*mean).draw(random),
                Arrivals::Uniform(range) => Distribution::Uniform(*range).draw(random),
                Arrivals::Gaps(gaps) => gaps.draw(random),
                Arrivals::Fixed(_) if index == 0 => 0.0,
                Arrivals::Fixed(gap) => *gap,
                Arrivals::Burst { size, every } => {
                    let starts_burst = index.is_multiple_of((*size).max(1) as usize);
                    if index > 0 && starts_burst {
                        *every
                    } else {
                        0.0
                    }
                }
            };
            at = at + span(gap);
            at
        };
        (0..count).map(time).collect()
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// Names the parameter that is out of range.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Arrivals::Poisson(mean) => Distribution::Exponential(*mean).check(),
            Arrivals::Fixed(gap) => Distribution::Fixed(*gap).check(),
            Arrivals::Uniform(range) => Distribution::Uniform(*range).check(),
            Arrivals::Gaps(gaps) => gaps.check(),
            Arrivals::Burst { size: 0, .. } => {
                Err("invalid burst size 0; give 1 or more".to_owned())
            }
            Arrivals::Burst { every, .. } => Distribution::Fixed(*every).check(),
        }
    }
}

/// Converts seconds to a span, rounded to microseconds; negative values become zero.
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
    fn fixed_and_burst_start_immediately() {
        assert_eq!(times(&Arrivals::Fixed(5.0), 3), [10.0, 15.0, 20.0]);
        let burst = Arrivals::Burst {
            size: 2,
            every: 60.0,
        };
        assert_eq!(times(&burst, 5), [10.0, 10.0, 70.0, 70.0, 130.0]);
    }

    #[test]
    fn poisson_gaps_match_mean_and_deviation() {
        let times = times(&Arrivals::Poisson(30.0), 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!(
            (mean - 30.0).abs() < 0.5 && (variance.sqrt() - 30.0).abs() < 0.7,
            "{mean} {variance}"
        );
    }

    #[test]
    fn equal_seeds_give_equal_times() {
        let gaps = Arrivals::Gaps(Distribution::Pareto {
            minimum: 1.0,
            shape: 1.5,
            maximum: None,
        });
        assert_eq!(times(&gaps, 50), times(&gaps, 50));
        assert!(times(&Arrivals::Uniform([1.0, 2.0]), 50).is_sorted());
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        assert!(
            Arrivals::Burst {
                size: 0,
                every: 1.0
            }
            .check()
            .is_err()
        );
        assert!(Arrivals::Poisson(-3.0).check().is_err());
        assert!(Arrivals::Uniform([3.0, 1.0]).check().is_err());
    }
}
