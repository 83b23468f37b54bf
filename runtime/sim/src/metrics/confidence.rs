//! Confidence intervals over several runs by Student's t: the true mean is within t * s / sqrt(n) in 95 % of
//! cases. The runs must differ in their seeds only.

use serde::{Deserialize, Serialize};

/// A mean with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    pub mean: f64,
    /// Half width of the interval; `None` for a single run.
    pub within: Option<f64>,
}

/// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Returns the confidence interval of one metric over several runs.
pub fn confidence(runs: &[f64]) -> ConfidenceInterval {
    if runs.is_empty() {
        return ConfidenceInterval::default();
    }
    let count = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / count;
    if runs.len() == 1 {
        return ConfidenceInterval { mean, within: None };
    }
    let variance = runs
        .iter()
        .map(|number| (number - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    ConfidenceInterval {
        mean,
        within: Some(quantile(runs.len() - 1) * (variance / count).sqrt()),
    }
}

fn quantile(freedom: usize) -> f64 {
    match QUANTILES.get(freedom - 1) {
        Some(quantile) => *quantile,
        // Expansion of the quantile in 1/freedom around that of the normal distribution, accurate to four
        // digits.
        None => {
            let normal = 1.959_964_f64;
            let freedom = freedom as f64;
            let cubic = (normal.powi(3) + normal) / 4.0;
            let quintic = (5.0 * normal.powi(5) + 16.0 * normal.powi(3) + 3.0 * normal) / 96.0;
            normal + cubic / freedom + quintic / freedom.powi(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_run_has_no_interval() {
        assert_eq!(
            confidence(&[4.0]),
            ConfidenceInterval {
                mean: 4.0,
                within: None
            }
        );
    }

    #[test]
    fn interval_of_five_runs_matches_tables() {
        // s = sqrt(2.5), t = 2.776 with 4 degrees of freedom.
        let interval = confidence(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let within = interval.within.expect("five runs have an interval");
        assert!(
            interval.mean == 3.0 && (within - 2.776 * 0.5_f64.sqrt()).abs() < 1e-9,
            "{interval:?}"
        );
    }

    #[test]
    fn quantile_expansion_continues_table() {
        assert!((quantile(40) - 2.0211).abs() < 1e-4 && (quantile(120) - 1.9799).abs() < 1e-4);
    }
}
