//! Natjam: production before research, and research gives way; or one queue by deadline.
//!
//! Owns the two policies. The pure decisions stand in files of their own, over plain numbers; see
//! `docs/schedulers/natjam.md`.

mod admission;
mod configuration;
mod deadline;
mod eviction;
mod expected;
mod lines;
mod policy;
mod reclaim;
mod runs;
mod table;
mod urgency;

pub use admission::DeadlineAdmission;
pub use configuration::{NatjamConfiguration, NatjamConfigurationError, NatjamRConfiguration};
pub use deadline::NatjamR;
pub use eviction::{Evictions, Holding, JobEviction};
pub use policy::Natjam;
pub use reclaim::{Aged, ReclaimLimits, ReclaimList, Reclaimed, new_requests};
pub use urgency::{
    Contender, DeadlineEviction, DeadlineSelection, MixedPair, Urgency, UrgencyKey, claimant, victim,
};
