//! Natjam: production jobs preempt research jobs; and Natjam-R: one queue by deadline. See
//! `docs/schedulers/natjam.md`.

mod admission;
mod configuration;
mod deadline;
mod eviction;
mod expected_work;
mod job_index;
mod places;
mod policy;
mod reclaim;
mod urgency;

pub use admission::DeadlineAdmission;
pub use configuration::{NatjamConfiguration, NatjamConfigurationError, NatjamRConfiguration};
pub use deadline::NatjamR;
pub use eviction::{Evictions, Holding, JobEviction};
pub use policy::Natjam;
pub use reclaim::{Aged, ReclaimLimits, ReclaimList, Reclaimed, new_requests};
pub use urgency::{
    Contender, DeadlineEviction, DeadlineSelection, MixedPair, Urgency, UrgencyKey, claimant,
    victim,
};
