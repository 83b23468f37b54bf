//! The queue of future events, ordered by time, then by insertion. Stale entries are recognized by their
//! stamp.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use napreduce_engine::Time;

/// A future event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// An attempt reaches a progress mark.
    Mark {
        attempt: u32,
        stamp: u32,
    },
    /// The current phase of an attempt ends.
    PhaseEnds {
        attempt: u32,
        stamp: u32,
    },
    /// An order arrives at its worker.
    Arrives {
        attempt: u32,
        generation: u32,
        order: OrderKind,
    },
    /// A machine is lost, unless it was lost before.
    Lost {
        worker: u32,
    },
    /// A machine returns.
    Returns {
        machine: u32,
    },
    /// A setup or cleanup task ends.
    JobTaskEnds {
        number: u64,
    },
    /// A wake-up of the engine.
    Wake,
    /// A periodic progress report of an attempt.
    Report {
        attempt: u32,
        generation: u32,
    },
    Heartbeat {
        worker: u32,
    },
}

/// The kind of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OrderKind {
    Launch,
    Kill,
    Suspend,
    Resume,
    Checkpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: Time,
    sequence: u64,
    due: Due,
}

/// The events, earliest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
}

impl Queue {
    pub fn push(&mut self, time: Time, due: Due) {
        self.pushed += 1;
        self.heap.push(Reverse(Entry {
            time,
            sequence: self.pushed,
            due,
        }));
    }

    /// Returns the time of the first event.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.time)
    }

    /// Removes and returns the first event if it is due.
    pub fn pop_due(&mut self, now: Time) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.due)
    }
}
