//! Artificial errors on size estimates, for experiments on robustness. The error of a job's phase depends
//! only on the seed, the job and the phase.

use rand::Rng;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Ratio, TaskKind};

/// Resolution of a factor.
const MILLIONTHS: f64 = 1e6;

/// The distribution of size errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "distribution")]
pub enum SizeError {
    /// No errors.
    #[default]
    None,
    /// A factor uniform in [1 - alpha, 1 + alpha].
    Uniform {
        /// From 0 to 1.
        alpha: Ratio,
    },
    /// A factor with normally distributed logarithm of mean zero.
    LogNormal {
        /// Standard deviation of the logarithm, from 0 to 10.
        sigma: Ratio,
    },
}

/// A parameter out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSizeError {
    #[error("invalid alpha {0}; give 0 to 1")]
    Alpha(Ratio),
    #[error("invalid sigma {0}; give 0 to 10")]
    Sigma(Ratio),
}

impl SizeError {
    /// Validates the parameter.
    ///
    /// # Errors
    /// Fails if it is out of range.
    pub fn check(self) -> Result<(), InvalidSizeError> {
        let within = |value: Ratio, most: u64| value >= Ratio::ZERO && value <= Ratio::whole(most);
        match self {
            SizeError::Uniform { alpha } if !within(alpha, 1) => {
                Err(InvalidSizeError::Alpha(alpha))
            }
            SizeError::LogNormal { sigma } if !within(sigma, 10) => {
                Err(InvalidSizeError::Sigma(sigma))
            }
            _ => Ok(()),
        }
    }

    /// Returns the factor for the sizes of a job's phase; at least one millionth.
    pub fn factor(self, seed: u64, job: JobId, kind: TaskKind) -> Ratio {
        // Each phase has its own random stream.
        let stream = u128::from(job.0) << 1 | u128::from(kind == TaskKind::Reduce);
        let mut random = Pcg64::new(u128::from(seed), stream);
        let factor = match self {
            SizeError::None => return Ratio::ONE,
            SizeError::Uniform { alpha } => 1.0 + alpha.to_f64() * random.random_range(-1.0..=1.0),
            SizeError::LogNormal { sigma } => {
                (sigma.to_f64() * random.sample::<f64, _>(StandardNormal)).exp()
            }
        };
        Ratio::new(
            ((factor * MILLIONTHS).round() as i128).max(1),
            MILLIONTHS as i128,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(size_error: SizeError) -> Vec<f64> {
        let factor = |job| size_error.factor(7, JobId(job), TaskKind::Map).to_f64();
        (1..=2000).map(factor).collect()
    }

    #[test]
    fn none_has_factor_one() {
        assert!(factors(SizeError::None).iter().all(|&factor| factor == 1.0));
    }

    #[test]
    fn uniform_factors_are_bounded_with_mean_one() {
        let all = factors(SizeError::Uniform {
            alpha: Ratio::new(1, 2),
        });
        assert!(all.iter().all(|factor| (0.5..=1.5).contains(factor)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn log_normal_factors_have_median_one() {
        let all = factors(SizeError::LogNormal { sigma: Ratio::ONE });
        let above = all.iter().filter(|&&factor| factor > 1.0).count();
        assert!((900..1100).contains(&above), "{above}");
        let logs: Vec<f64> = all.iter().map(|factor| factor.ln()).collect();
        let variance = logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64;
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn factor_depends_on_seed_job_and_phase() {
        let of = |seed, job, kind| {
            SizeError::Uniform { alpha: Ratio::ONE }.factor(seed, JobId(job), kind)
        };
        assert_eq!(of(1, 1, TaskKind::Map), of(1, 1, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(2, 1, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(1, 2, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(1, 1, TaskKind::Reduce));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let alpha = Ratio::new(3, 2);
        assert_eq!(
            SizeError::Uniform { alpha }.check(),
            Err(InvalidSizeError::Alpha(alpha))
        );
        let sigma = Ratio::new(-1, 2);
        assert_eq!(
            SizeError::LogNormal { sigma }.check(),
            Err(InvalidSizeError::Sigma(sigma))
        );
        assert_eq!(SizeError::None.check(), Ok(()));
    }
}
