//! The state machine of an attempt: the unit that runs and is preempted.
//!
//! Every order has its own state, which only the worker's acknowledgement or the end of the process leaves:
//!
//! ```text
//!                 started                suspend ordered              suspended
//!    Launching ----------->  Running  -------------------> Suspending ----------> Suspended
//!                             ^   |                                                  |
//!                     resumed |   | checkpoint ordered                resume ordered |
//!                             |   v                                                  |
//!                             |  Checkpointing <------ checkpoint ordered -----------+
//!                             +----------------------- Resuming <--------------------+
//!
//!    Suspending --- suspend refused ---> Running
//!    any live state --- kill ordered ---> Killing
//!    any live state --- done | failed | killed | checkpointed | worker lost ---> Finished(outcome)
//! ```
//!
//! A report that the process has exited is legal in every live state: the task may finish while it is being
//! suspended, checkpointed or killed, and otherwise the slot of an exited process would never be freed. The
//! meaning of a report depends on the last order: a failure while `Killing` is the kill; a kill that was not
//! ordered is a failure.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptState {
    /// Ordered to start; its process has not connected yet.
    Launching,
    /// Running.
    Running,
    /// Ordered to stop; not yet verified stopped.
    Suspending,
    /// Verified stopped: it keeps its memory and has given up its slot.
    Suspended,
    /// Ordered to continue; not yet acknowledged.
    Resuming,
    /// Ordered to save its work and exit.
    Checkpointing,
    /// Ordered to be killed; the process may still exist.
    Killing,
    /// The process has exited.
    Finished(AttemptOutcome),
}

impl fmt::Display for AttemptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AttemptState::Launching => "launching",
            AttemptState::Running => "running",
            AttemptState::Suspending => "suspending",
            AttemptState::Suspended => "suspended",
            AttemptState::Resuming => "resuming",
            AttemptState::Checkpointing => "checkpointing",
            AttemptState::Killing => "killing",
            AttemptState::Finished(_) => "finished",
        })
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// It completed its task.
    Done,
    /// It failed, for any cause.
    Failed,
    /// It was killed as ordered; not a failure.
    Killed,
    /// It saved its work; the task continues from there.
    Checkpointed,
    /// Its worker is lost.
    Lost,
}

listed! {
    /// An input of an attempt: a report of its worker, an order of the engine, or the loss of the worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum AttemptInput {
        /// Reported: the process began.
        Started,
        /// Reported: it made progress.
        Progressed,
        /// Reported: it waits for map outputs that it cannot read.
        InputsLost,
        /// Reported: it requests the commit.
        CommitRequested,
        /// Reported: its task is done.
        Done,
        /// Reported: it failed.
        Failed,
        /// Reported: it was killed.
        Killed,
        /// Reported: it is verified stopped.
        Suspended,
        /// Reported: it cannot be suspended on its worker and continues.
        SuspendRefused,
        /// Reported: it runs again.
        Resumed,
        /// Reported: its work is saved and the process has exited.
        Checkpointed,
        /// The engine orders it to stop.
        SuspendOrdered,
        /// The engine orders it to continue.
        ResumeOrdered,
        /// The engine orders it to save its work and exit.
        CheckpointOrdered,
        /// The engine orders a kill.
        KillOrdered,
        /// Its worker is lost.
        WorkerLost,
    }
}

impl AttemptState {
    /// Every state, for tables and tests.
    pub const ALL: [AttemptState; 12] = [
        AttemptState::Launching,
        AttemptState::Running,
        AttemptState::Suspending,
        AttemptState::Suspended,
        AttemptState::Resuming,
        AttemptState::Checkpointing,
        AttemptState::Killing,
        AttemptState::Finished(AttemptOutcome::Done),
        AttemptState::Finished(AttemptOutcome::Failed),
        AttemptState::Finished(AttemptOutcome::Killed),
        AttemptState::Finished(AttemptOutcome::Checkpointed),
        AttemptState::Finished(AttemptOutcome::Lost),
    ];

    /// Returns the state after `input`.
    ///
    /// # Errors
    /// Fails if the table has no row for the pair.
    pub fn on(self, input: AttemptInput) -> Result<AttemptState, IllegalTransition> {
        if let Some(outcome) = self.ending(input) {
            return Ok(AttemptState::Finished(outcome));
        }
        self.going_on(input)
            .ok_or_else(|| IllegalTransition::new("attempt", self, input))
    }

    /// The rows that end the attempt.
    fn ending(self, input: AttemptInput) -> Option<AttemptOutcome> {
        use AttemptInput as Input;
        use AttemptOutcome as Outcome;
        use AttemptState as State;
        Some(match (self, input) {
            (State::Finished(_), _) => return None,
            (_, Input::WorkerLost) => Outcome::Lost,
            (_, Input::Done) => Outcome::Done,
            // Any failure reported while it is being killed is the kill.
            (State::Killing, Input::Failed | Input::Killed) => Outcome::Killed,
            (_, Input::Failed) => Outcome::Failed,
            // The engine did not order this kill, so it counts as a failure; otherwise it could repeat
            // forever.
            (_, Input::Killed) => Outcome::Failed,
            // It cannot have saved work that it never began.
            (State::Launching, Input::Checkpointed) => Outcome::Failed,
            (_, Input::Checkpointed) => Outcome::Checkpointed,
            _ => return None,
        })
    }

    /// The rows after which the attempt is still live.
    fn going_on(self, input: AttemptInput) -> Option<AttemptState> {
        use AttemptInput as Input;
        use AttemptState as State;
        Some(match (self, input) {
            (State::Finished(_), _) => return None,
            (State::Launching, Input::Started) => State::Running,
            (State::Running, Input::SuspendOrdered) => State::Suspending,
            (State::Suspending, Input::Suspended) => State::Suspended,
            (State::Suspending, Input::SuspendRefused) => State::Running,
            (State::Suspended, Input::ResumeOrdered) => State::Resuming,
            (State::Resuming, Input::Resumed) => State::Running,
            // A stopped process is woken for it, without a slot.
            (State::Running | State::Suspended, Input::CheckpointOrdered) => State::Checkpointing,
            (State::Killing, Input::KillOrdered) => return None,
            (_, Input::KillOrdered) => State::Killing,
            // Acknowledgements of earlier orders may cross a kill in transit.
            (
                State::Killing,
                Input::Started | Input::Suspended | Input::SuspendRefused | Input::Resumed,
            ) => State::Killing,
            // Output that the process wrote before it stopped may be read after the stop.
            (State::Launching, Input::Progressed | Input::InputsLost | Input::CommitRequested) => {
                return None;
            }
            (state, Input::Progressed | Input::InputsLost | Input::CommitRequested) => state,
            _ => return None,
        })
    }

    /// Returns whether it is suspended or being suspended; a worker keeps a limited number of these.
    pub fn is_stopped(self) -> bool {
        matches!(self, AttemptState::Suspending | AttemptState::Suspended)
    }

    /// Returns whether the process may be using its slot. For `Killing` and `Checkpointing` this depends on
    /// whether it was stopped before; the engine keeps track of that.
    pub fn holds_slot(self) -> bool {
        !matches!(self, AttemptState::Suspended | AttemptState::Finished(_))
    }
}
