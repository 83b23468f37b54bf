//! A reason with a machine-readable code.

use serde::{Deserialize, Serialize};

/// A reason for the state of a job, task or attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: ReasonCode,
    /// A sentence, for people.
    pub text: String,
}

impl Reason {
    /// Creates a reason.
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Reason {
        Reason {
            code,
            text: text.into(),
        }
    }
}

listed! {
    /// The kinds of reasons, with stable words that programs can rely on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum ReasonCode {
        /// The current state in one word; not a reason to wait.
        State = "state",
        /// The progress; not a reason to wait.
        Progress = "progress",
        /// The worker and state of an attempt; not a reason to wait.
        Attempt = "attempt",
        /// The attempt that completed the task; not a reason to wait.
        Done = "done",
        /// The number of failures so far; not a reason to wait.
        FailedBefore = "failed-before",
        /// Recent preemptions; not a reason to wait.
        Preempted = "preempted",
        /// An action that makes it continue.
        Remedy = "remedy",
        /// Its job is being ended.
        Ending = "ending",
        /// An operator holds it.
        HeldByOperator = "held-by-operator",
        /// Its process is suspended in favor of another job.
        Suspended = "suspended",
        /// Reduces start when enough maps are done.
        SlowStart = "slow-start",
        /// Map outputs were lost and are being produced again.
        OutputsLost = "outputs-lost",
        /// Map outputs could not be transferred between two hosts.
        OutputsUnread = "outputs-unread",
        /// It must run alone on a worker.
        Alone = "alone",
        /// No worker is up, or none takes attempts.
        NoWorker = "no-worker",
        /// No worker has slots of its kind.
        NoSlotsOfKind = "no-slots-of-kind",
        /// Every slot is held.
        AllSlotsTaken = "all-slots-taken",
        /// A worker drains.
        Draining = "draining",
        /// A worker is excluded after too many failures.
        Excluded = "excluded",
        /// A worker lacks a resource and gets no attempts.
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
        /// A remark of its policy.
        Scheduler = "scheduler",
    }
}

impl ReasonCode {
    /// Returns whether the reason explains a wait, rather than a state.
    pub fn is_why(self) -> bool {
        use ReasonCode::{Attempt, Done, FailedBefore, Preempted, Progress, Remedy, State};
        !matches!(
            self,
            State | Progress | Attempt | Done | FailedBefore | Preempted | Remedy
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reason_codes_are_distinct() {
        let words: BTreeSet<&str> = ReasonCode::ALL.iter().map(|code| code.in_words()).collect();
        assert_eq!(words.len(), ReasonCode::ALL.len());
    }

    #[test]
    fn states_do_not_count_as_reasons() {
        let states: Vec<_> = ReasonCode::ALL
            .iter()
            .filter(|code| !code.is_why())
            .map(|code| code.in_words())
            .collect();
        assert_eq!(
            states,
            [
                "state",
                "progress",
                "attempt",
                "done",
                "failed-before",
                "preempted",
                "remedy"
            ]
        );
    }
}
