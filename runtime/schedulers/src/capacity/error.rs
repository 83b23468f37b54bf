//! What can be wrong with a configuration of the capacity policy.
//!
//! Owns the errors and their texts. Does not own the checks.

use napreduce_core::Ratio;

/// A configuration that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// Queues are told apart by name.
    #[error("there are two queues named {0:?}; give each its own name")]
    Duplicate(String),
    /// The root has a name of its own.
    #[error("a queue cannot be named {0:?}; give it a name other than \"root\"")]
    Name(String),
    /// The parent is not there.
    #[error("the parent of queue {queue:?} is {parent:?}, which is no queue; there are: {known}")]
    UnknownParent {
        /// The child.
        queue: String,
        /// What it says.
        parent: String,
        /// What it may say.
        known: String,
    },
    /// Queues that are below each other.
    #[error("these queues are not below root but below each other: {0}; give one of them another parent")]
    Cycle(String),
    /// More than there is.
    #[error("the queues below {parent:?} are guaranteed {sum} % of it together; 100 % is the most")]
    OverCommitted {
        /// Their parent.
        parent: String,
        /// What they are guaranteed together.
        sum: Ratio,
    },
    /// A share that is none.
    #[error("{name} of queue {queue:?} is {value}; give {least} to 100")]
    Percent {
        /// The queue.
        queue: String,
        /// Which of its values.
        name: &'static str,
        /// The value.
        value: Ratio,
        /// The smallest possible.
        least: u32,
    },
    /// The guarantee could not be kept.
    #[error("queue {queue:?} is guaranteed {guaranteed} % but may have {max} % at most; raise max-percent")]
    MaximumBelowGuarantee {
        /// The queue.
        queue: String,
        /// What it is guaranteed.
        guaranteed: Ratio,
        /// What it may have.
        max: Ratio,
    },
    /// Shares that cannot be added exactly.
    #[error("the shares of queue {0:?} and its like have too many digits together; use simpler numbers")]
    TooFine(String),
    /// Jobs are in leaves only.
    #[error("default-queue is {name:?}, which is no queue that takes jobs; those are: {leaves}")]
    DefaultQueue {
        /// What it says.
        name: String,
        /// What it may say.
        leaves: String,
    },
    /// The monitor would never stop.
    #[error("interval of the monitor is 0; give the time from one round to the next, such as \"3s\"")]
    NoInterval,
    /// A value of the monitor.
    #[error("{name} of the monitor is {value}; give {least} to {most}")]
    OutOfBounds {
        /// Which.
        name: &'static str,
        /// The value.
        value: Ratio,
        /// The smallest possible.
        least: Ratio,
        /// The largest possible.
        most: Ratio,
    },
    /// A value of the monitor.
    #[error("{name} of the monitor is {value}; give at most six digits after the point")]
    TooManyDigits {
        /// Which.
        name: &'static str,
        /// The value.
        value: Ratio,
    },
    /// A published option that has no meaning here.
    #[error("{name} of the monitor is not offered: {why}; leave it out")]
    NotOffered {
        /// Which.
        name: &'static str,
        /// Why not.
        why: &'static str,
    },
}
