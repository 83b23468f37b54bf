//! Accounting of slot time, and the identities that must hold in every run. Held slots are counted from the
//! coordinator's events, everything else from the virtual attempts, so that the identities check one against
//! the other.

use napreduce_engine::{Span, TaskKind, Time};
use serde::{Deserialize, Serialize};

/// Sums over all slots, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTime {
    /// Time slots were held, by kind: maps, reduces.
    pub busy: [u64; 2],
    /// Work of completed tasks.
    pub useful: u64,
    /// Lost work: of killed, failed and duplicate attempts, checkpoint losses, and outputs that were computed
    /// again.
    pub wasted: u64,
    /// Work of attempts and checkpoints that are incomplete when the run ends.
    pub unfinished: u64,
    /// Slowdown of running attempts by others on the disks or network of their machine.
    pub sharing: u64,
    /// Reduces waiting for maps.
    pub waiting: u64,
    /// Orders to launch or resume in transit.
    pub orders: u64,
    /// Process start and reading of checkpoints.
    pub launch: u64,
    pub masters: u64,
    /// Suspending processes.
    pub suspend: u64,
    /// Resuming processes.
    pub resume: u64,
    /// Writing checkpoints.
    pub checkpoint: u64,
    /// Cleanup of killed attempts.
    pub kill: u64,
    /// From the end of an attempt until the coordinator knows.
    pub reports: u64,
    /// Work preserved by a suspend or checkpoint that a kill would have lost.
    pub saved: u64,
    /// Available slot time, by kind.
    pub capacity: [u64; 2],
    held: [u64; 2],
    slots: [u64; 2],
    shared: bool,
    counted_until: Time,
    jobs: u64,
    jobs_integral: u128,
    sojourns: u128,
}

/// A violated identity: a bug in the simulator or the engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{identity}: {left} does not equal {right}; this is a bug in napreduce, please report it with the seed"
)]
pub struct SlotTimeError {
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

impl SlotTime {
    /// Returns the time spent on neither work nor waiting.
    pub fn overhead(&self) -> u64 {
        let moved = self.suspend + self.resume + self.checkpoint + self.kill;
        self.orders + self.launch + self.masters + moved + self.reports
    }

    /// Returns the fraction of all slot time that slots were held.
    pub fn utilisation(&self) -> f64 {
        let all = self.capacity[0] + self.capacity[1];
        if all == 0 {
            0.0
        } else {
            (self.busy[0] + self.busy[1]) as f64 / all as f64
        }
    }

    /// Returns whether both kinds of tasks use the same slots: containers.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns the time of the slots that tasks of a kind can use.
    pub fn capacity_for(&self, kind: usize) -> u64 {
        if self.shared {
            self.capacity[0]
        } else {
            self.capacity[kind]
        }
    }

    /// Accumulates all counters up to a time.
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

    /// Adds slots; shared slots are counted once, as map slots.
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
        let (held, total) = if self.shared {
            (self.held[0] + self.held[1], self.slots[0])
        } else {
            (self.held[of(kind)], self.slots[of(kind)])
        };
        assert!(held <= total, "more {kind} slots are held than exist");
    }

    pub(crate) fn slot_freed(&mut self, kind: TaskKind) {
        self.held[of(kind)] -= 1;
    }

    pub(crate) fn job_submitted(&mut self) {
        self.jobs += 1;
    }

    pub(crate) fn job_ended(&mut self, sojourn: Span) {
        self.jobs -= 1;
        self.sojourns += u128::from(sojourn.0);
    }

    pub(crate) fn held(&self, kind: TaskKind) -> u64 {
        self.held[of(kind)]
    }

    /// Checks both identities; `unfinished` is the total sojourn so far of jobs that have not ended.
    pub(crate) fn check(&self, unfinished: u128) -> Result<(), SlotTimeError> {
        let spent = self.useful
            + self.wasted
            + self.unfinished
            + self.waiting
            + self.sharing
            + self.overhead();
        let equal = |identity, left: u128, right: u128| {
            if left == right {
                Ok(())
            } else {
                Err(SlotTimeError {
                    identity,
                    left,
                    right,
                })
            }
        };
        let busy = u128::from(self.busy[0]) + u128::from(self.busy[1]);
        equal(
            "slot time held = useful + wasted + overhead",
            busy,
            u128::from(spent),
        )?;
        equal(
            "integral of jobs = sum of sojourns",
            self.jobs_integral,
            self.sojourns + unfinished,
        )
    }
}
