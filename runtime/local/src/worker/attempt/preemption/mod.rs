//! The states of an attempt as far as it is stopped, continued and saved: a table, and what is to be done at
//! each step.
//!
//! Owns which step follows which input, and the orders that have to wait. Does not own signals, messages or
//! clocks (`supervised`, `suspension`). The end of the process is legal in every state and leaves the table.
//!
//! ```text
//!             hello            Suspend             Ready, or the grace is over        the kernel says so
//!  Starting ---------> Running -------> Suspending ---------------------------> Stopping -------------> Suspended
//!                       ^   |                                                      ^                     |   |  |
//!               Resumed |   | Checkpoint                                           +-- continued by  ----+   |  |
//!                       |   v                                                          somebody else         |  |
//!                       | Checkpointing <-------------------- Checkpoint (wake it for that) -----------------+  |
//!                       +---------------- Resuming <------------------------ Resume ----------------------------+
//! ```
//!
//! SIGCONT is sent in `Suspended` only: before the stop was seen it could be lost, and the stop would stick.
//! So an order that comes while another is being carried out waits for it. A task that has the right to
//! commit is not stopped: it is about to end.

use std::collections::VecDeque;

use napreduce_engine::Order;
use napreduce_protocol::ToTask;
use thiserror::Error;

/// Where an attempt is. Epochs count its suspends from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has not said hello: it may not be signalled, since it would not survive it well.
    Starting,
    Running,
    /// It was asked to come to its gate.
    Suspending {
        epoch: u32,
    },
    /// It was sent SIGSTOP; the kernel has not said yet that it is stopped. `again` when it had been stopped
    /// before, and told so.
    Stopping {
        epoch: u32,
        again: bool,
    },
    Suspended {
        epoch: u32,
    },
    /// It was or is being sent SIGCONT; it has not said yet that it runs.
    Resuming {
        epoch: u32,
    },
    /// It was asked to save its work and end.
    Checkpointing,
}

/// What happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Hello,
    /// A suspend, resume or checkpoint; no other order changes anything here.
    Ordered(Order),
    /// It has the right to commit.
    Granted,
    /// It is at its gate.
    Ready {
        epoch: u32,
    },
    /// It had time enough to come to its gate, or to stop.
    GraceOver,
    /// The kernel says that every thread of it is stopped.
    Stopped,
    /// The kernel says that it runs again.
    Continued,
    /// It says so.
    Resumed {
        epoch: u32,
    },
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Say so, and give it some time to come to its gate.
    Send(ToTask),
    /// Send SIGSTOP, and wait for the kernel's word.
    Stop,
    /// Its slot is free.
    TellSuspended,
    /// Say that it runs, then send SIGCONT.
    Continue {
        epoch: u32,
    },
    TellResumed,
}

/// An order that makes no sense now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an attempt that is {stage:?} cannot follow {order:?}; the order is ignored")]
pub(super) struct Illegal {
    stage: Stage,
    order: Order,
}

/// The state of one attempt.
#[derive(Debug)]
pub(super) struct Preemption {
    stage: Stage,
    /// The last epoch that was begun.
    pub(super) epoch: u32,
    granted: bool,
    /// Orders that wait for the present one.
    waiting: VecDeque<Order>,
}

impl Default for Preemption {
    fn default() -> Preemption {
        Preemption { stage: Stage::Starting, epoch: 0, granted: false, waiting: VecDeque::new() }
    }
}

impl Preemption {
    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it is stopped or about to be: nothing that is sent to it now is read before it goes on.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. } | Stage::Suspended { .. })
    }

    /// Takes one step, and those that have waited for it. Whether a task that is to be suspended moves its
    /// memory out by itself is asked only then.
    ///
    /// # Errors
    ///
    /// When an order makes no sense now. Answers that come late, after what they were awaited for is over,
    /// are no errors.
    pub(super) fn on(&mut self, input: Input, page_out: &dyn Fn() -> bool) -> Result<Vec<Step>, Illegal> {
        let mut steps = Vec::new();
        match input {
            Input::Granted => self.granted = true,
            Input::Ordered(order) if self.is_busy() => self.waiting.push_back(order),
            Input::Ordered(order) => self.follow(order, page_out, &mut steps)?,
            _ => self.advance(input, &mut steps),
        }
        while !self.is_busy()
            && let Some(order) = self.waiting.pop_front()
        {
            self.follow(order, page_out, &mut steps)?;
        }
        Ok(steps)
    }

    /// Whether something is under way that has an end of its own.
    fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Running | Stage::Suspended { .. } | Stage::Checkpointing)
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
                    steps.push(Step::Send(ToTask::Suspend { epoch, page_out: page_out() }));
                }
            }
            (Stage::Running, Order::Checkpoint { .. }) => {
                self.stage = Stage::Checkpointing;
                steps.push(Step::Send(ToTask::Checkpoint));
            }
            (Stage::Suspended { epoch }, Order::Resume { .. }) => {
                self.stage = Stage::Resuming { epoch };
                steps.push(Step::Continue { epoch });
            }
            (Stage::Suspended { epoch }, Order::Checkpoint { .. }) => {
                self.stage = Stage::Checkpointing;
                // It finds both words when it wakes, and does nothing in between.
                steps.extend([Step::Send(ToTask::Checkpoint), Step::Continue { epoch }]);
            }
            (stage, _) => return Err(Illegal { stage, order }),
        }
        Ok(())
    }

    fn advance(&mut self, input: Input, steps: &mut Vec<Step>) {
        match (self.stage, input) {
            (Stage::Starting, Input::Hello) => self.stage = Stage::Running,
            (Stage::Suspending { epoch }, Input::Ready { epoch: ready }) if epoch == ready => {
                self.stop(epoch, steps);
            }
            (Stage::Suspending { epoch }, Input::GraceOver) if !self.granted => self.stop(epoch, steps),
            // A signal cannot be lost, but somebody may have sent SIGCONT before the stop was seen.
            (Stage::Stopping { .. }, Input::GraceOver) => steps.push(Step::Stop),
            (Stage::Stopping { epoch, again }, Input::Stopped) => {
                self.stage = Stage::Suspended { epoch };
                if !again {
                    steps.push(Step::TellSuspended);
                }
            }
            (Stage::Suspended { epoch }, Input::Continued) => {
                self.stage = Stage::Stopping { epoch, again: true };
                steps.push(Step::Stop);
            }
            (Stage::Resuming { epoch }, Input::Resumed { epoch: resumed }) if epoch == resumed => {
                self.stage = Stage::Running;
                steps.push(Step::TellResumed);
            }
            // Late: the grace was over before it came to its gate, or it was woken for something else.
            _ => {}
        }
    }

    fn stop(&mut self, epoch: u32, steps: &mut Vec<Step>) {
        self.stage = Stage::Stopping { epoch, again: false };
        steps.push(Step::Stop);
    }
}

#[cfg(test)]
mod tests;
