//! Errors in a configuration of the capacity policy.

use napreduce_engine::Ratio;

/// An invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    #[error("duplicate queue name {0:?}; give each queue its own name")]
    Duplicate(String),
    #[error("invalid queue name {0:?}; it must not be empty or \"root\"")]
    Name(String),
    #[error("queue {queue:?}: unknown parent {parent:?}; expected one of: {known}")]
    UnknownParent {
        queue: String,
        parent: String,
        known: String,
    },
    #[error("these queues form a cycle: {0}; move one of them below root")]
    Cycle(String),
    #[error("the guarantees of the queues below {parent:?} add up to {sum} % (limit 100 %)")]
    OverCommitted { parent: String, sum: Ratio },
    #[error("queue {queue:?}: invalid {name} {value}; give {least} to 100")]
    Percent {
        queue: String,
        /// The name of the value.
        name: &'static str,
        value: Ratio,
        least: u32,
    },
    #[error(
        "queue {queue:?}: guaranteed-percent {guaranteed} exceeds max-percent {max}; raise max-percent"
    )]
    MaximumBelowGuarantee {
        queue: String,
        guaranteed: Ratio,
        max: Ratio,
    },
    /// Shares without an exact common denominator.
    #[error("queue {0:?}: its shares and those of other queues have too many digits; round them")]
    TooFine(String),
    #[error("{what} is 0, so no job could run; give 1 or more, or remove it")]
    NoRunningJobs { what: String },
    #[error("default-queue {name:?} is not a leaf queue; expected one of: {leaves}")]
    DefaultQueue { name: String, leaves: String },
    #[error("monitor: interval must be positive; give a span such as \"3s\"")]
    NoInterval,
    #[error("monitor: invalid {name} {value}; give {least} to {most}")]
    OutOfBounds {
        name: &'static str,
        value: Ratio,
        least: Ratio,
        most: Ratio,
    },
    #[error("monitor: {name} {value} has too many digits; give at most six after the point")]
    TooManyDigits { name: &'static str, value: Ratio },
}
