//! What can be wrong with a configuration of the capacity policy.
//!
//! Owns the errors and their texts. Does not own the checks.

use napreduce_engine::Ratio;

/// A configuration that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// Queues are told apart by name.
    #[error("there are two queues named {0:?}; give each its own name")]
    Duplicate(String),
    #[error("a queue cannot be named {0:?}; give it a name other than \"root\"")]
    Name(String),
    #[error("the parent of queue {queue:?} is {parent:?}, which is no queue; there are: {known}")]
    UnknownParent {
        queue: String,
        parent: String,
        /// What it may say.
        known: String,
    },
    #[error("these queues are not below root but below each other: {0}; give one of them another parent")]
    Cycle(String),
    /// More than there is.
    #[error("the queues below {parent:?} are guaranteed {sum} % of it together; 100 % is the most")]
    OverCommitted {
        parent: String,
        /// What they are guaranteed together.
        sum: Ratio,
    },
    /// A share that is none.
    #[error("{name} of queue {queue:?} is {value}; give {least} to 100")]
    Percent {
        queue: String,
        /// Which of its values.
        name: &'static str,
        value: Ratio,
        least: u32,
    },
    /// The guarantee could not be kept.
    #[error("queue {queue:?} is guaranteed {guaranteed} % but may have {max} % at most; raise max-percent")]
    MaximumBelowGuarantee {
        queue: String,
        guaranteed: Ratio,
        /// What it may have.
        max: Ratio,
    },
    /// Shares that cannot be added exactly.
    #[error("the shares of queue {0:?} and its like have too many digits together; use simpler numbers")]
    TooFine(String),
    /// Its jobs would wait for ever.
    #[error("{what} is 0, so that no job would ever run; give 1 or more, or leave it out")]
    NoRunningJobs { what: String },
    /// Jobs are in leaves only.
    #[error("default-queue is {name:?}, which is no queue that takes jobs; those are: {leaves}")]
    DefaultQueue {
        name: String,
        /// What it may say.
        leaves: String,
    },
    /// The monitor would never stop.
    #[error("interval of the monitor is 0; give the time from one round to the next, such as \"3s\"")]
    NoInterval,
    #[error("{name} of the monitor is {value}; give {least} to {most}")]
    OutOfBounds { name: &'static str, value: Ratio, least: Ratio, most: Ratio },
    #[error("{name} of the monitor is {value}; give at most six digits after the point")]
    TooManyDigits { name: &'static str, value: Ratio },
}
