//! What a number of each block says of the true one.
//!
//! Intervals and probabilities: Student's t over blocks whose seeds differ, as the mean of independent runs; of
//! live blocks the median, with order statistics; and Holm's correction where one figure expects several
//! things.

use serde::Serialize;
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use crate::statistics;

/// Fewer blocks say too little for an interval.
pub const BLOCKS_MIN: usize = statistics::SAMPLES_MIN;

/// How often chance alone may be taken for a verdict.
pub const LEVEL: f64 = 0.05;

/// Nobody makes more blocks than that to be sure of something.
pub const BLOCKS_MAX: usize = 10_000;

/// An estimate, with what is sure of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Of live blocks the median.
    pub mean: f64,
    /// The ends of the interval; of few blocks, of all that was measured.
    pub low: f64,
    pub high: f64,
    pub blocks: usize,
    #[serde(skip)]
    error: f64,
    /// Of a ratio, whose logarithms were summarised.
    #[serde(skip)]
    logarithmic: bool,
    /// Of live blocks, which are judged by signs.
    #[serde(skip)]
    signed: Option<Vec<f64>>,
    /// Of a run in which nothing is left to chance.
    #[serde(skip)]
    exact: bool,
}

impl Estimate {
    /// Of a difference or a plain number.
    pub fn of(values: &[f64], confidence: f64) -> Option<Estimate> {
        let (mean, error, within) = student(values, confidence)?;
        let (low, high) = match values.len() >= BLOCKS_MIN {
            true => (mean - within, mean + within),
            false => range(values),
        };
        let (logarithmic, signed, exact) = (false, None, false);
        Some(Estimate { mean, low, high, blocks: values.len(), error, logarithmic, signed, exact })
    }

    /// The number of a run that does not depend on its seed: once is enough to know it.
    pub fn exact(value: f64) -> Option<Estimate> {
        let (blocks, logarithmic, signed) = (1, false, None);
        value.is_finite().then_some(Estimate {
            mean: value,
            low: value,
            high: value,
            blocks,
            error: 0.0,
            logarithmic,
            signed,
            exact: true,
        })
    }

    /// Whether it can be judged at all.
    pub fn is_enough(&self) -> bool {
        self.exact || self.blocks >= BLOCKS_MIN
    }

    /// Whether one run is all there is to know.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Of ratios: their logarithms are summarised, so that a ratio and its inverse say the same.
    pub fn of_ratios(ratios: &[f64], confidence: f64) -> Option<Estimate> {
        let logarithms: Vec<f64> = ratios
            .iter()
            .map(|ratio| ratio.ln())
            .map(|log| log.is_finite().then_some(log))
            .collect::<Option<_>>()?;
        let plain = Estimate::of(&logarithms, confidence)?;
        let (mean, low, high) = (plain.mean.exp(), plain.low.exp(), plain.high.exp());
        Some(Estimate { mean, low, high, logarithmic: true, ..plain })
    }

    /// Of live blocks: the median, and the order statistics between which the true one is, whatever its
    /// distribution, with at least this confidence (Conover, Practical Nonparametric Statistics). Ratios need
    /// no logarithms: the median of these is that of those.
    pub fn of_median(values: &[f64], confidence: f64) -> Option<Estimate> {
        let (mean, blocks) = (statistics::median(values)?, values.len());
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // Of too few, all that was measured: no interval.
        let from = innermost(blocks as u64, confidence).filter(|_| blocks >= BLOCKS_MIN).unwrap_or(0);
        let (low, high) = (sorted[from], sorted[blocks - 1 - from]);
        let (error, logarithmic, exact) = (0.0, false, false);
        Some(Estimate { mean, low, high, blocks, error, logarithmic, signed: Some(sorted), exact })
    }

    /// How probable it is to be so far from a bound, or farther, if the true number is the bound. 1 of too
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
        // Chance has no part in the runs: it is known whether they are beyond the bound, also when they are
        // at it.
        if self.error <= distance * 1e-9 {
            return 0.0;
        }
        t_test(distance / self.error, self.blocks)
    }

    /// With how many blocks in all it would be as sure as this on which side of a bound the true number is,
    /// if those to come fall as these did, and if it is one of so many claims (Bonferroni). None up to
    /// [`BLOCKS_MAX`]. Fewer than [`BLOCKS_MIN`] say nothing of how others fall.
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

    /// From a bound, on the scale on which it is judged.
    fn distance(&self, bound: f64) -> f64 {
        match self.logarithmic {
            true => (self.mean.ln() - bound.ln()).abs(),
            false => (self.mean - bound).abs(),
        }
    }
}

/// How probable it is that a mean is so many standard errors from the true one, or more.
fn t_test(errors: f64, blocks: usize) -> f64 {
    StudentsT::new(0.0, 1.0, (blocks - 1) as f64).map_or(1.0, |student| 2.0 * student.sf(errors))
}

/// The place of the innermost order statistic, from 0, that with its counterpart encloses the median
/// with a confidence.
fn innermost(count: u64, confidence: f64) -> Option<usize> {
    let signs = Binomial::new(0.5, count).ok()?;
    // Outside of the places k and n - 1 - k are all cases with at most k on one side.
    let within = |place: &u64| 1.0 - 2.0 * signs.cdf(*place) >= confidence - 1e-12;
    (0..count / 2).take_while(within).last().and_then(|place| usize::try_from(place).ok())
}

/// How many are above and below a bound; those at it say nothing.
fn sides(values: &[f64], bound: f64) -> (u64, u64) {
    let above = values.iter().filter(|value| **value > bound).count() as u64;
    let below = values.iter().filter(|value| **value < bound).count() as u64;
    (above, below)
}

/// How probable it is that so many, or more, are on one side of the true median.
fn sign_test(above: u64, below: u64) -> f64 {
    match Binomial::new(0.5, above + below) {
        Ok(signs) => (2.0 * signs.cdf(above.min(below))).min(1.0),
        Err(_) => 1.0,
    }
}

/// How many blocks so many claims of one figure need at least to be sure of, each on one side in every block.
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
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some((mean, error, error * student.inverse_cdf((1.0 + confidence) / 2.0)))
}

fn range(values: &[f64]) -> (f64, f64) {
    let fold = |begin, pick: fn(f64, f64) -> f64| values.iter().copied().fold(begin, pick);
    (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max))
}

/// Probabilities corrected for how many there are (Holm 1979): a corrected one at or below the level is as
/// sure as one alone.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let (mut corrected, mut least) = (vec![1.0; probabilities.len()], 0.0_f64);
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(probabilities[at] * (probabilities.len() - rank) as f64).min(1.0);
        corrected[at] = least;
    }
    corrected
}

/// Spearman's coefficient of numbers against their order; none of fewer than two different ones.
pub fn spearman(values: &[f64]) -> Option<f64> {
    let ranks = ranks(values);
    let order: Vec<f64> = (1..=values.len()).map(|place| place as f64).collect();
    let mean = (values.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let (own, other) = (product(&ranks, &ranks), product(&order, &order));
    (own > 0.0 && other > 0.0).then(|| product(&ranks, &order) / (own * other).sqrt())
}

/// Equal numbers share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    values.iter().map(|value| below(*value) + (equal(*value) + 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-3, "{a} is not {b}");
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
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
    fn few_blocks_have_a_range_and_no_certainty() {
        let estimate = Estimate::of(&[3.0, 1.0, 2.0], 0.95).expect("numbers");
        assert_eq!((estimate.low, estimate.high, estimate.probability(100.0)), (1.0, 3.0, 1.0));
        assert_eq!(Estimate::of(&[], 0.95), None);
        assert_eq!(Estimate::of_ratios(&[0.0; 6], 0.95), None);
        let sure = Estimate::of(&[2.0; 6], 0.95).expect("numbers");
        assert_eq!((sure.low, sure.high, sure.probability(1.9), sure.probability(2.0)), (2.0, 2.0, 0.0, 0.0));
    }

    /// The probability, counted case by case, that the true median is outside of the places `from`
    /// and its counterpart.
    fn outside(count: u32, from: usize) -> f64 {
        let cases = (0_u32..1 << count).filter(|case| {
            let above = case.count_ones() as usize;
            above <= from || count as usize - above <= from
        });
        cases.count() as f64 / f64::from(1_u32 << count)
    }

    #[test]
    fn order_statistics_enclose_as_counting_all_cases_says() {
        for count in 6..=16_u32 {
            for confidence in [0.95, 0.975] {
                match innermost(u64::from(count), confidence) {
                    Some(from) => {
                        assert!(outside(count, from) <= 1.0 - confidence, "{count} {confidence}");
                        assert!(
                            outside(count, from + 1) > 1.0 - confidence,
                            "{count} {confidence}: too wide"
                        );
                    }
                    None => assert!(outside(count, 0) > 1.0 - confidence, "{count} {confidence}"),
                }
            }
        }
        assert_eq!((innermost(6, 0.95), innermost(9, 0.95), innermost(6, 0.975)), (Some(0), Some(1), None));
    }

    #[test]
    fn live_blocks_have_a_median_and_signs() {
        let estimate = Estimate::of_median(&[4.0, 1.0, 3.0, 2.0, 6.0, 5.0], 0.95).expect("numbers");
        assert_eq!((estimate.mean, estimate.low, estimate.high, estimate.blocks), (3.5, 1.0, 6.0, 6));
        close(estimate.probability(0.5), 2.0 / 64.0);
        close(estimate.probability(1.5), 14.0 / 64.0);
        close(estimate.probability(3.5), 1.0);
        let few = Estimate::of_median(&[3.0, 1.0, 2.0], 0.95).expect("numbers");
        assert_eq!((few.low, few.high, few.probability(100.0)), (1.0, 3.0, 1.0));
        assert_eq!((Estimate::of_median(&[], 0.95), Estimate::of_median(&[f64::NAN; 6], 0.95)), (None, None));
    }

    #[test]
    fn it_is_said_how_many_blocks_would_settle_what_is_open() {
        // One of eight is on the wrong side. That more are then is reckoned with, too.
        let live = [1.003, 0.999, 1.001, 1.002, 1.002, 1.003, 1.0, 1.022];
        let estimate = Estimate::of_median(&live, 0.95).expect("numbers");
        assert_eq!(estimate.blocks_to_settle(1.02, 1, 0.05), Some(9));
        assert_eq!(estimate.blocks_to_settle(1.02, 8, 0.05), Some(16));
        assert_eq!(estimate.blocks_to_settle(2.0, 1, 0.05), Some(8), "it is sure by now");
        let even = Estimate::of_median(&[0.0, 2.0, 0.0, 2.0, 0.0, 2.0], 0.95).expect("numbers");
        assert_eq!(even.blocks_to_settle(1.0, 1, 0.05), None);
        // The same spread as above: 3.5 with an error of 0.764 of six.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).expect("numbers");
        let blocks = estimate.blocks_to_settle(4.5, 1, 0.05).expect("some");
        let errors = |blocks: usize| 1.0 / (3.5_f64 / 6.0 * 6.0 / blocks as f64).sqrt();
        assert!(t_test(errors(blocks), blocks) <= 0.05 && t_test(errors(blocks - 1), blocks - 1) > 0.05);
        assert_eq!(estimate.blocks_to_settle(3.5, 1, 0.05), None);
    }

    #[test]
    fn more_claims_need_more_blocks() {
        assert_eq!([1, 2, 3, 6].map(|claims| blocks_needed(claims, 0.05)), [6, 7, 7, 8]);
    }

    #[test]
    fn one_run_without_chance_is_known() {
        let exact = Estimate::exact(1.02).expect("a number");
        assert_eq!((exact.blocks, exact.probability(1.0), exact.probability(1.02)), (1, 0.0, 0.0));
        assert!(exact.is_enough() && !Estimate::of(&[1.02], 0.95).expect("a number").is_enough());
        assert_eq!(Estimate::exact(f64::NAN), None);
    }

    #[test]
    fn several_claims_are_each_less_sure() {
        // The worked example of most textbooks.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(found, expected);
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    #[test]
    fn trends_are_ranks() {
        assert_eq!(spearman(&[1.0, 5.0, 7.0]), Some(1.0));
        assert_eq!(spearman(&[9.0, 5.0, -7.0]), Some(-1.0));
        assert_eq!(spearman(&[2.0, 2.0]), None);
        // 1 - 6 * 2 / (4 * 15).
        close(spearman(&[1.0, 3.0, 2.0, 4.0]).expect("a trend"), 0.8);
    }
}
