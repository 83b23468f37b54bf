//! Numbers drawn by a seed: sizes, times and gaps.
//!
//! Owns the distributions a workload can name and how they are written. Does not own what is drawn.

use std::fmt;

use rand::Rng;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A number, always the same or drawn: in a file `5`, `{ uniform = [1, 9] }`, `{ exponential = 30 }` and so
/// on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Always this.
    Fixed(f64),
    /// From the first up to the second, all equally likely.
    Uniform([f64; 2]),
    /// From the first up to the second, all factors equally likely: as many between 1 and 10 as between 10
    /// and 100.
    LogUniform([f64; 2]),
    /// Exponential with this mean.
    Exponential(f64),
    /// Exponential with one of these means, drawn by their shares.
    Hyperexponential {
        means: Vec<f64>,
        /// How likely each is, in relation to the others.
        shares: Vec<f64>,
    },
    /// Log-normal: half are below the median, and the logarithm has this standard deviation; cut off at
    /// `maximum` if there is one.
    LogNormal {
        median: f64,
        sigma: f64,
        #[serde(default)]
        maximum: Option<f64>,
    },
    /// Pareto: at least `minimum`, and heavier in the tail the smaller the `shape` is; cut off at `maximum`
    /// if there is one.
    Pareto {
        minimum: f64,
        /// The exponent.
        shape: f64,
        #[serde(default)]
        maximum: Option<f64>,
    },
}

impl Distribution {
    pub fn draw(&self, random: &mut impl Rng) -> f64 {
        match self {
            Distribution::Fixed(number) => *number,
            Distribution::Uniform([from, to]) => from + (to - from) * random.random::<f64>(),
            Distribution::LogUniform([from, to]) => from * (to / from).powf(random.random::<f64>()),
            Distribution::Exponential(mean) => mean * exponential(random),
            Distribution::Hyperexponential { means, shares } => {
                let mut rest = random.random::<f64>() * shares.iter().sum::<f64>();
                let mut drawn = means.last().copied().unwrap_or(0.0);
                for (mean, share) in means.iter().zip(shares) {
                    if rest < *share {
                        drawn = *mean;
                        break;
                    }
                    rest -= share;
                }
                drawn * exponential(random)
            }
            Distribution::LogNormal { median, sigma, maximum } => {
                let normal: f64 = StandardNormal.sample(random);
                let drawn = median * (sigma * normal).exp();
                maximum.map_or(drawn, |maximum| drawn.min(maximum))
            }
            Distribution::Pareto { minimum, shape, maximum } => {
                let drawn = minimum * (1.0 - random.random::<f64>()).powf(-1.0 / shape);
                maximum.map_or(drawn, |maximum| drawn.min(maximum))
            }
        }
    }

    /// About the mean, or the median where the tail has none.
    pub(super) fn typical(&self) -> f64 {
        match self {
            Distribution::Fixed(number) | Distribution::Exponential(number) => *number,
            Distribution::Uniform([from, to]) => (from + to) / 2.0,
            Distribution::LogUniform([from, to]) => (from * to).sqrt(),
            Distribution::Hyperexponential { means, shares } => {
                let sum: f64 = means.iter().zip(shares).map(|(mean, share)| mean * share).sum();
                sum / shares.iter().sum::<f64>()
            }
            Distribution::LogNormal { median, maximum, .. } => {
                maximum.map_or(*median, |most| median.min(most))
            }
            Distribution::Pareto { minimum, shape, maximum } => {
                let median = minimum * 2_f64.powf(1.0 / shape);
                maximum.map_or(median, |most| median.min(most))
            }
        }
    }

    /// What is wrong with its parameters, if anything is.
    ///
    /// # Errors
    /// Says which parameter is out of bounds.
    pub fn check(&self) -> Result<(), String> {
        let amount = |number: f64| {
            if number.is_finite() && number >= 0.0 {
                Ok(())
            } else {
                Err(format!("{number} is not allowed; give a number from 0"))
            }
        };
        let positive = |number: f64| {
            if number.is_finite() && number > 0.0 {
                Ok(())
            } else {
                Err(format!("{number} is not allowed; give a number above 0"))
            }
        };
        let range = |from: f64, to: f64| {
            if from <= to { Ok(()) } else { Err(format!("{from} is above {to}; give the smaller one first")) }
        };
        match self {
            Distribution::Fixed(number) | Distribution::Exponential(number) => amount(*number),
            Distribution::Uniform([from, to]) => amount(*from).and(amount(*to)).and(range(*from, *to)),
            Distribution::LogUniform([from, to]) => positive(*from).and(amount(*to)).and(range(*from, *to)),
            Distribution::Hyperexponential { means, shares } => {
                if means.is_empty() || means.len() != shares.len() {
                    return Err("give as many shares as means, and at least one".to_owned());
                }
                means.iter().chain(shares).try_for_each(|number| amount(*number))?;
                positive(shares.iter().sum())
            }
            Distribution::LogNormal { median, sigma, maximum } => {
                positive(*median).and(amount(*sigma)).and(maximum.map_or(Ok(()), positive))
            }
            Distribution::Pareto { minimum, shape, maximum } => positive(*minimum)
                .and(positive(*shape))
                .and(maximum.map_or(Ok(()), |most| range(*minimum, most))),
        }
    }
}

fn exponential(random: &mut impl Rng) -> f64 {
    Exp1.sample(random)
}

/// The forms with a name, as serde reads them.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Named {
    Fixed(f64),
    Uniform([f64; 2]),
    LogUniform([f64; 2]),
    Exponential(f64),
    #[serde(rename_all = "kebab-case")]
    Hyperexponential {
        means: Vec<f64>,
        shares: Vec<f64>,
    },
    #[serde(rename_all = "kebab-case")]
    LogNormal {
        median: f64,
        sigma: f64,
        maximum: Option<f64>,
    },
    #[serde(rename_all = "kebab-case")]
    Pareto {
        minimum: f64,
        shape: f64,
        maximum: Option<f64>,
    },
}

impl From<Named> for Distribution {
    fn from(named: Named) -> Distribution {
        match named {
            Named::Fixed(number) => Distribution::Fixed(number),
            Named::Uniform(range) => Distribution::Uniform(range),
            Named::LogUniform(range) => Distribution::LogUniform(range),
            Named::Exponential(mean) => Distribution::Exponential(mean),
            Named::Hyperexponential { means, shares } => Distribution::Hyperexponential { means, shares },
            Named::LogNormal { median, sigma, maximum } => Distribution::LogNormal { median, sigma, maximum },
            Named::Pareto { minimum, shape, maximum } => Distribution::Pareto { minimum, shape, maximum },
        }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
        struct NumberOrTable;
        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Distribution;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a number, or a distribution such as { uniform = [1, 9] } or { exponential = 30 }",
                )
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Distribution, E> {
                Ok(Distribution::Fixed(number))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Distribution, E> {
                Ok(Distribution::Fixed(number as f64))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Distribution, E> {
                Ok(Distribution::Fixed(number as f64))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
                Named::deserialize(MapAccessDeserializer::new(map)).map(Distribution::from)
            }
        }
        deserializer.deserialize_any(NumberOrTable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64;

    fn mean(of: &Distribution) -> f64 {
        let mut random = Pcg64::seed_from_u64(3);
        (0..200_000).map(|_| of.draw(&mut random)).sum::<f64>() / 200_000.0
    }

    #[test]
    fn means_are_what_they_should_be() {
        let near = |of: Distribution, expected: f64| {
            let found = mean(&of);
            assert!((found / expected - 1.0).abs() < 0.02, "{of:?}: {found}");
        };
        near(Distribution::Fixed(7.0), 7.0);
        near(Distribution::Uniform([2.0, 4.0]), 3.0);
        near(Distribution::LogUniform([1.0, 100.0]), 99.0 / 100_f64.ln());
        near(Distribution::Exponential(30.0), 30.0);
        let (means, shares) = (vec![0.5, 1.5], vec![1.0, 1.0]);
        near(Distribution::Hyperexponential { means, shares }, 1.0);
        near(Distribution::LogNormal { median: 5.0, sigma: 0.5, maximum: None }, 5.0 * 0.125_f64.exp());
        near(Distribution::Pareto { minimum: 1.0, shape: 3.0, maximum: None }, 1.5);
    }

    #[test]
    fn a_cut_off_tail_is_cut_off() {
        let cut = Distribution::Pareto { minimum: 1.0, shape: 0.5, maximum: Some(20.0) };
        let mut random = Pcg64::seed_from_u64(1);
        assert!((0..10_000).all(|_| (1.0..=20.0).contains(&cut.draw(&mut random))));
    }

    #[test]
    fn parameters_out_of_bounds_are_refused() {
        let refused = |of: Distribution| of.check().expect_err("it is out of bounds");
        assert_eq!(refused(Distribution::Fixed(-1.0)), "-1 is not allowed; give a number from 0");
        assert_eq!(refused(Distribution::Uniform([5.0, 1.0])), "5 is above 1; give the smaller one first");
        assert_eq!(refused(Distribution::LogUniform([0.0, 1.0])), "0 is not allowed; give a number above 0");
        assert_eq!(
            refused(Distribution::Hyperexponential { means: vec![1.0], shares: vec![] }),
            "give as many shares as means, and at least one"
        );
        assert!(
            refused(Distribution::Pareto { minimum: 1.0, shape: 0.0, maximum: None }).contains("above 0")
        );
        assert!(
            refused(Distribution::LogNormal { median: 0.0, sigma: 1.0, maximum: None }).contains("above 0")
        );
        assert!(refused(Distribution::Exponential(f64::NAN)).contains("NaN"));
    }
}
