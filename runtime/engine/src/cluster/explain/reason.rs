//! One reason, with a code that programs can go by.
//!
//! Owns which kinds of reasons there are. Does not own when one holds.

use serde::{Deserialize, Serialize};

/// Why something is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Its kind.
    pub code: ReasonCode,
    /// A sentence, for people.
    pub text: String,
}

impl Reason {
    /// A reason of a kind.
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Reason {
        Reason { code, text: text.into() }
    }
}

listed! {
    /// Kinds of reasons, with words that programs can rely on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum ReasonCode {
        /// What it is now, in a word: no reason why it waits.
        State = "state",
        /// How far it is, likewise.
        Progress = "progress",
        /// Where an attempt is and what it does, likewise.
        Attempt = "attempt",
        /// Who has done it, likewise.
        Done = "done",
        /// How often it failed so far, likewise.
        FailedBefore = "failed-before",
        /// What was taken from it lately, likewise.
        Preempted = "preempted",
        /// What to do so that it goes on.
        Remedy = "remedy",
        /// Its job is being ended.
        Ending = "ending",
        /// An operator wants it to wait.
        HeldByOperator = "held-by-operator",
        /// Its process is stopped, for somebody else.
        Suspended = "suspended",
        /// Reduces begin when enough maps are done.
        SlowStart = "slow-start",
        /// Outputs of maps were lost and are made again.
        OutputsLost = "outputs-lost",
        /// Outputs of maps did not come through between two hosts.
        OutputsUnread = "outputs-unread",
        /// It runs on a worker of its own.
        Alone = "alone",
        /// No worker is up, or none takes attempts.
        NoWorker = "no-worker",
        /// No worker has slots of its kind.
        NoSlotsOfKind = "no-slots-of-kind",
        /// Every slot is held.
        AllSlotsTaken = "all-slots-taken",
        /// A worker drains.
        Draining = "draining",
        /// A worker gets nothing, since too much failed there.
        Excluded = "excluded",
        /// A worker gets nothing, since it lacks something.
        WorkerShort = "worker-short",
        /// A worker is kept for a task that runs alone.
        WorkerKept = "worker-kept",
        /// It failed on a worker that has a slot.
        FailedThere = "failed-there",
        /// A free slot is kept for another job.
        KeptFor = "kept-for",
        /// The scheduler left a slot empty.
        Declined = "declined",
        /// Other jobs come first.
        JobsBefore = "jobs-before",
        /// Other tasks of its job come first.
        TasksBefore = "tasks-before",
        /// A slot is being freed for it.
        BeingFreed = "being-freed",
        /// What its policy says of it.
        Scheduler = "scheduler",
    }
}

impl ReasonCode {
    /// Whether it says why something waits, rather than where it is.
    pub fn is_why(self) -> bool {
        use ReasonCode::{Attempt, Done, FailedBefore, Preempted, Progress, Remedy, State};
        !matches!(self, State | Progress | Attempt | Done | FailedBefore | Preempted | Remedy)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_kinds_share_a_word() {
        let words: BTreeSet<&str> = ReasonCode::ALL.iter().map(|code| code.in_words()).collect();
        assert_eq!(words.len(), ReasonCode::ALL.len());
    }

    #[test]
    fn where_it_is_says_not_why() {
        let where_it_is: Vec<_> =
            ReasonCode::ALL.iter().filter(|code| !code.is_why()).map(|code| code.in_words()).collect();
        assert_eq!(
            where_it_is,
            ["state", "progress", "attempt", "done", "failed-before", "preempted", "remedy"]
        );
    }
}
