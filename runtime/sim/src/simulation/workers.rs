//! Virtual workers: what runs on each, and what waits for its next word with the coordinator.
//!
//! Owns the slots as the machine sees them. Does not own the attempts themselves.

use napreduce_engine::{AttemptId, Slots, TaskKind, Time, WorkerId, fields};

use super::attempts::Attempts;
use super::queue::OrderKind;
use super::reports::Told;
use crate::books;

fields! {
    #[derive(Debug)]
    pub(super) struct VirtualWorker {
        pub id: WorkerId = id,
        pub machine: u32 = machine,
        pub up: bool = true,
        /// The places of its attempts, suspended ones included.
        pub attempts: Vec<u32>,
        /// Processes that run, by kind.
        running: [u32; 2],
        slots: Slots = slots,
        /// Both kinds of slots are the same ones.
        shared: bool = shared,
        /// Memory of its suspended attempts.
        pub suspended_memory: u128,
        /// When it last spoke with the coordinator.
        pub answered: Option<Time>,
        /// Whether its next heartbeat is in the queue, and when that is.
        pub beat: Option<Time>,
        /// What it will say then, in order.
        pub reports: Vec<Told>,
        /// Orders that leave then, in order: place and life of the attempt.
        pub orders: Vec<(u32, u32, OrderKind)>,
    }

    pub fn new(id: WorkerId, machine: u32, slots: Slots, shared: bool);
}

impl VirtualWorker {
    /// A process takes a slot.
    pub fn take_slot(&mut self, kind: TaskKind) {
        let limit = if kind == TaskKind::Map { self.slots.map } else { self.slots.reduce };
        self.running[books::of(kind)] += 1;
        let running =
            if self.shared { self.running[0] + self.running[1] } else { self.running[books::of(kind)] };
        assert!(running <= limit, "{}: two attempts share a {kind} slot", self.id);
    }

    /// A process is gone or stopped.
    pub fn free_slot(&mut self, kind: TaskKind) {
        self.running[books::of(kind)] -= 1;
    }

    /// Where an attempt on this worker is kept; none when it has ended.
    pub fn find(&self, id: AttemptId, attempts: &Attempts) -> Option<u32> {
        self.attempts.iter().rev().copied().find(|&place| attempts.at(place).id == id)
    }

    pub fn forget(&mut self, place: u32) {
        self.attempts.retain(|&other| other != place);
    }
}
