//! Skewed partitions: the distribution of a job's bytes over its reduces.

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The distribution of partition sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// Zipf's law: the k-th largest partition is smaller than the largest by k to this power. 0 makes all
    /// equal.
    Zipf(f64),
    /// A power law: sizes from a Pareto distribution of this shape; smaller shapes have heavier tails.
    Pareto(f64),
}

impl Skew {
    /// Returns the sizes of `count` partitions relative to their mean, in random order.
    pub fn sizes(self, count: usize, random: &mut impl Rng) -> Vec<f64> {
        let mut sizes: Vec<f64> = match self {
            Skew::Zipf(exponent) => (1..=count)
                .map(|rank| (rank as f64).powf(-exponent))
                .collect(),
            Skew::Pareto(shape) => (0..count)
                .map(|_| (1.0 - random.random::<f64>()).powf(-1.0 / shape))
                .collect(),
        };
        sizes.shuffle(random);
        let mean = sizes.iter().sum::<f64>() / count.max(1) as f64;
        sizes.iter().map(|size| size / mean).collect()
    }

    /// Validates the parameter.
    ///
    /// # Errors
    /// Names the value and the allowed range.
    pub fn check(self) -> Result<(), String> {
        match self {
            Skew::Zipf(exponent) if !(0.0..=10.0).contains(&exponent) => {
                Err(format!("invalid zipf exponent {exponent}; give 0 to 10"))
            }
            Skew::Pareto(shape) if !(0.1..=100.0).contains(&shape) => {
                Err(format!("invalid pareto shape {shape}; give 0.1 to 100"))
            }
            Skew::Zipf(_) | Skew::Pareto(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    fn sizes(skew: Skew, count: usize) -> Vec<f64> {
        let mut sizes = skew.sizes(count, &mut Pcg64::seed_from_u64(4));
        sizes.sort_by(|one, other| other.total_cmp(one));
        sizes
    }

    #[test]
    fn sizes_have_mean_one() {
        for skew in [Skew::Zipf(0.0), Skew::Zipf(1.0), Skew::Pareto(1.5)] {
            for count in [1, 2, 700] {
                let mean = sizes(skew, count).iter().sum::<f64>() / count as f64;
                assert!((mean - 1.0).abs() < 1e-9, "{skew:?}, {count}: {mean}");
            }
        }
        assert!(sizes(Skew::Zipf(2.0), 0).is_empty());
    }

    #[test]
    fn zipf_sizes_follow_ranks() {
        assert_eq!(sizes(Skew::Zipf(0.0), 3), [1.0, 1.0, 1.0]);
        let by_rank = sizes(Skew::Zipf(1.0), 4);
        for (rank, size) in (1..).zip(&by_rank) {
            assert!(
                (by_rank[0] / size - f64::from(rank)).abs() < 1e-9,
                "{by_rank:?}"
            );
        }
    }

    #[test]
    fn pareto_median_is_below_mean() {
        let sizes = sizes(Skew::Pareto(1.5), 10_001);
        // The median of a Pareto distribution of shape 1.5 is 2^(2/3) / 3 of its mean.
        assert!((sizes[5_000] - 0.529).abs() < 0.08, "{}", sizes[5_000]);
    }
}
