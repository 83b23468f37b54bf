//! The order of jobs with deadlines, and who gives way to whom.
//!
//! Owns deadlines and laxities as keys, the pairs of eviction and selection that agree, and the choice of
//! claimant and victim. Does not own when it is asked, nor where remaining times come from.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time, listed};

listed! {
    /// Which running job gives way.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DeadlineEviction {
        /// The one with the latest deadline.
        #[default]
        #[serde(rename = "maximum-deadline-first", alias = "MDF")]
        MaximumDeadlineFirst = "maximum-deadline-first",
        /// The one with the largest laxity.
        #[serde(rename = "maximum-laxity-first", alias = "MLF")]
        MaximumLaxityFirst = "maximum-laxity-first",
    }
}

listed! {
    /// Which waiting job is served first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DeadlineSelection {
        #[serde(rename = "earliest-deadline-first", alias = "EDF")]
        EarliestDeadlineFirst = "earliest-deadline-first",
        #[serde(rename = "least-laxity-first", alias = "LLF")]
        LeastLaxityFirst = "least-laxity-first",
    }
}

/// What both sides of a consistent pair go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrgencyKey {
    Deadline,
    /// The laxity: deadline - now - remaining time.
    Laxity,
}

/// A pair that would swap two jobs for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "eviction {eviction} does not go with selection {selection}: one would resume the job that the other has just evicted; \
     give maximum-deadline-first with earliest-deadline-first, or maximum-laxity-first with least-laxity-first"
)]
pub struct MixedPair {
    /// The choice of victims.
    pub eviction: DeadlineEviction,
    /// The choice of claimants.
    pub selection: DeadlineSelection,
}

impl DeadlineEviction {
    /// The selection that goes with it.
    pub fn selection(self) -> DeadlineSelection {
        match self {
            DeadlineEviction::MaximumDeadlineFirst => DeadlineSelection::EarliestDeadlineFirst,
            DeadlineEviction::MaximumLaxityFirst => DeadlineSelection::LeastLaxityFirst,
        }
    }

    /// What a pair goes by, if both sides go by the same.
    ///
    /// # Errors
    /// For a mixed pair.
    pub fn paired_with(self, selection: DeadlineSelection) -> Result<UrgencyKey, MixedPair> {
        if self.selection() != selection {
            return Err(MixedPair { eviction: self, selection });
        }
        Ok(match self {
            DeadlineEviction::MaximumDeadlineFirst => UrgencyKey::Deadline,
            DeadlineEviction::MaximumLaxityFirst => UrgencyKey::Laxity,
        })
    }
}

/// How urgent a job is; smaller is more urgent, and no deadline is the least urgent. May be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Urgency(i128);

impl Urgency {
    /// Of a job without deadline.
    pub const NONE: Urgency = Urgency(i128::MAX);

    pub fn of_deadline(deadline: Option<Time>) -> Urgency {
        deadline.map_or(Urgency::NONE, |deadline| Urgency(i128::from(deadline.0)))
    }

    pub fn of_laxity(deadline: Option<Time>, now: Time, remaining: Span) -> Urgency {
        let laxity = |deadline: Time| i128::from(deadline.0) - i128::from(now.0) - i128::from(remaining.0);
        deadline.map_or(Urgency::NONE, |deadline| Urgency(laxity(deadline)))
    }

    /// The microseconds of it; none without a deadline.
    pub fn micros(self) -> Option<i128> {
        (self != Urgency::NONE).then_some(self.0)
    }

    /// Whether a job as urgent as this gives way to one that is before it in the queue: with a margin, only
    /// if it is less urgent by more than that.
    pub fn gives_way_to(self, other: Urgency, margin: Span) -> bool {
        margin == Span(0) || self.0 > other.0.saturating_add(i128::from(margin.0))
    }
}

/// A job in the one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    pub job: JobId,
    pub submitted: Time,
    /// How urgent it is.
    pub urgency: Urgency,
    /// How many containers can be taken from it.
    pub allocated: u32,
    /// How many tasks of it wait.
    pub pending: u32,
}

impl Contender {
    /// More urgent, then submitted earlier, then smaller id.
    pub fn order(&self, other: &Contender) -> Ordering {
        (self.urgency, self.submitted, self.job).cmp(&(other.urgency, other.submitted, other.job))
    }
}

/// In a queue in order: the place of the first job that waits.
pub fn claimant(queue: &[Contender]) -> Option<usize> {
    queue.iter().position(|job| job.pending > 0)
}

/// In a queue in order: the place of the last job behind the claimant that holds something and is less urgent
/// by more than the margin.
pub fn victim(queue: &[Contender], claimant: usize, margin: Span) -> Option<usize> {
    let urgency = queue[claimant].urgency;
    let gives_way = |job: &Contender| job.allocated > 0 && job.urgency.gives_way_to(urgency, margin);
    let behind = queue[claimant + 1..].iter().rposition(gives_way)?;
    Some(claimant + 1 + behind)
}
