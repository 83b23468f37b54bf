//! What is going to happen, by time.
//!
//! Owns the order of things to come: by time, then by when they were entered. Does not own what they are
//! about: an entry that is out of date is told by the stamp it carries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use napreduce_engine::Time;

/// Something that will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// An attempt has reached a point of progress that is to be reported.
    Mark { attempt: u32, stamp: u32 },
    /// What an attempt is doing comes to its end.
    PhaseEnds { attempt: u32, stamp: u32 },
    /// An order acts on its worker.
    Arrives { attempt: u32, life: u32, order: OrderKind },
    /// A machine is lost, unless it was lost before.
    Lost { worker: u32 },
    /// A machine is back.
    Returns { machine: u32 },
    /// The set-up or the clean-up task of a job is over.
    JobTaskEnds { number: u64 },
    /// The engine wants to be woken.
    Wake,
    /// Every attempt at work reports its progress.
    Tick,
    /// A worker speaks with the coordinator.
    Heartbeat { worker: u32 },
}

/// An order, without what it is about.
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

/// The entries, earliest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    entered: u64,
}

impl Queue {
    pub fn push(&mut self, time: Time, due: Due) {
        self.entered += 1;
        self.heap.push(Reverse(Entry { time, sequence: self.entered, due }));
    }

    /// The time of the first entry.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.time)
    }

    /// Takes the first entry if it is due.
    pub fn pop_due(&mut self, now: Time) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.due)
    }
}
