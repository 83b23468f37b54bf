//! Inference from one number per block. Simulated blocks are independent runs: their mean has an interval by Student's
//! t. Live blocks have a median with order statistics and sign tests. Holm's method corrects for several expectations
//! of one claim.

use serde::Serialize;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::statistics;

/// Fewer blocks have no interval.
pub const BLOCKS_MIN: usize = statistics::SAMPLES_MIN;

/// The level of error of a verdict.
pub const LEVEL: f64 = 0.05;

/// Maximum number of suggested blocks.
pub const BLOCKS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The median of live blocks.
    pub mean: f64,
    /// The ends of the interval; with few blocks, the range.
    pub low: f64,
    pub high: f64,
    pub blocks: usize,
    #[serde(skip)]
    error: f64,
    /// For a ratio, whose logarithms were summarised.
    #[serde(skip)]
    logarithmic: bool,
    /// The values of live blocks, which are judged by signs.
    #[serde(skip)]
    signed: Option<Vec<f64>>,
    /// For a deterministic run.
    #[serde(skip)]
    exact: bool,
}

impl Estimate {
    /// The mean of differences or plain numbers.
    pub fn of(values: &[f64], confidence: f64) -> Option<Estimate> {
        let (mean, error, within) = student(values, confidence)?;
        let mut estimate = Estimate::range(mean, values)?;
        estimate.error = error;
        if values.len() >= BLOCKS_MIN {
            (estimate.low, estimate.high) = (mean - within, mean + within);
        }
        Some(estimate)
    }

    /// The number of a run that does not depend on its seed.
    pub fn exact(value: f64) -> Option<Estimate> {
        let estimate = Estimate::range(value, &[value])?;
        value.is_finite().then_some(Estimate {
            exact: true,
            ..estimate
        })
    }

    /// Without an interval: the ends are those of the values.
    fn range(mean: f64, values: &[f64]) -> Option<Estimate> {
        let ends = [0.0, 100.0].map(|percent| statistics::percentile(values, percent));
        let [Some(low), Some(high)] = ends else {
            return None;
        };
        let error = 0.0;
        let logarithmic = false;
        let signed = None;
        let exact = false;
        Some(Estimate {
            mean,
            low,
            high,
            blocks: values.len(),
            error,
            logarithmic,
            signed,
            exact,
        })
    }

    /// Whether it can be judged.
    pub fn is_enough(&self) -> bool {
        self.exact || self.blocks >= BLOCKS_MIN
    }

    /// Whether the run does not depend on its seed.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The geometric mean of ratios, for which a ratio and its inverse are alike.
    pub fn of_ratios(ratios: &[f64], confidence: f64) -> Option<Estimate> {
        let logarithms: Vec<f64> = ratios
            .iter()
            .map(|ratio| ratio.ln())
            .map(|log| log.is_finite().then_some(log))
            .collect::<Option<_>>()?;
        let plain = Estimate::of(&logarithms, confidence)?;
        let mean = plain.mean.exp();
        let low = plain.low.exp();
        let high = plain.high.exp();
        Some(Estimate {
            mean,
            low,
            high,
            logarithmic: true,
            ..plain
        })
    }

    /// The median, and the order statistics that enclose the true one with at least this confidence for any
    /// distribution (Conover, Practical Nonparametric Statistics).
    pub fn of_median(values: &[f64], confidence: f64) -> Option<Estimate> {
        let mean = statistics::median(values)?;
        let blocks = values.len();
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // Too few values have no interval but their range.
        let from = innermost(blocks as u64, confidence)
            .filter(|_| blocks >= BLOCKS_MIN)
            .unwrap_or(0);
        let low = sorted[from];
        let high = sorted[blocks - 1 - from];
        Some(Estimate {
            low,
            high,
            signed: Some(sorted),
            ..Estimate::range(mean, values)?
        })
    }

    /// The probability of such a distance from a bound, or a larger one, if the true number is the bound; 1 with too
    /// few blocks.
    pub fn probability(&self, bound: f64) -> f64 {
        if self.exact {
            return 0.0;
        }
        if self.blocks < BLOCKS_MIN {
            return 1.0;
        }
        if let Some(values) = &self.signed {
            let (above, below) = sides(values, bound);
            return sign_test(above, below);
        }
        let distance = self.distance(bound);
        // Without spread the side of the bound is known, even at the bound.
        if self.error <= distance * 1e-9 {
            return 0.0;
        }
        t_test(distance / self.error, self.blocks)
    }

    /// The total number of blocks that would show at this level on which side of a bound the true number is, if
    /// further blocks are similar and it is one of this many claims (Bonferroni). `None` beyond [`BLOCKS_MAX`].
    pub fn blocks_to_settle(&self, bound: f64, claims: usize, level: f64) -> Option<usize> {
        let probability = |blocks: usize| {
            let times = blocks as f64 / self.blocks as f64;
            match &self.signed {
                Some(values) => {
                    let (above, below) = sides(values, bound);
                    let many = |count: u64| (count as f64 * times).round() as u64;
                    sign_test(many(above), many(below))
                }
                None => t_test(self.distance(bound) / self.error * times.sqrt(), blocks),
            }
        };
        let sure = |blocks: &usize| probability(*blocks) * claims as f64 <= level;
        (self.blocks.max(BLOCKS_MIN)..=BLOCKS_MAX).find(sure)
    }

    /// The distance from a bound, on the scale of the test.
    fn distance(&self, bound: f64) -> f64 {
        if self.logarithmic {
            (self.mean.ln() - bound.ln()).abs()
        } else {
            (self.mean - bound).abs()
        }
    }
}

/// The probability that a mean is at least this many standard errors from the true one.
fn t_test(errors: f64, blocks: usize) -> f64 {
    StudentsT::new(0.0, 1.0, (blocks - 1) as f64).map_or(1.0, |student| 2.0 * student.sf(errors))
}

/// The index of the innermost order statistic that encloses the median with its counterpart at a confidence.
fn innermost(count: u64, confidence: f64) -> Option<usize> {
    let signs = Binomial::new(0.5, count).ok()?;
    // Outside of the places k and n - 1 - k are all cases with at most k on one side.
    let within = |place: &u64| 1.0 - 2.0 * signs.cdf(*place) >= confidence - 1e-12;
    (0..count / 2)
        .take_while(within)
        .last()
        .and_then(|place| usize::try_from(place).ok())
}

/// The numbers of values above and below a bound.
fn sides(values: &[f64], bound: f64) -> (u64, u64) {
    let above = values.iter().filter(|value| **value > bound).count() as u64;
    let below = values.iter().filter(|value| **value < bound).count() as u64;
    (above, below)
}

/// The probability that at least this many values are on one side of the true median.
fn sign_test(above: u64, below: u64) -> f64 {
    match Binomial::new(0.5, above + below) {
        Ok(signs) => (2.0 * signs.cdf(above.min(below))).min(1.0),
        Err(_) => 1.0,
    }
}

/// The smallest number of blocks that can settle this many claims of one figure.
pub fn blocks_needed(claims: usize, level: f64) -> usize {
    let enough = |blocks: &usize| 2.0 * 0.5_f64.powi(*blocks as i32) * claims as f64 <= level;
    (BLOCKS_MIN..64).find(enough).unwrap_or(64)
}

/// Mean, standard error, and half the interval.
fn student(values: &[f64], confidence: f64) -> Option<(f64, f64, f64)> {
    let count = values.len() as f64;
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    if values.len() == 1 {
        return Some((mean, f64::INFINITY, f64::INFINITY));
    }
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    let error = (variance / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some((
        mean,
        error,
        error * student.inverse_cdf((1.0 + confidence) / 2.0),
    ))
}

/// Probabilities corrected for their number (Holm 1979).
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least
            .max(probabilities[at] * (probabilities.len() - rank) as f64)
            .min(1.0);
        corrected[at] = least;
    }
    corrected
}

/// Spearman's coefficient of numbers against their order; `None` unless two differ.
pub fn spearman(values: &[f64]) -> Option<f64> {
    let ranks = ranks(values);
    let order: Vec<f64> = (1..=values.len()).map(|place| place as f64).collect();
    let mean = (values.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter()
            .zip(b)
            .map(|(x, y)| (x - mean) * (y - mean))
            .sum::<f64>()
    };
    let own = product(&ranks, &ranks);
    let other = product(&order, &order);
    (own > 0.0 && other > 0.0).then(|| product(&ranks, &order) / (own * other).sqrt())
}

/// Equal numbers share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    values
        .iter()
        .map(|value| below(*value) + (equal(*value) + 1.0) / 2.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-3, "{a} is not {b}");
    }

    #[test]
    fn intervals_match_published_tables() {
        // s = sqrt(3.5), t = 2.571 with 5 degrees of freedom.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).expect("numbers");
        close(estimate.mean, 3.5);
        close(estimate.high, 3.5 + 2.5706 * (3.5_f64 / 6.0).sqrt());
        close(estimate.probability(estimate.high), 0.05);
        close(estimate.probability(3.5), 1.0);
        let ratios = Estimate::of_ratios(&[0.5, 2.0, 0.5, 2.0, 0.5, 2.0], 0.95).expect("numbers");
        close(ratios.mean, 1.0);
        close(ratios.low * ratios.high, 1.0);
        close(ratios.probability(ratios.low), 0.05);
    }

    #[test]
    fn few_blocks_have_a_range_only() {
        let estimate = Estimate::of(&[3.0, 1.0, 2.0], 0.95).expect("numbers");
        assert_eq!(
            (estimate.low, estimate.high, estimate.probability(100.0)),
            (1.0, 3.0, 1.0)
        );
        assert_eq!(Estimate::of(&[], 0.95), None);
        assert_eq!(Estimate::of_ratios(&[0.0; 6], 0.95), None);
        let sure = Estimate::of(&[2.0; 6], 0.95).expect("numbers");
        assert_eq!(
            (
                sure.low,
                sure.high,
                sure.probability(1.9),
                sure.probability(2.0)
            ),
            (2.0, 2.0, 0.0, 0.0)
        );
    }

    /// The probability, by enumeration, that the true median is outside of `from` and its counterpart.
    fn outside(count: u32, from: usize) -> f64 {
        let cases = (0_u32..1 << count).filter(|case| {
            let above = case.count_ones() as usize;
            above <= from || count as usize - above <= from
        });
        cases.count() as f64 / f64::from(1_u32 << count)
    }

    #[test]
    fn order_statistics_match_enumeration() {
        for count in 6..=16_u32 {
            for confidence in [0.95, 0.975] {
                match innermost(u64::from(count), confidence) {
                    Some(from) => {
                        assert!(
                            outside(count, from) <= 1.0 - confidence,
                            "{count} {confidence}"
                        );
                        assert!(
                            outside(count, from + 1) > 1.0 - confidence,
                            "{count} {confidence}: too wide"
                        );
                    }
                    None => assert!(outside(count, 0) > 1.0 - confidence, "{count} {confidence}"),
                }
            }
        }
        assert_eq!(
            (innermost(6, 0.95), innermost(9, 0.95), innermost(6, 0.975)),
            (Some(0), Some(1), None)
        );
    }

    #[test]
    fn live_blocks_are_judged_by_signs() {
        let estimate = Estimate::of_median(&[4.0, 1.0, 3.0, 2.0, 6.0, 5.0], 0.95).expect("numbers");
        assert_eq!(
            (estimate.mean, estimate.low, estimate.high, estimate.blocks),
            (3.5, 1.0, 6.0, 6)
        );
        close(estimate.probability(0.5), 2.0 / 64.0);
        close(estimate.probability(1.5), 14.0 / 64.0);
        close(estimate.probability(3.5), 1.0);
        let few = Estimate::of_median(&[3.0, 1.0, 2.0], 0.95).expect("numbers");
        assert_eq!((few.low, few.high, few.probability(100.0)), (1.0, 3.0, 1.0));
        assert_eq!(
            (
                Estimate::of_median(&[], 0.95),
                Estimate::of_median(&[f64::NAN; 6], 0.95)
            ),
            (None, None)
        );
    }

    #[test]
    fn blocks_to_settle_grows_with_claims() {
        // One of eight is on the wrong side.
        let live = [1.003, 0.999, 1.001, 1.002, 1.002, 1.003, 1.0, 1.022];
        let estimate = Estimate::of_median(&live, 0.95).expect("numbers");
        assert_eq!(estimate.blocks_to_settle(1.02, 1, 0.05), Some(9));
        assert_eq!(estimate.blocks_to_settle(1.02, 8, 0.05), Some(16));
        assert_eq!(
            estimate.blocks_to_settle(2.0, 1, 0.05),
            Some(8),
            "it is sure by now"
        );
        let even = Estimate::of_median(&[0.0, 2.0, 0.0, 2.0, 0.0, 2.0], 0.95).expect("numbers");
        assert_eq!(even.blocks_to_settle(1.0, 1, 0.05), None);
        // The same spread as above: 3.5 with an error of 0.764 of six.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).expect("numbers");
        let blocks = estimate.blocks_to_settle(4.5, 1, 0.05).expect("some");
        let errors = |blocks: usize| 1.0 / (3.5_f64 / 6.0 * 6.0 / blocks as f64).sqrt();
        assert!(
            t_test(errors(blocks), blocks) <= 0.05 && t_test(errors(blocks - 1), blocks - 1) > 0.05
        );
        assert_eq!(estimate.blocks_to_settle(3.5, 1, 0.05), None);
    }

    #[test]
    fn more_claims_need_more_blocks() {
        assert_eq!(
            [1, 2, 3, 6].map(|claims| blocks_needed(claims, 0.05)),
            [6, 7, 7, 8]
        );
    }

    #[test]
    fn exact_estimate_needs_one_run() {
        let exact = Estimate::exact(1.02).expect("a number");
        assert_eq!(
            (
                exact.blocks,
                exact.probability(1.0),
                exact.probability(1.02)
            ),
            (1, 0.0, 0.0)
        );
        assert!(exact.is_enough() && !Estimate::of(&[1.02], 0.95).expect("a number").is_enough());
        assert_eq!(Estimate::exact(f64::NAN), None);
    }

    #[test]
    fn holm_matches_the_textbook_example() {
        // The worked example of most textbooks.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(found, expected);
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    #[test]
    fn spearman_compares_ranks() {
        assert_eq!(spearman(&[1.0, 5.0, 7.0]), Some(1.0));
        assert_eq!(spearman(&[9.0, 5.0, -7.0]), Some(-1.0));
        assert_eq!(spearman(&[2.0, 2.0]), None);
        // 1 - 6 * 2 / (4 * 15).
        close(spearman(&[1.0, 3.0, 2.0, 4.0]).expect("a trend"), 0.8);
    }
}
