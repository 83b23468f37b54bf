//! What can be chosen about FCS, with the paper's values as defaults.
//!
//! Owns the values and whether they make sense. Does not own what they do.

use serde::{Deserialize, Serialize};

use napreduce_engine::{Primitive, Ratio, Span, fields};

use crate::fcs::estimates::{Bounds, migration_threshold};

fields! {
    /// What can be chosen about FCS.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
    pub struct FcsConfiguration {
        /// The name of the policy that gives map slots, with the values of its own table; of no meaning to
        /// FCS itself.
        pub maps: String = "fair".to_owned(),
        /// A reduce that has been there for so many times as long as its work takes is not preempted
        /// any more.
        pub slackness_bound: Ratio = Ratio::whole(5),
        /// Nor is one that has done more than this share of its work.
        pub progress_max: Ratio = Ratio::new(7, 10),
        /// Nor one that was at work for less than this.
        #[serde(with = "napreduce_engine::time::text")]
        pub service_min: Span = Span::from_secs(10),
        /// So many opportunities a preempted reduce declines, and one more, before it goes on anywhere.
        pub declines: u32 = 60,
        /// The share of preempted reduces that are to go on where they were: `declines` then follows from it
        /// and the number of workers.
        pub locality: Option<Ratio>,
        /// How often a worker's free slot is an opportunity, estimates are refreshed, and jobs that wait ask
        /// for slots again. Every offer is an opportunity when 0.
        #[serde(with = "napreduce_engine::time::text")]
        pub heartbeat: Span = Span::from_secs(3),
        /// How slots are taken from larger jobs.
        pub primitive: Primitive = Primitive::Checkpoint,
        /// After how long a victim is killed that has not given its slot.
        #[serde(with = "napreduce_engine::time::text_or_never")]
        pub grace: Option<Span>,
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FcsError {
    /// Nothing would ever be preempted, or nothing protected.
    #[error("slackness-bound is {0}; give a ratio above 0")]
    Slackness(Ratio),
    /// Not a share.
    #[error("progress-max is {0}; give 0 to 1")]
    Progress(Ratio),
    /// No number of declined opportunities reaches it, or it means nothing.
    #[error("locality is {0}; give a share above 0 and below 1")]
    Locality(Ratio),
}

impl FcsConfiguration {
    /// Whether the values make sense.
    ///
    /// # Errors
    /// Names the first that does not, and what is allowed.
    pub fn check(&self) -> Result<(), FcsError> {
        if self.slackness_bound <= Ratio::ZERO {
            return Err(FcsError::Slackness(self.slackness_bound));
        }
        if self.progress_max < Ratio::ZERO || self.progress_max > Ratio::ONE {
            return Err(FcsError::Progress(self.progress_max));
        }
        match self.locality {
            Some(share) if share <= Ratio::ZERO || share >= Ratio::ONE => Err(FcsError::Locality(share)),
            _ => Ok(()),
        }
    }

    /// Which reduces may be preempted, in microseconds.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            slackness: self.slackness_bound,
            progress_max: self.progress_max,
            service_min: Ratio::whole(self.service_min.0),
        }
    }

    /// How many opportunities a preempted reduce declines on so many workers.
    pub fn patience(&self, workers: u32) -> u64 {
        match self.locality {
            Some(share) => migration_threshold(workers, share.to_f64()).round() as u64,
            None => u64::from(self.declines),
        }
    }

    /// How long until jobs that wait are looked at again though nothing happened.
    pub fn period(&self) -> Span {
        if self.heartbeat.0 == 0 { Span::from_secs(1) } else { self.heartbeat }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_values_are_named() {
        let refused = |change: fn(&mut FcsConfiguration)| {
            let mut configuration = FcsConfiguration::default();
            change(&mut configuration);
            configuration.check().expect_err("it makes no sense").to_string()
        };
        assert_eq!(FcsConfiguration::default().check(), Ok(()));
        assert_eq!(
            refused(|it| it.slackness_bound = Ratio::ZERO),
            "slackness-bound is 0; give a ratio above 0"
        );
        assert_eq!(refused(|it| it.progress_max = Ratio::new(3, 2)), "progress-max is 3/2; give 0 to 1");
        let locality = refused(|it| it.locality = Some(Ratio::ONE));
        assert_eq!(locality, "locality is 1; give a share above 0 and below 1");
    }

    #[test]
    fn the_patience_is_given_or_follows_from_the_locality() {
        let mut configuration = FcsConfiguration::default();
        assert_eq!(configuration.patience(20), 60);
        configuration.locality = Some(Ratio::new(95, 100));
        assert_eq!(configuration.patience(20), 61);
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let written = r#"{"locality": 0.9, "heartbeat": "500ms", "primitive": "kill", "grace": "10s"}"#;
        let read: FcsConfiguration = serde_json::from_str(written).expect("a configuration");
        assert_eq!((read.locality, read.primitive), (Some(Ratio::new(9, 10)), Primitive::Kill));
        let again = serde_json::to_string(&read).expect("text");
        assert_eq!(serde_json::from_str::<FcsConfiguration>(&again).expect("the same"), read);
        assert!(serde_json::from_str::<FcsConfiguration>(r#"{"d": 3}"#).is_err());
    }
}
