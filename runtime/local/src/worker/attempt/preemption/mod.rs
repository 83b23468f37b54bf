//! The state machine of an attempt's suspension, resume and checkpoint: a table of the steps for each input.
//!
//! It sends no signals or messages and reads no clock (see `supervised`, `suspension`). The end of the
//! process is legal in every state and leaves the table.
//!
//! ```text
//!             hello            Suspend             Ready, or grace expired            kernel confirms
//!  Starting ---------> Running -------> Suspending ---------------------------> Stopping -------------> Suspended
//!                       ^   |                                                      ^                     |   |  |
//!               Resumed |   | Checkpoint                                           +-- continued by  ----+   |  |
//!                       |   v                                                          another process       |  |
//!                       | Checkpointing <-------------------- Checkpoint (wake it for that) -----------------+  |
//!                       +---------------- Resuming <------------------------ Resume ----------------------------+
//! ```
//!
//! If a descendant does not stop in time, `Stopping` leads over `Undoing` back to `Running`, and the suspend is
//! refused.
//!
//! SIGCONT is sent only after the stop of the task process is confirmed: before that it could be lost, and the
//! process would stay stopped. So an order that arrives while another is carried out waits for it. A task with a commit
//! grant is not stopped, since it is about to end.

use std::collections::VecDeque;

use napreduce_engine::Order;
use napreduce_protocol::ToTask;
use thiserror::Error;

use crate::world::{Situation, reached};

/// How often SIGSTOP is sent to a process that does not stop, once a second: it may wait for a disk.
pub(super) const STOPS_MAX: u32 = 5;

/// The stage of an attempt. Epochs count its suspensions from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before `Hello`, when signals are unsafe.
    Starting,
    Running,
    /// Asked to come to its gate.
    Suspending {
        epoch: u32,
    },
    /// SIGSTOP was sent and the kernel has not confirmed the stop. `again` if an earlier stop was already
    /// confirmed and reported.
    Stopping {
        epoch: u32,
        again: bool,
    },
    Suspended {
        epoch: u32,
    },
    /// A descendant did not stop: SIGCONT is being or was sent; the task has not confirmed it.
    Undoing {
        epoch: u32,
    },
    /// SIGCONT is being or was sent; the task has not confirmed it.
    Resuming {
        epoch: u32,
    },
    /// Asked to save its work and end.
    Checkpointing,
}

/// An input of the state machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Hello,
    /// A suspend, resume or checkpoint order; others have no effect.
    Ordered(Order),
    /// The attempt has a commit grant.
    Granted,
    /// The task is at its gate, where it `saves` its work without doing more of it, or not.
    Ready {
        epoch: u32,
        saves: bool,
    },
    /// The time for reaching the gate, or for stopping, is over.
    GraceOver,
    /// The kernel confirms that every thread of it and of its descendants is stopped.
    Stopped,
    /// This descendant did not stop in time.
    StillRuns {
        descendant: String,
    },
    /// Its memory is back, or as much of it as possible.
    Prefetched,
    /// The process or a descendant runs again.
    Continued,
    /// The task confirms that it runs.
    Resumed {
        epoch: u32,
    },
}

/// A step to carry out, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this and start the grace period for reaching the gate.
    Send(ToTask),
    /// Send SIGSTOP and wait for the kernel's confirmation.
    Stop,
    /// Report the suspension, which frees the slot. The task may be continued without a slot to save its work if it
    /// `saves` without doing more of it.
    ReportSuspended {
        saves: bool,
    },
    /// Bring its memory back; `Prefetched` follows.
    Prefetch,
    /// Send the resume message, then SIGCONT.
    Continue,
    ReportResumed,
    /// Report that the suspend was not possible, because of this descendant if there is one; the attempt runs in its
    /// slot.
    ReportRefused {
        obstacle: Option<String>,
    },
}

/// An order that is illegal in the present stage.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("ignored {order:?}: the attempt is {stage:?}")]
pub(super) struct Illegal {
    stage: Stage,
    order: Order,
}

/// The state of one attempt.
#[derive(Debug)]
pub(super) struct Preemption {
    stage: Stage,
    /// The epoch begun last.
    pub(super) epoch: u32,
    granted: bool,
    /// Whether the present stop is at a place where the task saves without doing more work.
    saves: bool,
    /// How often SIGSTOP was sent for the present suspend.
    stops: u32,
    /// The descendant that keeps the present suspend from being complete.
    obstacle: Option<String>,
    /// Orders that wait for the present one.
    waiting: VecDeque<Order>,
}

impl Default for Preemption {
    fn default() -> Preemption {
        Preemption {
            stage: Stage::Starting,
            epoch: 0,
            granted: false,
            saves: false,
            stops: 0,
            obstacle: None,
            waiting: VecDeque::new(),
        }
    }
}

impl Preemption {
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns whether it is stopped or about to be; it reads messages only after it resumes.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. } | Stage::Suspended { .. })
    }

    /// Processes one input and then the orders that waited for it. `page_out` decides whether a task to be
    /// suspended pages itself out; it is called only then.
    ///
    /// # Errors
    ///
    /// Fails if an order is illegal in the present stage. Late answers are ignored, not errors.
    pub(super) fn on(
        &mut self,
        input: Input,
        page_out: &dyn Fn() -> bool,
    ) -> Result<Vec<Step>, Illegal> {
        let mut steps = Vec::new();
        match input {
            Input::Granted => self.granted = true,
            Input::Ordered(order) if self.is_busy() => {
                self.waiting.push_back(order);
            }
            Input::Ordered(order) => {
                self.follow(order, page_out, &mut steps)?;
            }
            _ => self.advance(input, &mut steps),
        }
        while !self.is_busy()
            && let Some(order) = self.waiting.pop_front()
        {
            self.follow(order, page_out, &mut steps)?;
        }
        Ok(steps)
    }

    /// Returns whether an order is being carried out.
    fn is_busy(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Running | Stage::Suspended { .. } | Stage::Checkpointing
        )
    }

    fn follow(
        &mut self,
        order: Order,
        page_out: &dyn Fn() -> bool,
        steps: &mut Vec<Step>,
    ) -> Result<(), Illegal> {
        match (self.stage, &order) {
            (Stage::Running, Order::Suspend { .. }) => {
                self.epoch += 1;
                let epoch = self.epoch;
                self.stage = Stage::Suspending { epoch };
                if !self.granted {
                    steps.push(Step::Send(ToTask::Suspend {
                        epoch,
                        page_out: page_out(),
                    }));
                }
            }
            (Stage::Running, Order::Checkpoint { .. }) => {
                self.stage = Stage::Checkpointing;
                steps.push(Step::Send(ToTask::Checkpoint));
            }
            (Stage::Suspended { epoch }, Order::Resume { .. }) => {
                self.stage = Stage::Resuming { epoch };
                steps.push(Step::Prefetch);
            }
            (Stage::Suspended { .. }, Order::Checkpoint { .. }) => {
                self.stage = Stage::Checkpointing;
                // The task reads both messages when it wakes, and does no work in between.
                steps.extend([Step::Send(ToTask::Checkpoint), Step::Prefetch]);
            }
            (stage, _) => return Err(Illegal { stage, order }),
        }
        Ok(())
    }

    fn advance(&mut self, input: Input, steps: &mut Vec<Step>) {
        match (self.stage, input) {
            (Stage::Starting, Input::Hello) => self.stage = Stage::Running,
            (
                Stage::Suspending { epoch },
                Input::Ready {
                    epoch: ready,
                    saves,
                },
            ) if epoch == ready => {
                reached(Situation::SuspendedAtGate);
                self.saves = saves;
                self.stop(epoch, steps);
            }
            (Stage::Suspending { epoch }, Input::GraceOver) if !self.granted => {
                reached(Situation::SuspendedAtWork);
                self.saves = false;
                self.stop(epoch, steps);
            }
            // A signal cannot be lost, but another process may have sent SIGCONT before the stop was seen.
            (
                Stage::Stopping {
                    epoch,
                    again: false,
                },
                Input::GraceOver,
            ) if self.stops >= STOPS_MAX => {
                reached(Situation::StopGivenUp);
                self.stage = Stage::Undoing { epoch };
                steps.push(Step::Prefetch);
            }
            (Stage::Stopping { .. }, Input::GraceOver) => {
                reached(Situation::StopRepeated);
                self.stops += 1;
                steps.push(Step::Stop);
            }
            (
                Stage::Stopping {
                    epoch,
                    again: false,
                },
                Input::StillRuns { descendant },
            ) => {
                reached(Situation::DescendantRan);
                self.obstacle = Some(descendant);
                self.stage = Stage::Undoing { epoch };
                steps.push(Step::Prefetch);
            }
            // The slot was given away: only a stop helps.
            (Stage::Stopping { again: true, .. }, Input::StillRuns { .. }) => {
                steps.push(Step::Stop);
            }
            (Stage::Stopping { epoch, again }, Input::Stopped) => {
                self.stage = Stage::Suspended { epoch };
                if !again {
                    steps.push(Step::ReportSuspended { saves: self.saves });
                }
            }
            (Stage::Suspended { epoch }, Input::Continued) => {
                reached(Situation::ContinuedByOthers);
                self.stage = Stage::Stopping { epoch, again: true };
                steps.push(Step::Stop);
            }
            (
                Stage::Resuming { .. } | Stage::Undoing { .. } | Stage::Checkpointing,
                Input::Prefetched,
            ) => steps.push(Step::Continue),
            (Stage::Resuming { epoch }, Input::Resumed { epoch: resumed }) if epoch == resumed => {
                self.stage = Stage::Running;
                steps.push(Step::ReportResumed);
            }
            (Stage::Undoing { epoch }, Input::Resumed { epoch: resumed }) if epoch == resumed => {
                self.stage = Stage::Running;
                steps.push(Step::ReportRefused {
                    obstacle: self.obstacle.take(),
                });
            }
            // Late: the grace ended before it reached its gate, or it was woken for another order.
            _ => {}
        }
    }

    fn stop(&mut self, epoch: u32, steps: &mut Vec<Step>) {
        self.stage = Stage::Stopping {
            epoch,
            again: false,
        };
        self.stops = 1;
        steps.push(Step::Stop);
    }
}

#[cfg(test)]
mod tests;
