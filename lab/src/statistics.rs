//! The statistics of repeated measurements: median, spread, percentiles and bootstrap intervals. It knows
//! nothing of what was measured: samples are plain numbers in whatever unit the caller uses. Resampling is
//! seeded with a constant, so that the same samples always print the same interval.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

/// Fewer samples have a range and no interval: of five, even all on one side come by chance once in sixteen
/// times.
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

/// What is said of one series of samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub count: usize,
    /// Middle sample, or the mean of the two middle ones.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Median absolute deviation from the median, unscaled.
    pub mad: f64,
    /// Bootstrap interval (95 %) of the median; none of fewer than [`SAMPLES_MIN`].
    pub median_interval: Option<Interval>,
}

impl Summary {
    /// Summarises `samples`; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let sorted = sorted(samples);
        Some(Summary {
            count: sorted.len(),
            median: median(samples)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
            mad: median_absolute_deviation(samples)?,
            median_interval: median_interval(samples),
        })
    }
}

impl Interval {
    /// `low .. high` with so many digits.
    pub fn text(self, digits: usize) -> String {
        format!("{:.digits$} .. {:.digits$}", self.low, self.high)
    }
}

/// A ratio with its interval, or a word that there are too few samples for one.
pub fn ratio_text(ratio: f64, interval: Option<Interval>, digits: usize) -> String {
    let interval = interval.map_or_else(|| "too few for an interval".to_owned(), |at| at.text(digits));
    format!("{ratio:.digits$} ({interval})")
}

/// So many samples a percentile needs: with fewer it would be the largest of them.
pub fn samples_needed(percent: f64) -> usize {
    ((100.0 / (100.0 - percent)).round() as usize).max(SAMPLES_MIN)
}

/// The percentile, if there are enough samples for it.
pub fn known_percentile(samples: &[f64], percent: f64) -> Option<f64> {
    percentile(samples, percent).filter(|_| samples.len() >= samples_needed(percent))
}

/// The middle sample, or the mean of the two middle ones; `None` when there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    let sorted = sorted(samples);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0)
}

/// The median distance of the samples from their median; `None` when there are none.
pub fn median_absolute_deviation(samples: &[f64]) -> Option<f64> {
    let middle = median(samples)?;
    let distances: Vec<f64> = samples.iter().map(|sample| (sample - middle).abs()).collect();
    median(&distances)
}

/// The smallest sample that at least `percent` (0 to 100) of the samples do not exceed: the nearest-rank
/// percentile, always one of the samples. `None` when there are none.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let sorted = sorted(samples);
    let rank = (percent.clamp(0.0, 100.0) / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Bootstrap interval (95 %) of the median of `samples`; `None` with fewer than [`SAMPLES_MIN`].
pub fn median_interval(samples: &[f64]) -> Option<Interval> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    bootstrap(|random| median(&resample(samples, random)))
}

/// Bootstrap interval (95 %) of `median(numerator) / median(denominator)`; `None` when either has fewer than
/// [`SAMPLES_MIN`].
pub fn ratio_interval(numerator: &[f64], denominator: &[f64]) -> Option<Interval> {
    if numerator.len().min(denominator.len()) < SAMPLES_MIN {
        return None;
    }
    bootstrap(|random| {
        let above = median(&resample(numerator, random))?;
        let below = median(&resample(denominator, random))?;
        Some(above / below)
    })
}

fn bootstrap(mut draw: impl FnMut(&mut Pcg64Mcg) -> Option<f64>) -> Option<Interval> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let drawn = (0..RESAMPLES).map(|_| draw(&mut random)).collect::<Option<Vec<f64>>>()?;
    let tail = (1.0 - CONFIDENCE) / 2.0 * 100.0;
    Some(Interval { low: percentile(&drawn, tail)?, high: percentile(&drawn, 100.0 - tail)? })
}

fn resample(samples: &[f64], random: &mut Pcg64Mcg) -> Vec<f64> {
    (0..samples.len()).map(|_| samples[random.random_range(0..samples.len())]).collect()
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_measured_gives_no_statistics() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(ratio_interval(&[1.0], &[]), None);
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_deviation() {
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
        let point = |value| Some(Interval { low: value, high: value });
        assert_eq!(median_interval(&[5.0; 6]), point(5.0));
        assert_eq!(ratio_interval(&[6.0; 6], &[2.0; 6]), point(3.0));
    }

    #[test]
    fn few_samples_have_no_interval_and_no_tail() {
        assert_eq!((median_interval(&[5.0; 5]), ratio_interval(&[6.0; 6], &[2.0; 5])), (None, None));
        assert_eq!([50.0, 95.0, 99.0].map(samples_needed), [6, 20, 100]);
        assert_eq!(known_percentile(&[1.0; 99], 99.0), None);
        assert_eq!(known_percentile(&[1.0; 100], 99.0), Some(1.0));
        assert_eq!(ratio_text(1.5, None, 2), "1.50 (too few for an interval)");
    }

    #[test]
    fn the_interval_is_the_same_every_time() {
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
        fn at_least_the_asked_share_is_at_or_below_a_percentile(
            samples in prop::collection::vec(0.0..1e3f64, 1..60),
            percent in 1.0..100.0f64,
        ) {
            let value = percentile(&samples, percent).unwrap();
            let below = samples.iter().filter(|sample| **sample <= value).count();
            prop_assert!(below as f64 >= percent / 100.0 * samples.len() as f64 - 1e-9);
        }
    }
}
