//! The random distributions of workload files.

use std::fmt;

use rand::Rng;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A constant or random number. In a file: `5`, `{ uniform = [1, 9] }`, `{ exponential = 30 }`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    Fixed(f64),
    /// Uniform in this range.
    Uniform([f64; 2]),
    /// Log-uniform in this range: values between 1 and 10 are as likely as between 10 and 100.
    LogUniform([f64; 2]),
    /// Exponential with this mean.
    Exponential(f64),
    /// Exponential with one of these means, chosen by weight.
    Hyperexponential {
        means: Vec<f64>,
        /// The weight of each mean.
        shares: Vec<f64>,
    },
    /// Log-normal with this median and standard deviation of the logarithm, truncated at `maximum`.
    LogNormal {
        median: f64,
        sigma: f64,
        #[serde(default)]
        maximum: Option<f64>,
    },
    /// Pareto with this minimum and shape (smaller is heavier-tailed), truncated at `maximum`.
    Pareto {
        minimum: f64,
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
            Distribution::LogNormal {
                median,
                sigma,
                maximum,
            } => {
                let normal: f64 = StandardNormal.sample(random);
                let drawn = median * (sigma * normal).exp();
                maximum.map_or(drawn, |maximum| drawn.min(maximum))
            }
            Distribution::Pareto {
                minimum,
                shape,
                maximum,
            } => {
                let drawn = minimum * (1.0 - random.random::<f64>()).powf(-1.0 / shape);
                maximum.map_or(drawn, |maximum| drawn.min(maximum))
            }
        }
    }

    /// Returns the mean, or the median for heavy tails; approximate.
    pub(super) fn typical(&self) -> f64 {
        match self {
            Distribution::Fixed(number) | Distribution::Exponential(number) => *number,
            Distribution::Uniform([from, to]) => (from + to) / 2.0,
            Distribution::LogUniform([from, to]) => (from * to).sqrt(),
            Distribution::Hyperexponential { means, shares } => {
                let sum: f64 = means
                    .iter()
                    .zip(shares)
                    .map(|(mean, share)| mean * share)
                    .sum();
                sum / shares.iter().sum::<f64>()
            }
            Distribution::LogNormal {
                median, maximum, ..
            } => maximum.map_or(*median, |most| median.min(most)),
            Distribution::Pareto {
                minimum,
                shape,
                maximum,
            } => {
                let median = minimum * 2_f64.powf(1.0 / shape);
                maximum.map_or(median, |most| median.min(most))
            }
        }
    }

    /// Validates the parameters.
    ///
    /// # Errors
    /// Names the parameter that is out of range.
    pub fn check(&self) -> Result<(), String> {
        let amount = |number: f64| {
            if number.is_finite() && number >= 0.0 {
                Ok(())
            } else {
                Err(format!("invalid number {number}; give 0 or more"))
            }
        };
        let positive = |number: f64| {
            if number.is_finite() && number > 0.0 {
                Ok(())
            } else {
                Err(format!("invalid number {number}; give a number above 0"))
            }
        };
        let range = |from: f64, to: f64| {
            if from <= to {
                Ok(())
            } else {
                Err(format!(
                    "invalid range: {from} is above {to}; give the smaller one first"
                ))
            }
        };
        match self {
            Distribution::Fixed(number) | Distribution::Exponential(number) => amount(*number),
            Distribution::Uniform([from, to]) => {
                amount(*from).and(amount(*to)).and(range(*from, *to))
            }
            Distribution::LogUniform([from, to]) => {
                positive(*from).and(amount(*to)).and(range(*from, *to))
            }
            Distribution::Hyperexponential { means, shares } => {
                if means.is_empty() || means.len() != shares.len() {
                    return Err(
                        "means and shares must have the same length, at least one".to_owned()
                    );
                }
                means
                    .iter()
                    .chain(shares)
                    .try_for_each(|number| amount(*number))?;
                positive(shares.iter().sum())
            }
            Distribution::LogNormal {
                median,
                sigma,
                maximum,
            } => positive(*median)
                .and(amount(*sigma))
                .and(maximum.map_or(Ok(()), positive)),
            Distribution::Pareto {
                minimum,
                shape,
                maximum,
            } => positive(*minimum)
                .and(positive(*shape))
                .and(maximum.map_or(Ok(()), |most| range(*minimum, most))),
        }
    }
}

fn exponential(random: &mut impl Rng) -> f64 {
    Exp1.sample(random)
}

/// The table forms, as deserialized.
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
            Named::Hyperexponential { means, shares } => {
                Distribution::Hyperexponential { means, shares }
            }
            Named::LogNormal {
                median,
                sigma,
                maximum,
            } => Distribution::LogNormal {
                median,
                sigma,
                maximum,
            },
            Named::Pareto {
                minimum,
                shape,
                maximum,
            } => Distribution::Pareto {
                minimum,
                shape,
                maximum,
            },
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
    fn draws_match_means() {
        let near = |of: Distribution, expected: f64| {
            let found = mean(&of);
            assert!((found / expected - 1.0).abs() < 0.02, "{of:?}: {found}");
        };
        near(Distribution::Fixed(7.0), 7.0);
        near(Distribution::Uniform([2.0, 4.0]), 3.0);
        near(Distribution::LogUniform([1.0, 100.0]), 99.0 / 100_f64.ln());
        near(Distribution::Exponential(30.0), 30.0);
        let means = vec![0.5, 1.5];
        let shares = vec![1.0, 1.0];
        near(Distribution::Hyperexponential { means, shares }, 1.0);
        near(
            Distribution::LogNormal {
                median: 5.0,
                sigma: 0.5,
                maximum: None,
            },
            5.0 * 0.125_f64.exp(),
        );
        near(
            Distribution::Pareto {
                minimum: 1.0,
                shape: 3.0,
                maximum: None,
            },
            1.5,
        );
    }

    #[test]
    fn pareto_is_truncated_at_maximum() {
        let cut = Distribution::Pareto {
            minimum: 1.0,
            shape: 0.5,
            maximum: Some(20.0),
        };
        let mut random = Pcg64::seed_from_u64(1);
        assert!((0..10_000).all(|_| (1.0..=20.0).contains(&cut.draw(&mut random))));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let refused = |of: Distribution| of.check().expect_err("the parameter is invalid");
        assert_eq!(
            refused(Distribution::Fixed(-1.0)),
            "invalid number -1; give 0 or more"
        );
        assert_eq!(
            refused(Distribution::Uniform([5.0, 1.0])),
            "invalid range: 5 is above 1; give the smaller one first"
        );
        assert_eq!(
            refused(Distribution::LogUniform([0.0, 1.0])),
            "invalid number 0; give a number above 0"
        );
        assert_eq!(
            refused(Distribution::Hyperexponential {
                means: vec![1.0],
                shares: vec![]
            }),
            "means and shares must have the same length, at least one"
        );
        assert!(
            refused(Distribution::Pareto {
                minimum: 1.0,
                shape: 0.0,
                maximum: None
            })
            .contains("above 0")
        );
        assert!(
            refused(Distribution::LogNormal {
                median: 0.0,
                sigma: 1.0,
                maximum: None
            })
            .contains("above 0")
        );
        assert!(refused(Distribution::Exponential(f64::NAN)).contains("NaN"));
    }
}
