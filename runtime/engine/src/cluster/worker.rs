//! A worker in the engine: its slots, their holders, and the reservations of free ones.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::accesses::count_access;
use crate::cluster::health::{Blame, Exclusion, Health};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::job::Slots;
use crate::states::WorkerState;
use crate::suspended_max::SuspendedMax;
use crate::time::Time;

/// A free slot that is kept for a job until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub job: JobId,
    pub kind: TaskKind,
    /// When it expires.
    pub until: Time,
    /// The attempt that gave up the slot for that job, if any.
    pub of: Option<AttemptId>,
}

/// A worker. Its serialized form omits data derived from its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    id: WorkerId,
    state: WorkerState,
    /// The name of its host; empty for a host of its own.
    #[serde(default)]
    host: String,
    #[serde(default = "crate::event::default_rack")]
    rack: String,
    /// Bytes of memory that its attempts use, if it reported them.
    #[serde(default)]
    memory: Option<u64>,
    #[serde(flatten)]
    health: Health,
    /// It is kept free for a task that runs alone, or runs one.
    #[serde(default)]
    cleared: bool,
    /// It drained and was allowed to leave, so its loss is expected.
    left: bool,
    /// It will be terminated externally; its attempts may save their work until this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saves_until: Option<Time>,
    slots: ByKind<u32>,
    /// Slots are shared: an attempt of either kind takes one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shared: bool,
    #[serde(skip)]
    used: ByKind<u32>,
    /// Live attempts in order, including suspended ones; for so few, a list is faster than a tree.
    #[serde(skip)]
    attempts: Vec<AttemptId>,
    /// How many of them are suspended or being suspended.
    #[serde(skip)]
    stopped: u32,
    reservations: Vec<Reservation>,
    declined: ByKind<Option<Cow<'static, str>>>,
    /// It reached its maximum of suspended attempts and still has more than half of the maximum.
    #[serde(default)]
    full: bool,
    /// How many of its slots are held by masters.
    #[serde(skip)]
    masters: u32,
    /// Its slots are included in the cluster's totals.
    #[serde(skip)]
    listed: ByKind<bool>,
}

impl Worker {
    pub(crate) fn new(id: WorkerId) -> Worker {
        Worker {
            id,
            state: WorkerState::Unknown,
            host: String::new(),
            rack: String::new(),
            memory: None,
            health: Health::default(),
            cleared: false,
            left: false,
            saves_until: None,
            slots: ByKind::default(),
            shared: false,
            used: ByKind::default(),
            attempts: Vec::new(),
            stopped: 0,
            reservations: Vec::new(),
            declined: ByKind::default(),
            full: false,
            masters: 0,
            listed: ByKind::default(),
        }
    }

    /// Returns its serialized form, without data derived from its attempts.
    pub(crate) fn image(&self) -> Worker {
        let used = ByKind::default();
        let attempts = Vec::new();
        let stopped = 0;
        let listed = ByKind::default();
        Worker {
            used,
            attempts,
            stopped,
            listed,
            ..self.clone()
        }
    }

    /// Checks that its attempts hold no more slots than it has, and that shared slots are those of both kinds.
    pub(crate) fn has_room(&self) -> Result<(), String> {
        if self.shared && self.slots.map != self.slots.reduce {
            let ByKind { map, reduce } = self.slots;
            return Err(format!(
                "{}: shared slots, but {map} for maps and {reduce} for reduces",
                self.id
            ));
        }
        match TaskKind::ALL
            .into_iter()
            .find(|kind| self.taken(*kind) > self.slots[*kind])
        {
            Some(kind) => {
                let taken = self.taken(kind);
                let slots = self.slots[kind];
                Err(format!(
                    "{}: {taken} {kind} slots held (limit {slots})",
                    self.id
                ))
            }
            None => Ok(()),
        }
    }

    /// Adds a live attempt.
    pub(crate) fn enter(&mut self, id: AttemptId) {
        if let Err(place) = self.attempts.binary_search(&id) {
            self.attempts.insert(place, id);
        }
    }

    /// Removes an attempt.
    pub(crate) fn forget(&mut self, id: AttemptId) {
        if let Ok(place) = self.attempts.binary_search(&id) {
            self.attempts.remove(place);
        }
    }

    /// Sets its slots. Shared slots number as many as the larger of the two counts.
    pub(crate) fn offer(&mut self, slots: Slots, shared: bool) {
        let most = slots.map.max(slots.reduce);
        self.slots = if shared {
            ByKind {
                map: most,
                reduce: most,
            }
        } else {
            ByKind {
                map: slots.map,
                reduce: slots.reduce,
            }
        };
        self.shared = shared;
    }

    /// Returns how many slots are unavailable to a kind because attempts hold them.
    pub(crate) fn taken(&self, kind: TaskKind) -> u32 {
        if self.shared {
            self.used.map + self.used.reduce
        } else {
            self.used[kind]
        }
    }

    pub(crate) fn id(&self) -> WorkerId {
        self.id
    }

    pub(crate) fn set_state(&mut self, state: WorkerState) {
        self.state = state;
    }

    /// Returns the name of its host; empty for a host of its own.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn set_place(&mut self, host: &str, rack: &str) {
        host.clone_into(&mut self.host);
        rack.clone_into(&mut self.rack);
    }

    /// Returns the bytes of memory that its attempts use, if it reported them.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    pub(crate) fn set_memory(&mut self, bytes: u64) {
        self.memory = Some(bytes);
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    pub(crate) fn health_mut(&mut self) -> &mut Health {
        &mut self.health
    }

    /// Records whether it is kept for a task that runs alone.
    pub(crate) fn set_cleared(&mut self, cleared: bool) {
        self.cleared = cleared;
    }

    /// Returns whether it drained and was allowed to leave, so that its loss is expected.
    pub(crate) fn has_left(&self) -> bool {
        self.left
    }

    /// Records that it was allowed to leave.
    pub(crate) fn leave(&mut self) {
        self.left = true;
    }

    /// Returns until when its attempts may save their work, if it will be terminated externally.
    pub(crate) fn saves_until(&self) -> Option<Time> {
        self.saves_until
    }

    /// Returns whether it reported that it will be terminated externally.
    pub(crate) fn is_ended_from_outside(&self) -> bool {
        self.saves_until.is_some()
    }

    /// Replaces the time until which its attempts may save their work.
    pub(crate) fn set_saves_until(&mut self, until: Option<Time>) -> Option<Time> {
        std::mem::replace(&mut self.saves_until, until)
    }

    /// Returns whether an attempt of either kind takes one of the same slots.
    pub(crate) fn shares_slots(&self) -> bool {
        self.shared
    }

    /// Returns how many slots attempts of a kind hold.
    pub(crate) fn used(&self, kind: TaskKind) -> u32 {
        self.used[kind]
    }

    pub(crate) fn set_used(&mut self, kind: TaskKind, used: u32) {
        self.used[kind] = used;
    }

    /// Returns whether its slots of a kind are included in the cluster's totals.
    pub(crate) fn is_listed(&self, kind: TaskKind) -> bool {
        self.listed[kind]
    }

    /// Records whether its slots of a kind are included in the cluster's totals; returns whether they were.
    pub(crate) fn set_listed(&mut self, kind: TaskKind, listed: bool) -> bool {
        std::mem::replace(&mut self.listed[kind], listed)
    }

    /// Returns how many of its attempts are suspended or being suspended.
    pub(crate) fn stopped(&self) -> u32 {
        self.stopped
    }

    /// Counts a suspended attempt of a snapshot.
    pub(crate) fn restore_stopped(&mut self) {
        self.stopped += 1;
    }

    /// Counts one suspended attempt more, and updates whether it is full.
    pub(crate) fn add_stopped(&mut self, most: SuspendedMax) {
        self.stopped += 1;
        self.find_full(most);
    }

    /// Counts one suspended attempt less, and updates whether it is full.
    pub(crate) fn remove_stopped(&mut self, most: SuspendedMax) {
        self.stopped -= 1;
        self.find_full(most);
    }

    /// Returns whether it reached its maximum of suspended attempts and still has more than half of the
    /// maximum.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Updates whether it is full, after the number of its suspended attempts or their maximum changed.
    pub(crate) fn find_full(&mut self, most: SuspendedMax) {
        self.full = most.is_full(self.full, self.stopped);
    }

    /// Returns why no more of its attempts can be suspended: it keeps the maximum, or reached it and still keeps more
    /// than half of it.
    pub(crate) fn why_full(&self, most: SuspendedMax) -> Option<String> {
        let SuspendedMax::AtMost(most) = most else {
            return None;
        };
        if !self.full {
            return None;
        }
        let id = self.id;
        if self.stopped >= most {
            return Some(format!(
                "{id} keeps {most} suspended attempts (suspended-max)"
            ));
        }
        Some(format!(
            "{id} kept {most} suspended attempts (suspended-max) and takes another one when {} are left",
            most / 2
        ))
    }

    /// Adds a reservation of a free slot.
    pub(crate) fn reserve(&mut self, reservation: Reservation) {
        self.reservations.push(reservation);
    }

    /// Replaces its reservations.
    pub(crate) fn set_reservations(&mut self, reservations: Vec<Reservation>) -> Vec<Reservation> {
        std::mem::replace(&mut self.reservations, reservations)
    }

    /// Records why the scheduler declined a slot of a kind; `None` when a slot is offered.
    pub(crate) fn set_declined(&mut self, kind: TaskKind, reason: Option<Cow<'static, str>>) {
        self.declined[kind] = reason;
    }

    /// Returns how many of its slots are held by masters.
    pub(crate) fn masters(&self) -> u32 {
        self.masters
    }

    pub(crate) fn add_master(&mut self) {
        self.masters += 1;
    }

    pub(crate) fn remove_master(&mut self) {
        self.masters -= 1;
    }

    /// Returns whether it is up, draining or lost.
    pub fn state(&self) -> WorkerState {
        self.state
    }

    /// Returns the end of its exclusion, if it is excluded.
    pub fn excluded_until(&self) -> Option<Time> {
        self.exclusion().map(|exclusion| exclusion.until)
    }

    /// Returns its exclusion, if it is excluded.
    pub fn exclusion(&self) -> Option<&Exclusion> {
        self.health.exclusion()
    }

    /// Returns the failures there since the last success whose tasks then succeeded on other workers.
    pub fn blame(&self) -> Option<&Blame> {
        self.health.blame()
    }

    /// Returns whether new attempts may start here: it is up, not draining, not excluded, not short of
    /// anything, and not kept for a task that runs alone.
    pub fn takes_attempts(&self) -> bool {
        self.is_well() && !self.cleared
    }

    /// Returns whether it could take attempts except for being kept for another task.
    pub(crate) fn is_well(&self) -> bool {
        self.state == WorkerState::Up && self.health.is_good()
    }

    /// Returns the missing resource that it reported; for people.
    pub fn lacks(&self) -> Option<&str> {
        self.health.reported_shortage()
    }

    /// Returns whether it is kept for a task that runs alone.
    pub fn is_cleared(&self) -> bool {
        self.cleared
    }

    /// Returns the name of its rack.
    pub fn rack(&self) -> &str {
        &self.rack
    }

    /// Returns how many slots of a kind it has.
    pub fn slots(&self, kind: TaskKind) -> u32 {
        self.slots[kind]
    }

    /// Returns how many slots of a kind are free, including reserved ones.
    pub fn free(&self, kind: TaskKind) -> u32 {
        self.slots[kind] - self.taken(kind)
    }

    /// Returns how many free slots of a kind are reserved.
    pub fn reserved(&self, kind: TaskKind) -> u32 {
        self.reservations
            .iter()
            .filter(|kept| self.shared || kept.kind == kind)
            .count() as u32
    }

    /// Returns its reservations, oldest first.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// Returns the reservation for this job, if any.
    pub fn reservation_of(&self, job: JobId, kind: TaskKind) -> Option<Reservation> {
        self.reservations
            .iter()
            .copied()
            .find(|kept| kept.job == job && kept.kind == kind)
    }

    /// Returns whether a job may take a free slot of a kind here.
    pub fn has_slot_for(&self, job: JobId, kind: TaskKind) -> bool {
        self.free(kind) > self.reserved(kind) || self.reservation_of(job, kind).is_some()
    }

    /// Returns its live attempts, including suspended ones.
    pub fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.attempts.iter().copied().inspect(|_| count_access())
    }

    /// Returns why the scheduler last declined a slot of this kind, if it gave a reason.
    pub fn declined(&self, kind: TaskKind) -> Option<&str> {
        self.declined[kind].as_deref()
    }
}
