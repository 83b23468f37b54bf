//! The statistics of repeated measurements: median, spread, percentiles and bootstrap intervals. Resampling has a
//! constant seed, so that equal samples always have the same interval.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

/// Fewer samples have a range and no interval: all of five are on one side by chance once in sixteen times.
pub const SAMPLES_MIN: usize = 6;

/// How often a bootstrap draws a new set of samples.
const RESAMPLES: usize = 2_000;
/// The share of bootstrap results inside an interval.
const CONFIDENCE: f64 = 0.95;
const SEED: u64 = 0x6e61_7072_6564;

/// A closed interval, `low <= high`, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Median absolute deviation from the median, unscaled.
    pub mad: f64,
    /// Bootstrap interval (95 %) of the median; `None` with fewer than [`SAMPLES_MIN`].
    pub median_interval: Option<Interval>,
}

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let middle = median(samples)?;
        let distances: Vec<f64> = samples
            .iter()
            .map(|sample| (sample - middle).abs())
            .collect();
        Some(Summary {
            count: samples.len(),
            median: middle,
            min: percentile(samples, 0.0)?,
            max: percentile(samples, 100.0)?,
            mad: median(&distances)?,
            median_interval: median_interval(samples),
        })
    }
}

impl Interval {
    /// `low .. high` with this many digits.
    pub fn text(self, digits: usize) -> String {
        format!("{:.digits$} .. {:.digits$}", self.low, self.high)
    }
}

/// A ratio with its interval.
pub fn ratio_text(ratio: f64, interval: Option<Interval>, digits: usize) -> String {
    let interval = interval.map_or_else(
        || "too few for an interval".to_owned(),
        |at| at.text(digits),
    );
    format!("{ratio:.digits$} ({interval})")
}

/// How many samples a percentile needs: with fewer it would be the largest of them.
pub fn samples_needed(percent: f64) -> usize {
    ((100.0 / (100.0 - percent)).round() as usize).max(SAMPLES_MIN)
}

/// The percentile, if there are enough samples for it.
pub fn known_percentile(samples: &[f64], percent: f64) -> Option<f64> {
    percentile(samples, percent).filter(|_| samples.len() >= samples_needed(percent))
}

/// The middle sample, or the mean of the two middle ones; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let low = sorted.get(sorted.len().saturating_sub(1) / 2)?;
    let high = sorted.get(sorted.len() / 2)?;
    Some((low + high) / 2.0)
}

/// The nearest-rank percentile: the smallest sample that at least `percent` (0 to 100) of the samples do not exceed.
/// `None` without samples.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let rank = (percent.clamp(0.0, 100.0) / 100.0 * samples.len() as f64).ceil() as usize;
    sorted(samples).get(rank.saturating_sub(1)).copied()
}

// `OrderStatistics` of statrs 0.18 panics for some samples, such as 4, 1, 3, 2, 6, 5.
fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// Bootstrap interval (95 %) of the median of `samples`; `None` with fewer than [`SAMPLES_MIN`].
pub fn median_interval(samples: &[f64]) -> Option<Interval> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    bootstrap(|random| median(&resample(samples, random)))
}

fn bootstrap(mut draw: impl FnMut(&mut Pcg64Mcg) -> Option<f64>) -> Option<Interval> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let drawn = (0..RESAMPLES)
        .map(|_| draw(&mut random))
        .collect::<Option<Vec<f64>>>()?;
    let tail = (1.0 - CONFIDENCE) / 2.0 * 100.0;
    Some(Interval {
        low: percentile(&drawn, tail)?,
        high: percentile(&drawn, 100.0 - tail)?,
    })
}

fn resample(samples: &[f64], random: &mut Pcg64Mcg) -> Vec<f64> {
    (0..samples.len())
        .map(|_| samples[random.random_range(0..samples.len())])
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_samples_have_no_statistics() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn outlier_moves_neither_median_nor_deviation() {
        let samples = [1.0, 2.0, 3.0, 4.0, 1_000.0];
        let summary = Summary::of(&samples).unwrap();
        assert_eq!((summary.median, summary.mad), (3.0, 1.0));
        assert_eq!((summary.min, summary.max, summary.count), (1.0, 1_000.0, 5));
    }

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let samples: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&samples, 99.0), Some(198.0));
        assert_eq!(percentile(&samples, 50.0), Some(100.0));
        assert_eq!(percentile(&samples, 0.0), Some(1.0));
        assert_eq!(percentile(&samples, 100.0), Some(200.0));
    }

    #[test]
    fn equal_samples_have_an_interval_of_one_point() {
        assert_eq!(
            median_interval(&[5.0; 6]),
            Some(Interval {
                low: 5.0,
                high: 5.0
            })
        );
    }

    #[test]
    fn few_samples_have_no_interval_and_no_tail() {
        assert_eq!(median_interval(&[5.0; 5]), None);
        assert_eq!([50.0, 95.0, 99.0].map(samples_needed), [6, 20, 100]);
        assert_eq!(known_percentile(&[1.0; 99], 99.0), None);
        assert_eq!(known_percentile(&[1.0; 100], 99.0), Some(1.0));
        assert_eq!(ratio_text(1.5, None, 2), "1.50 (too few for an interval)");
    }

    #[test]
    fn interval_is_reproducible() {
        let samples = [1.0, 1.5, 1.2, 1.9, 1.1, 1.3];
        assert_eq!(median_interval(&samples), median_interval(&samples));
    }

    proptest! {
        #[test]
        fn statistics_lie_within_the_samples(samples in prop::collection::vec(-1e6..1e6f64, 1..40)) {
            let summary = Summary::of(&samples).unwrap();
            prop_assert!(summary.min <= summary.median && summary.median <= summary.max);
            prop_assert!(summary.mad >= 0.0 && summary.mad <= summary.max - summary.min);
            prop_assert_eq!(summary.median_interval.is_some(), samples.len() >= SAMPLES_MIN);
            if let Some(Interval { low, high }) = summary.median_interval {
                prop_assert!(summary.min <= low && low <= high && high <= summary.max);
            }
        }

        #[test]
        fn percentile_covers_its_share(
            samples in prop::collection::vec(0.0..1e3f64, 1..60),
            percent in 1.0..100.0f64,
        ) {
            let value = percentile(&samples, percent).unwrap();
            let below = samples.iter().filter(|sample| **sample <= value).count();
            prop_assert!(below as f64 >= percent / 100.0 * samples.len() as f64 - 1e-9);
        }
    }
}
