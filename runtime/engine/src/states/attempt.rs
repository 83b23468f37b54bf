//! The state machine of an attempt: what actually runs, and the unit that is preempted.
//!
//! Every order has a state of its own that only the worker's acknowledgement, or the end of the
//! process, leaves:
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
//! A report that the process is gone is legal in every live state: the task may finish while it is being
//! suspended, checkpointed or killed, and a slot held for a process that is gone would never come back. What
//! a report means depends on what was ordered: a failure while `Killing` is the kill; a kill that nobody
//! ordered is a failure.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::IllegalTransition;

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptState {
    /// Ordered to start; its process has not said hello.
    Launching,
    /// At work.
    Running,
    /// Ordered to stop; not yet verified stopped.
    Suspending,
    /// Verified stopped: it keeps its memory and gave up its slot.
    Suspended,
    /// Ordered to continue; not yet acknowledged.
    Resuming,
    /// Ordered to save its work and exit.
    Checkpointing,
    /// Ordered to be killed; the process may still be there.
    Killing,
    /// The process is gone.
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

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttemptOutcome {
    /// It did its task.
    Done,
    /// It failed, by whoever's fault.
    Failed,
    /// It was killed as ordered; not a failure.
    Killed,
    /// It saved its work; the task goes on from there.
    Checkpointed,
    /// Its worker is gone.
    Lost,
}

listed! {
    /// What can happen to an attempt: reports of its worker, orders of the engine, and the loss of the
    /// worker.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum AttemptInput {
        /// Reported: the process began.
        Started,
        /// Reported: work went on.
        Progressed,
        /// Reported: it waits for map outputs that it cannot read.
        InputsLost,
        /// Reported: it asks to commit.
        CommitRequested,
        /// Reported: its task is done.
        Done,
        /// Reported: it failed.
        Failed,
        /// Reported: it was killed.
        Killed,
        /// Reported: it is verified stopped.
        Suspended,
        /// Reported: it cannot be stopped where it is, and goes on.
        SuspendRefused,
        /// Reported: it runs again.
        Resumed,
        /// Reported: its work is saved and it is gone.
        Checkpointed,
        /// The engine orders it to stop.
        SuspendOrdered,
        /// The engine orders it to continue.
        ResumeOrdered,
        /// The engine orders it to save its work and exit.
        CheckpointOrdered,
        /// The engine orders its end.
        KillOrdered,
        /// Its worker is gone.
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

    /// The state after `input`.
    ///
    /// # Errors
    /// When the table has no row for the pair.
    pub fn on(self, input: AttemptInput) -> Result<AttemptState, IllegalTransition> {
        if let Some(outcome) = self.ending(input) {
            return Ok(AttemptState::Finished(outcome));
        }
        self.going_on(input).ok_or_else(|| IllegalTransition::new("attempt", self, input))
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
            // Whatever it complains of while being killed, it is the kill.
            (State::Killing, Input::Failed | Input::Killed) => Outcome::Killed,
            (_, Input::Failed) => Outcome::Failed,
            // Nobody here ordered it, so something is wrong over there: it must count, or it could
            // go on for ever.
            (_, Input::Killed) => Outcome::Failed,
            // It cannot have saved what it never began.
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
            // A stopped one is woken for it, without a slot.
            (State::Running | State::Suspended, Input::CheckpointOrdered) => State::Checkpointing,
            (State::Killing, Input::KillOrdered) => return None,
            (_, Input::KillOrdered) => State::Killing,
            // Acknowledgements of earlier orders may cross a kill on the way.
            (State::Killing, Input::Started | Input::Suspended | Input::SuspendRefused | Input::Resumed) => {
                State::Killing
            }
            // What the process wrote before it stopped may be read after it stopped.
            (State::Launching, Input::Progressed | Input::InputsLost | Input::CommitRequested) => {
                return None;
            }
            (state, Input::Progressed | Input::InputsLost | Input::CommitRequested) => state,
            _ => return None,
        })
    }

    /// Whether it is suspended, or just being suspended: its worker keeps only so many of these.
    pub fn is_stopped(self) -> bool {
        matches!(self, AttemptState::Suspending | AttemptState::Suspended)
    }

    /// Whether the process may be using its slot. `Killing` and `Checkpointing` depend on whether it was
    /// stopped before: see the engine.
    pub fn holds_slot(self) -> bool {
        !matches!(self, AttemptState::Suspended | AttemptState::Finished(_))
    }
}
