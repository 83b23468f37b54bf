//! The clock, and the queue of future events, ordered by time, then by insertion. Events that no longer apply
//! remain in the queue and are recognized when they are due: by the stamp or the generation of their attempt.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use napreduce_engine::{Span, Time};

/// A future event. Attempts are named by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimedEvent {
    /// An attempt reaches a progress mark.
    MarkReached { place: u32, stamp: u32 },
    /// The current phase of an attempt ends.
    PhaseEnds { place: u32, stamp: u32 },
    /// An order arrives at its worker.
    OrderArrives(SentOrder),
    /// A machine is lost, unless it was lost before.
    WorkerLost { worker: u32 },
    /// A machine returns.
    MachineReturns { machine: u32 },
    /// A setup or cleanup task ends.
    JobTaskEnds { number: u64 },
    /// A wake-up of the engine.
    WakeUp,
    /// A periodic progress report of an attempt.
    ProgressReport { place: u32, generation: u32 },
    /// A worker's heartbeat.
    Heartbeat { worker: u32 },
}

/// An order on its way to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SentOrder {
    pub place: u32,
    /// The generation of the attempt: a later attempt in its place ignores the order.
    pub generation: u32,
    pub kind: OrderKind,
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

impl TimedEvent {
    /// The order of simultaneous events.
    fn rank(self) -> u8 {
        match self {
            TimedEvent::MarkReached { .. }
            | TimedEvent::PhaseEnds { .. }
            | TimedEvent::OrderArrives(_)
            | TimedEvent::JobTaskEnds { .. } => 0,
            TimedEvent::WorkerLost { .. } => 1,
            TimedEvent::MachineReturns { .. } => 2,
            TimedEvent::WakeUp => 3,
            TimedEvent::ProgressReport { .. } => 4,
            TimedEvent::Heartbeat { .. } => 5,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: Time,
    /// Unique, so that entries of one time keep their order.
    sequence: u64,
    event: TimedEvent,
}

/// The current time, and what is scheduled for later.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now: Time,
    /// Earliest first.
    queue: BinaryHeap<Reverse<Entry>>,
    /// Number of events scheduled so far.
    scheduled: u64,
    /// An empty buffer for the next [`Clock::take_due`].
    buffer: Vec<TimedEvent>,
    /// Workers with a heartbeat at this instant.
    heartbeats_now: Vec<u32>,
    /// The next wake-up of the engine. It replaces earlier ones, which remain in the queue.
    wake_up: Option<Time>,
}

impl Clock {
    pub fn now(&self) -> Time {
        self.now
    }

    /// Moves the clock forward; it never goes back.
    pub fn advance_to(&mut self, time: Time) {
        self.now = self.now.max(time);
    }

    /// Schedules an event for a time.
    pub fn schedule_at(&mut self, time: Time, event: TimedEvent) {
        self.scheduled += 1;
        self.queue.push(Reverse(Entry {
            time,
            sequence: self.scheduled,
            event,
        }));
    }

    /// Schedules an event for `span` after now.
    pub fn schedule_after(&mut self, span: Span, event: TimedEvent) {
        self.schedule_at(self.now + span, event);
    }

    /// Returns the time of the first event in the queue.
    pub fn next(&self) -> Option<Time> {
        let Reverse(first) = self.queue.peek()?;
        Some(first.time)
    }

    /// Removes and returns the events that are due now, in the order in which they are handled.
    pub fn take_due(&mut self) -> Vec<TimedEvent> {
        let mut due = std::mem::take(&mut self.buffer);
        while let Some(Reverse(first)) = self.queue.peek()
            && first.time <= self.now
        {
            due.push(first.event);
            self.queue.pop();
        }
        // The sort is stable: events of one rank keep the order in which they were scheduled.
        if due.len() > 1 {
            due.sort_by_key(|event| event.rank());
        }
        due
    }

    /// Takes back the buffer that [`Clock::take_due`] returned.
    pub fn recycle(&mut self, mut due: Vec<TimedEvent>) {
        due.clear();
        self.buffer = due;
    }

    /// Schedules a worker's heartbeat.
    pub fn schedule_heartbeat(&mut self, worker: u32, time: Time) {
        if time == self.now {
            self.heartbeat_now(worker);
        } else {
            self.schedule_at(time, TimedEvent::Heartbeat { worker });
        }
    }

    /// Schedules a worker's heartbeat for this instant, after its events.
    pub fn heartbeat_now(&mut self, worker: u32) {
        self.heartbeats_now.push(worker);
    }

    /// Removes and returns the workers with a heartbeat at this instant, in order.
    pub fn take_heartbeats(&mut self) -> Vec<u32> {
        let mut workers = std::mem::take(&mut self.heartbeats_now);
        workers.sort_unstable();
        workers
    }

    /// Schedules the next wake-up of the engine, instead of an earlier one.
    pub fn wake_at(&mut self, time: Time) {
        self.wake_up = Some(time);
        self.schedule_at(time, TimedEvent::WakeUp);
    }

    /// Whether a wake-up of the engine is scheduled.
    pub fn will_wake(&self) -> bool {
        self.wake_up.is_some()
    }

    /// Removes the wake-up of the engine if it is scheduled for now; returns whether it was.
    pub fn take_wake_up(&mut self) -> bool {
        let is_due = self.wake_up == Some(self.now);
        if is_due {
            self.wake_up = None;
        }
        is_due
    }
}

/// Returns the first multiple of `period` that is not before `time`; the end of time if the period is zero.
pub(super) fn next_multiple(time: Time, period: Span) -> Time {
    Time(
        time.0
            .checked_next_multiple_of(period.0)
            .unwrap_or(u64::MAX),
    )
}
