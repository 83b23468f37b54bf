//! Partitions of different sizes: how the bytes of a job are spread over its reduces.
//!
//! Owns the shares. Does not own what follows from bytes: the workload file says how long a reduce of the
//! mean size takes.

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// How unequal the partitions of a job are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Skew {
    /// By Zipf's law with this exponent: the largest is as large as the k-th largest times k to this power. 0
    /// makes all equal.
    Zipf(f64),
    /// By a power law: each drawn from a Pareto distribution of this shape, 1.5 for example; a smaller one
    /// has a heavier tail.
    Pareto(f64),
}

impl Skew {
    /// The sizes of so many partitions in relation to their mean, in an order drawn by chance.
    pub fn sizes(self, count: usize, random: &mut impl Rng) -> Vec<f64> {
        let mut sizes: Vec<f64> = match self {
            Skew::Zipf(exponent) => (1..=count).map(|rank| (rank as f64).powf(-exponent)).collect(),
            Skew::Pareto(shape) => {
                (0..count).map(|_| (1.0 - random.random::<f64>()).powf(-1.0 / shape)).collect()
            }
        };
        sizes.shuffle(random);
        let mean = sizes.iter().sum::<f64>() / count.max(1) as f64;
        sizes.iter().map(|size| size / mean).collect()
    }

    /// What is wrong with its parameter, if anything is.
    ///
    /// # Errors
    /// Says what is allowed.
    pub fn check(self) -> Result<(), String> {
        match self {
            Skew::Zipf(exponent) if !(0.0..=10.0).contains(&exponent) => {
                Err(format!("zipf = {exponent}; give an exponent from 0 to 10"))
            }
            Skew::Pareto(shape) if !(0.1..=100.0).contains(&shape) => {
                Err(format!("pareto = {shape}; give a shape from 0.1 to 100"))
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
    fn the_mean_is_one_whatever_the_law() {
        for skew in [Skew::Zipf(0.0), Skew::Zipf(1.0), Skew::Pareto(1.5)] {
            for count in [1, 2, 700] {
                let mean = sizes(skew, count).iter().sum::<f64>() / count as f64;
                assert!((mean - 1.0).abs() < 1e-9, "{skew:?}, {count}: {mean}");
            }
        }
        assert!(sizes(Skew::Zipf(2.0), 0).is_empty());
    }

    #[test]
    fn zipf_has_the_ranks_of_its_law() {
        assert_eq!(sizes(Skew::Zipf(0.0), 3), [1.0, 1.0, 1.0]);
        let by_rank = sizes(Skew::Zipf(1.0), 4);
        for (rank, size) in (1..).zip(&by_rank) {
            assert!((by_rank[0] / size - f64::from(rank)).abs() < 1e-9, "{by_rank:?}");
        }
    }

    #[test]
    fn a_power_law_has_its_median_below_its_mean() {
        let sizes = sizes(Skew::Pareto(1.5), 10_001);
        // The median of a Pareto distribution of shape 1.5 is 2^(2/3) / 3 of its mean.
        assert!((sizes[5_000] - 0.529).abs() < 0.08, "{}", sizes[5_000]);
    }
}
