//! Configuration of FCS: values, published defaults and validation.

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span};

use crate::fcs::estimates::{Bounds, migration_threshold};

/// Configuration of FCS, with the paper's values as defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FcsConfiguration {
    /// The policy that assigns map slots, configured in its own table.
    pub maps: String,
    /// Slackness bound: a reduce whose elapsed time exceeds its work by this factor is not preempted.
    pub slackness_bound: Ratio,
    /// A reduce with more progress than this is not preempted.
    pub progress_max: Ratio,
    /// A reduce that has run for less than this is not preempted.
    #[serde(with = "napreduce_engine::time::text")]
    pub service_min: Span,
    /// Opportunities that a preempted reduce declines before it may migrate to another worker.
    pub declines: u32,
    /// Fraction of preempted reduces that should return to their worker; `declines` is then derived from
    /// it and the number of workers.
    pub locality: Option<Ratio>,
    /// Interval between opportunities on one worker, refreshes of estimates, and preemption rounds. 0
    /// counts every offer.
    #[serde(with = "napreduce_engine::time::text")]
    pub heartbeat: Span,
    pub primitive: Primitive,
    /// Grace period of a victim before it is killed.
    #[serde(with = "napreduce_engine::time::text_or_never")]
    pub grace: Option<Span>,
}

impl Default for FcsConfiguration {
    fn default() -> FcsConfiguration {
        FcsConfiguration {
            maps: "fair".to_owned(),
            slackness_bound: Ratio::whole(5),
            progress_max: Ratio::new(7, 10),
            service_min: Span::from_secs(10),
            declines: 60,
            locality: None,
            heartbeat: Span::from_secs(3),
            primitive: Primitive::Checkpoint,
            grace: None,
        }
    }
}

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FcsError {
    #[error("invalid slackness-bound {0}; give a ratio above 0")]
    Slackness(Ratio),
    #[error("invalid progress-max {0}; give 0 to 1")]
    Progress(Ratio),
    #[error("invalid locality {0}; give a fraction above 0 and below 1")]
    Locality(Ratio),
}

impl FcsConfiguration {
    /// Validates the values.
    ///
    /// # Errors
    /// Fails if a value is out of range; names the value and the range.
    pub fn check(&self) -> Result<(), FcsError> {
        if self.slackness_bound <= Ratio::ZERO {
            return Err(FcsError::Slackness(self.slackness_bound));
        }
        if self.progress_max < Ratio::ZERO || self.progress_max > Ratio::ONE {
            return Err(FcsError::Progress(self.progress_max));
        }
        match self.locality {
            Some(share) if share <= Ratio::ZERO || share >= Ratio::ONE => {
                Err(FcsError::Locality(share))
            }
            _ => Ok(()),
        }
    }

    /// Returns the bounds on preemptable reduces, in microseconds.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            slackness: self.slackness_bound,
            progress_max: self.progress_max,
            service_min: Ratio::whole(self.service_min.0),
        }
    }

    /// Returns how many opportunities a preempted reduce declines on a cluster of `workers`.
    pub fn patience(&self, workers: u32) -> u64 {
        match self.locality {
            Some(share) => migration_threshold(workers, share.to_f64()).round() as u64,
            None => u64::from(self.declines),
        }
    }

    /// Returns the interval at which waiting jobs are re-examined.
    pub fn period(&self) -> Span {
        if self.heartbeat.0 == 0 {
            Span::from_secs(1)
        } else {
            self.heartbeat
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_reported() {
        let refused = |change: fn(&mut FcsConfiguration)| {
            let mut configuration = FcsConfiguration::default();
            change(&mut configuration);
            configuration
                .check()
                .expect_err("the value is invalid")
                .to_string()
        };
        assert_eq!(FcsConfiguration::default().check(), Ok(()));
        assert_eq!(
            refused(|it| it.slackness_bound = Ratio::ZERO),
            "invalid slackness-bound 0; give a ratio above 0"
        );
        assert_eq!(
            refused(|it| it.progress_max = Ratio::new(3, 2)),
            "invalid progress-max 3/2; give 0 to 1"
        );
        let locality = refused(|it| it.locality = Some(Ratio::ONE));
        assert_eq!(
            locality,
            "invalid locality 1; give a fraction above 0 and below 1"
        );
    }

    #[test]
    fn patience_is_configured_or_derived_from_locality() {
        let mut configuration = FcsConfiguration::default();
        assert_eq!(configuration.patience(20), 60);
        configuration.locality = Some(Ratio::new(95, 100));
        assert_eq!(configuration.patience(20), 61);
    }

    #[test]
    fn configuration_survives_serialization() {
        let written =
            r#"{"locality": 0.9, "heartbeat": "500ms", "primitive": "kill", "grace": "10s"}"#;
        let read: FcsConfiguration = serde_json::from_str(written).expect("a configuration");
        assert_eq!(
            (read.locality, read.primitive),
            (Some(Ratio::new(9, 10)), Primitive::Kill)
        );
        let again = serde_json::to_string(&read).expect("text");
        assert_eq!(
            serde_json::from_str::<FcsConfiguration>(&again).expect("the same"),
            read
        );
        assert!(serde_json::from_str::<FcsConfiguration>(r#"{"d": 3}"#).is_err());
    }
}
