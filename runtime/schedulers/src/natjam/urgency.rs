//! The order of jobs with deadlines, and the choice of claimant and victim.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time, listed};

listed! {
    /// The running job that loses a slot.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DeadlineEviction {
        /// The job with the latest deadline.
        #[default]
        #[serde(rename = "maximum-deadline-first", alias = "MDF")]
        MaximumDeadlineFirst = "maximum-deadline-first",
        /// The job with the largest laxity.
        #[serde(rename = "maximum-laxity-first", alias = "MLF")]
        MaximumLaxityFirst = "maximum-laxity-first",
    }
}

listed! {
    /// The waiting job that is served first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum DeadlineSelection {
        #[serde(rename = "earliest-deadline-first", alias = "EDF")]
        EarliestDeadlineFirst = "earliest-deadline-first",
        #[serde(rename = "least-laxity-first", alias = "LLF")]
        LeastLaxityFirst = "least-laxity-first",
    }
}

/// The sort key of a matching pair of eviction and selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrgencyKey {
    Deadline,
    /// The laxity: deadline - now - remaining time.
    Laxity,
}

/// A pair that would swap two jobs endlessly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "eviction {eviction} does not match selection {selection}: it would evict the job that was just resumed; \
     use maximum-deadline-first with earliest-deadline-first, or maximum-laxity-first with least-laxity-first"
)]
pub struct MixedPair {
    pub eviction: DeadlineEviction,
    pub selection: DeadlineSelection,
}

impl DeadlineEviction {
    /// Returns the matching selection.
    pub fn selection(self) -> DeadlineSelection {
        match self {
            DeadlineEviction::MaximumDeadlineFirst => DeadlineSelection::EarliestDeadlineFirst,
            DeadlineEviction::MaximumLaxityFirst => DeadlineSelection::LeastLaxityFirst,
        }
    }

    /// Returns the key of a matching pair.
    ///
    /// # Errors
    /// Fails if the pair does not match.
    pub fn paired_with(self, selection: DeadlineSelection) -> Result<UrgencyKey, MixedPair> {
        if self.selection() != selection {
            return Err(MixedPair {
                eviction: self,
                selection,
            });
        }
        Ok(match self {
            DeadlineEviction::MaximumDeadlineFirst => UrgencyKey::Deadline,
            DeadlineEviction::MaximumLaxityFirst => UrgencyKey::Laxity,
        })
    }
}

/// The urgency of a job: smaller is more urgent, and may be negative. Jobs without deadline are the least
/// urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Urgency(i128);

impl Urgency {
    /// The urgency of a job without deadline.
    pub const NONE: Urgency = Urgency(i128::MAX);

    pub fn of_deadline(deadline: Option<Time>) -> Urgency {
        deadline.map_or(Urgency::NONE, |deadline| Urgency(i128::from(deadline.0)))
    }

    pub fn of_laxity(deadline: Option<Time>, now: Time, remaining: Span) -> Urgency {
        let laxity =
            |deadline: Time| i128::from(deadline.0) - i128::from(now.0) - i128::from(remaining.0);
        deadline.map_or(Urgency::NONE, |deadline| Urgency(laxity(deadline)))
    }

    /// Returns the value in microseconds; `None` without a deadline.
    pub fn micros(self) -> Option<i128> {
        (self != Urgency::NONE).then_some(self.0)
    }

    /// Whether a job of this urgency loses slots to a job before it in the queue. With a margin, it must be
    /// less urgent by more than the margin.
    pub fn yields_to(self, other: Urgency, margin: Span) -> bool {
        margin == Span(0) || self.0 > other.0.saturating_add(i128::from(margin.0))
    }
}

/// A job in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    pub job: JobId,
    pub submitted: Time,
    pub urgency: Urgency,
    /// Preemptable containers.
    pub allocated: u32,
    /// Waiting tasks.
    pub pending: u32,
}

impl Contender {
    /// Compares by urgency, then submission, then id.
    pub fn order(&self, other: &Contender) -> Ordering {
        (self.urgency, self.submitted, self.job).cmp(&(other.urgency, other.submitted, other.job))
    }
}

/// Returns the position of the first waiting job; `queue` must be sorted.
pub fn claimant(queue: &[Contender]) -> Option<usize> {
    queue.iter().position(|job| job.pending > 0)
}

/// Returns the position of the last job behind the claimant that holds containers and is less urgent by more
/// than the margin; `queue` must be sorted.
pub fn victim(queue: &[Contender], claimant: usize, margin: Span) -> Option<usize> {
    let urgency = queue[claimant].urgency;
    let is_victim = |job: &Contender| job.allocated > 0 && job.urgency.yields_to(urgency, margin);
    let behind = queue[claimant + 1..].iter().rposition(is_victim)?;
    Some(claimant + 1 + behind)
}
