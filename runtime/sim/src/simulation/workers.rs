//! Virtual workers: machine slots, attempts, and what waits for the next heartbeat.

use napreduce_engine::{AttemptId, Slots, TaskKind, Time, WorkerId};

use super::attempts::Attempts;
use super::clock::SentOrder;
use super::reports::PendingReport;
use crate::slot_time;

#[derive(Debug)]
pub(super) struct VirtualWorker {
    pub id: WorkerId,
    pub machine: u32,
    pub up: bool,
    /// Places of its attempts, including suspended ones.
    pub attempts: Vec<u32>,
    /// Processes that occupy a slot, by kind.
    running: [u32; 2],
    slots: Slots,
    /// Whether both kinds share the slots.
    shared: bool,
    pub suspended_memory: u128,
    /// Time of the last contact with the coordinator.
    pub answered: Option<Time>,
    /// Time of the scheduled heartbeat.
    pub beat: Option<Time>,
    /// Reports for that heartbeat, in order.
    pub reports: Vec<PendingReport>,
    /// Orders for that heartbeat, in order.
    pub orders: Vec<SentOrder>,
}

impl VirtualWorker {
    pub fn new(id: WorkerId, machine: u32, slots: Slots, shared: bool) -> VirtualWorker {
        VirtualWorker {
            id,
            machine,
            up: true,
            attempts: Vec::new(),
            running: [0; 2],
            slots,
            shared,
            suspended_memory: 0,
            answered: None,
            beat: None,
            reports: Vec::new(),
            orders: Vec::new(),
        }
    }
}

impl VirtualWorker {
    /// Takes a slot for a process.
    pub fn take_slot(&mut self, kind: TaskKind) {
        let limit = if kind == TaskKind::Map {
            self.slots.map
        } else {
            self.slots.reduce
        };
        self.running[slot_time::of(kind)] += 1;
        let running = if self.shared {
            self.running[0] + self.running[1]
        } else {
            self.running[slot_time::of(kind)]
        };
        assert!(
            running <= limit,
            "{}: two attempts share a {kind} slot",
            self.id
        );
    }

    /// Frees the slot of a process.
    pub fn free_slot(&mut self, kind: TaskKind) {
        self.running[slot_time::of(kind)] -= 1;
    }

    /// Returns the place of an attempt on this worker, if it has not ended.
    pub fn find(&self, id: AttemptId, attempts: &Attempts) -> Option<u32> {
        self.attempts
            .iter()
            .rev()
            .copied()
            .find(|&place| attempts.at(place).id == id)
    }

    pub fn remove(&mut self, place: u32) {
        self.attempts.retain(|&other| other != place);
    }
}
