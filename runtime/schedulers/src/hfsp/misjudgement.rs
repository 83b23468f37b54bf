//! Errors put on size estimates on purpose, to see what they do.
//!
//! Owns the factor of each phase of each job, which follows from the seed alone: not from the order in which
//! jobs come.

use rand::Rng;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Ratio, TaskKind};

/// Parts of one in which a factor is kept.
const MILLIONTHS: f64 = 1e6;

/// By how much sizes are misjudged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "distribution")]
pub enum Misjudgement {
    /// Not at all.
    #[default]
    None,
    /// By a factor anywhere between one less and one more than this.
    Uniform {
        /// The largest error, from 0 to 1.
        alpha: Ratio,
    },
    /// By a factor whose logarithm is normal around nought.
    LogNormal {
        /// The standard deviation of the logarithm, from 0 to 10.
        sigma: Ratio,
    },
}

/// A parameter that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MisjudgementError {
    /// Sizes would be negative.
    #[error("alpha is {0}; give 0 to 1")]
    Alpha(Ratio),
    /// No factor could be represented.
    #[error("sigma is {0}; give 0 to 10")]
    Sigma(Ratio),
}

impl Misjudgement {
    /// Whether its parameter makes sense.
    ///
    /// # Errors
    /// Says which does not and what is allowed.
    pub fn check(self) -> Result<(), MisjudgementError> {
        let within = |value: Ratio, most: u64| value >= Ratio::ZERO && value <= Ratio::whole(most);
        match self {
            Misjudgement::Uniform { alpha } if !within(alpha, 1) => Err(MisjudgementError::Alpha(alpha)),
            Misjudgement::LogNormal { sigma } if !within(sigma, 10) => Err(MisjudgementError::Sigma(sigma)),
            _ => Ok(()),
        }
    }

    /// What the sizes of a phase of a job are multiplied by; at least a millionth.
    pub fn factor(self, seed: u64, job: JobId, kind: TaskKind) -> Ratio {
        // Each phase has a stream of its own.
        let stream = u128::from(job.0) << 1 | u128::from(kind == TaskKind::Reduce);
        let mut random = Pcg64::new(u128::from(seed), stream);
        let factor = match self {
            Misjudgement::None => return Ratio::ONE,
            Misjudgement::Uniform { alpha } => 1.0 + alpha.to_f64() * random.random_range(-1.0..=1.0),
            Misjudgement::LogNormal { sigma } => {
                (sigma.to_f64() * random.sample::<f64, _>(StandardNormal)).exp()
            }
        };
        Ratio::new(((factor * MILLIONTHS).round() as i128).max(1), MILLIONTHS as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(misjudgement: Misjudgement) -> Vec<f64> {
        let factor = |job| misjudgement.factor(7, JobId(job), TaskKind::Map).to_f64();
        (1..=2000).map(factor).collect()
    }

    #[test]
    fn no_error_is_a_factor_of_one() {
        assert!(factors(Misjudgement::None).iter().all(|&factor| factor == 1.0));
    }

    #[test]
    fn uniform_errors_stay_within_their_bounds_and_average_to_one() {
        let all = factors(Misjudgement::Uniform { alpha: Ratio::new(1, 2) });
        assert!(all.iter().all(|factor| (0.5..=1.5).contains(factor)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn log_normal_errors_are_as_often_above_as_below_one() {
        let all = factors(Misjudgement::LogNormal { sigma: Ratio::ONE });
        let above = all.iter().filter(|&&factor| factor > 1.0).count();
        assert!((900..1100).contains(&above), "{above}");
        let logs: Vec<f64> = all.iter().map(|factor| factor.ln()).collect();
        let variance = logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64;
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn an_error_depends_on_the_seed_the_job_and_the_phase_alone() {
        let of = |seed, job, kind| Misjudgement::Uniform { alpha: Ratio::ONE }.factor(seed, JobId(job), kind);
        assert_eq!(of(1, 1, TaskKind::Map), of(1, 1, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(2, 1, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(1, 2, TaskKind::Map));
        assert_ne!(of(1, 1, TaskKind::Map), of(1, 1, TaskKind::Reduce));
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let alpha = Ratio::new(3, 2);
        assert_eq!(Misjudgement::Uniform { alpha }.check(), Err(MisjudgementError::Alpha(alpha)));
        let sigma = Ratio::new(-1, 2);
        assert_eq!(Misjudgement::LogNormal { sigma }.check(), Err(MisjudgementError::Sigma(sigma)));
        assert_eq!(Misjudgement::None.check(), Ok(()));
    }
}
