//! Virtual workers: machine slots, attempts, and what waits for the next heartbeat. How machines join and are
//! lost.

use napreduce_engine::{AttemptId, Event, Slots, Span, TaskKind, Time, WorkerId};

use super::Simulation;
use super::attempts::{Attempts, Phase};
use super::batch::Group;
use super::clock::{SentOrder, TimedEvent, next_multiple};
use super::failures::lifetime;
use super::reports::PendingReport;
use crate::slot_time;

/// All workers since the start of the run. A machine that returns is a new worker.
#[derive(Debug)]
pub(super) struct Workers {
    all: Vec<VirtualWorker>,
    /// The current or last worker on each machine.
    on_machine: Vec<u32>,
}

impl Workers {
    pub fn new(machines: u32) -> Workers {
        Workers {
            all: Vec::new(),
            on_machine: vec![0; machines as usize],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a worker on a machine; returns its position.
    fn add(&mut self, machine: u32, slots: Slots, shared: bool) -> u32 {
        let position = u32::try_from(self.all.len()).expect("worker numbers fit 32 bits");
        let id = WorkerId(position + 1);
        self.all
            .push(VirtualWorker::new(id, machine, slots, shared));
        self.on_machine[machine as usize] = position;
        position
    }

    pub fn at(&self, worker: u32) -> &VirtualWorker {
        &self.all[worker as usize]
    }

    pub fn at_mut(&mut self, worker: u32) -> &mut VirtualWorker {
        &mut self.all[worker as usize]
    }

    /// Returns the position of a worker of the engine.
    pub fn position_of(WorkerId(number): WorkerId) -> u32 {
        number - 1
    }

    /// Returns the current or last worker on a machine, if there is such a machine.
    pub fn on_machine(&self, machine: u32) -> Option<&VirtualWorker> {
        let worker = self.on_machine.get(machine as usize)?;
        Some(self.at(*worker))
    }

    /// Returns the current or last worker of every machine.
    pub fn of_machines(&self) -> impl Iterator<Item = &VirtualWorker> {
        self.on_machine.iter().map(|worker| self.at(*worker))
    }

    /// Returns the places of all attempts, by worker.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        self.all
            .iter()
            .flat_map(|worker| worker.attempts.iter().copied())
    }
}

/// A worker.
#[derive(Debug)]
pub(super) struct VirtualWorker {
    pub id: WorkerId,
    pub machine: u32,
    is_up: bool,
    /// Places of its attempts, including suspended ones.
    pub attempts: Vec<u32>,
    /// Processes that occupy a slot, by kind.
    running: [u32; 2],
    slots: Slots,
    /// Whether both kinds share the slots.
    shared: bool,
    /// Memory of its suspended attempts.
    suspended_memory: u128,
    /// Time of the last contact with the coordinator.
    last_contact: Option<Time>,
    /// Time of the scheduled heartbeat.
    next_heartbeat: Option<Time>,
    /// Reports for that heartbeat, in order.
    pub reports: Vec<PendingReport>,
    /// Orders for that heartbeat, in order.
    pub orders: Vec<SentOrder>,
}

/// What a worker and the coordinator exchange in a heartbeat.
pub(super) struct Heartbeat {
    pub reports: Vec<PendingReport>,
    pub orders: Vec<SentOrder>,
}

impl VirtualWorker {
    fn new(id: WorkerId, machine: u32, slots: Slots, shared: bool) -> VirtualWorker {
        VirtualWorker {
            id,
            machine,
            is_up: true,
            attempts: Vec::new(),
            running: [0; 2],
            slots,
            shared,
            suspended_memory: 0,
            last_contact: None,
            next_heartbeat: None,
            reports: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Returns the name of its machine in recordings.
    pub fn machine_name(&self) -> String {
        format!("machine-{}", self.machine + 1)
    }

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

    /// Removes an attempt.
    pub fn remove(&mut self, place: u32) {
        self.attempts.retain(|&other| other != place);
    }

    /// Keeps the memory of an attempt that is being suspended. Returns the bytes that are swapped out: those
    /// beyond the spare memory, if that is limited.
    pub fn suspend(&mut self, memory: u64, spare: Option<u64>) -> u64 {
        let before = self.suspended_memory;
        let after = before + u128::from(memory);
        self.suspended_memory = after;
        let Some(spare) = spare else {
            return 0;
        };
        let in_memory = before.max(u128::from(spare));
        let swapped = after.saturating_sub(in_memory);
        u64::try_from(swapped).unwrap_or(u64::MAX)
    }

    /// Returns the memory of an attempt that is no longer suspended.
    pub fn end_suspension(&mut self, memory: u64) {
        self.suspended_memory -= u128::from(memory);
    }

    /// Whether the worker is in contact with the coordinator now, so that an order reaches it immediately:
    /// it had a heartbeat at this instant, or is due to have its regular one, which then counts as had.
    pub fn make_contact(&mut self, now: Time, period: Span) -> bool {
        let in_contact = self.last_contact == Some(now) || now.0.is_multiple_of(period.0);
        if in_contact {
            self.last_contact = Some(now);
        }
        in_contact
    }

    /// Returns the time of the next regular heartbeat.
    pub fn regular_heartbeat(&self, now: Time, period: Span) -> Time {
        let next = next_multiple(now, period);
        if next == now && self.last_contact == Some(now) {
            return now + period;
        }
        next
    }

    /// Plans a heartbeat, unless an earlier one is planned. Returns whether the plan changed.
    pub fn plan_heartbeat(&mut self, time: Time) -> bool {
        let is_earlier = self.next_heartbeat.is_none_or(|planned| time < planned);
        if is_earlier {
            self.next_heartbeat = Some(time);
        }
        is_earlier
    }

    /// Has the heartbeat that is planned for now. Returns what it exchanges.
    pub fn take_heartbeat(&mut self, now: Time) -> Option<Heartbeat> {
        if !self.is_up || self.next_heartbeat != Some(now) {
            return None;
        }
        self.next_heartbeat = None;
        self.last_contact = Some(now);
        Some(Heartbeat {
            reports: std::mem::take(&mut self.reports),
            orders: std::mem::take(&mut self.orders),
        })
    }

    /// Loses the worker and what it would have exchanged. Returns the places of its attempts.
    fn lose(&mut self) -> Vec<u32> {
        self.is_up = false;
        self.next_heartbeat = None;
        self.reports.clear();
        self.orders.clear();
        std::mem::take(&mut self.attempts)
    }
}

impl Simulation {
    /// A machine joins, or rejoins, as a new worker.
    pub(super) fn join(&mut self, machine: u32) {
        let slots = self.settings.slots_of(machine);
        let shared = self.settings.engine.shared_slots;
        let worker = self.workers.add(machine, slots, shared);
        self.run
            .slot_time
            .slots_added(slots.map, slots.reduce, shared);
        let id = self.workers.at(worker).id;
        self.batch.push(
            Group::Joined,
            worker,
            None,
            Event::WorkerJoined {
                worker: id,
                slots,
                host: String::new(),
                rack: self.settings.rack_name(machine),
            },
        );
        if let Some(memory) = self.settings.overheads.machine_memory {
            let bytes = memory.ram.saturating_sub(memory.base);
            self.batch.push(
                Group::Joined,
                worker,
                None,
                Event::WorkerMemory { worker: id, bytes },
            );
        }
        if let Some(mean) = self.settings.failures.machine_mean {
            let life = lifetime(self.settings.seed, machine, u64::from(worker), mean);
            self.clock
                .schedule_after(life, TimedEvent::WorkerLost { worker });
        }
    }

    /// Removes a worker with its attempts.
    pub(super) fn lose(&mut self, worker: u32) {
        let lost = self.workers.at_mut(worker);
        let id = lost.id;
        let machine = lost.machine;
        for place in lost.lose() {
            self.lose_attempt(place);
        }
        let slots = self.settings.slots_of(machine);
        self.run.slot_time.slots_removed(slots.map, slots.reduce);
        self.run.machines_lost += 1;
        // Simulated machines fail at random, never because of their tasks.
        let lost = Event::WorkerLost {
            worker: id,
            crashed: false,
        };
        self.batch.push(Group::Failure, worker, None, lost);
        if let Some(after) = self.settings.failures.machine_return {
            self.clock
                .schedule_after(after, TimedEvent::MachineReturns { machine });
        }
    }

    /// Removes an attempt of a lost worker, whose work is lost.
    fn lose_attempt(&mut self, place: u32) {
        self.charge_slot_time(place);
        let attempt = self.attempts.at_mut(place);
        // The rest of its exit has no effect.
        attempt.phase = Phase::Gone;
        let id = attempt.id;
        let executed = attempt.executed();
        let holds_slot = attempt.holds_slot;
        self.waste(id.task.job, executed);
        if holds_slot {
            self.slot_freed(id);
        }
        self.remove_attempt(place);
    }
}
