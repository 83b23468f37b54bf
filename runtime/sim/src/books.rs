//! Where the time of the slots went, and the identities that must hold of it in every run.
//!
//! Owns the sums. Slots held are counted from what the coordinator was told, everything else from what the
//! virtual attempts did: that both agree is worth checking. Does not own the results of single jobs.

use napreduce_engine::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// Sums over all slots, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Time that slots of each kind were held, maps first.
    pub busy: [u64; 2],
    /// Work of tasks that were done.
    pub useful: u64,
    /// Work that was lost: of attempts that were killed, failed or came second, what checkpoints lost, and
    /// outputs that had to be made again.
    pub wasted: u64,
    /// Work of attempts and checkpoints that are neither done nor lost when the run ends.
    pub unfinished: u64,
    /// Held by attempts at work while others of their machine had its disks or its network.
    pub sharing: u64,
    /// Held by reduces that waited for maps.
    pub waiting: u64,
    /// Held while an order to start or go on was on its way.
    pub orders: u64,
    /// Held while a process started or read a checkpoint.
    pub launch: u64,
    /// Held by the masters of jobs.
    pub masters: u64,
    /// Held while a process was being stopped.
    pub suspend: u64,
    /// Held while a process was being continued.
    pub resume: u64,
    /// Held while a checkpoint was written.
    pub checkpoint: u64,
    /// Held while a killed attempt was cleaned up.
    pub kill: u64,
    /// Held after the end, until the coordinator knew.
    pub reports: u64,
    /// Work that a suspend or a checkpoint kept and a kill there would have lost.
    pub saved: u64,
    /// Time that all slots there were could have been used, by kind.
    pub capacity: [u64; 2],
    held: [u64; 2],
    slots: [u64; 2],
    shared: bool,
    counted_until: Time,
    jobs: u64,
    jobs_integral: u128,
    sojourns: u128,
}

/// An identity that does not hold: a bug in the simulator or the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{identity}: {left} is not {right}; this is a bug in napreduce, please report it with the seed")]
pub struct BooksError {
    /// What should be equal.
    pub identity: &'static str,
    pub left: u128,
    pub right: u128,
}

/// The index of a kind.
pub(crate) const fn of(kind: TaskKind) -> usize {
    match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1,
    }
}

impl Books {
    /// Everything slots were held for besides work and waiting.
    pub fn overhead(&self) -> u64 {
        let moved = self.suspend + self.resume + self.checkpoint + self.kill;
        self.orders + self.launch + self.masters + moved + self.reports
    }

    /// The share of all slot time of both kinds that slots were held.
    pub fn utilisation(&self) -> f64 {
        let all = self.capacity[0] + self.capacity[1];
        if all == 0 { 0.0 } else { (self.busy[0] + self.busy[1]) as f64 / all as f64 }
    }

    /// Counts up to a time what goes on now.
    pub(crate) fn advance(&mut self, now: Time) {
        let span = now.since(self.counted_until).0;
        if span > 0 {
            for kind in 0..2 {
                self.busy[kind] += self.held[kind] * span;
                self.capacity[kind] += self.slots[kind] * span;
            }
            self.jobs_integral += u128::from(self.jobs) * u128::from(span);
            self.counted_until = now;
        }
    }

    /// Slots are there from now on; `shared` ones are counted once, as map slots.
    pub(crate) fn slots_added(&mut self, map: u32, reduce: u32, shared: bool) {
        self.shared = shared;
        self.slots[0] += u64::from(map);
        self.slots[1] += u64::from(if shared { 0 } else { reduce });
    }

    pub(crate) fn slots_removed(&mut self, map: u32, reduce: u32) {
        self.slots[0] -= u64::from(map);
        self.slots[1] -= u64::from(if self.shared { 0 } else { reduce });
    }

    pub(crate) fn slot_taken(&mut self, kind: TaskKind) {
        self.held[of(kind)] += 1;
        let (held, there) = match self.shared {
            true => (self.held[0] + self.held[1], self.slots[0]),
            false => (self.held[of(kind)], self.slots[of(kind)]),
        };
        assert!(held <= there, "more {kind} slots are held than there are");
    }

    pub(crate) fn slot_freed(&mut self, kind: TaskKind) {
        self.held[of(kind)] -= 1;
    }

    pub(crate) fn job_came(&mut self) {
        self.jobs += 1;
    }

    pub(crate) fn job_went(&mut self, sojourn: Span) {
        self.jobs -= 1;
        self.sojourns += u128::from(sojourn.0);
    }

    pub(crate) fn held(&self, kind: TaskKind) -> u64 {
        self.held[of(kind)]
    }

    /// Checks both identities. `unfinished` are the sojourns until now of the jobs that have not ended.
    pub(crate) fn check(&self, unfinished: u128) -> Result<(), BooksError> {
        let spent =
            self.useful + self.wasted + self.unfinished + self.waiting + self.sharing + self.overhead();
        let equal = |identity, left: u128, right: u128| {
            if left == right { Ok(()) } else { Err(BooksError { identity, left, right }) }
        };
        let busy = u128::from(self.busy[0]) + u128::from(self.busy[1]);
        equal("slot time held = useful + wasted + overhead", busy, u128::from(spent))?;
        equal("integral of jobs = sum of sojourns", self.jobs_integral, self.sojourns + unfinished)
    }
}
