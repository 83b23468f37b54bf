//! A worker as the engine knows it: its slots, who holds them, and for whom free ones are kept.
//!
//! Owns the arithmetic of one worker's slots. Does not own the order in which workers are offered.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::by_kind::ByKind;
use crate::cluster::looks::looked;
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::Slots;
use crate::states::WorkerState;
use crate::time::Time;

/// A free slot that is kept for a job until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// For whom.
    pub job: JobId,
    /// Which kind of slot.
    pub kind: TaskKind,
    /// When it is given up.
    pub until: Time,
    /// The attempt that gave it up for that job, if one did.
    pub of: Option<AttemptId>,
}

/// Why a worker gets nothing for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shortage {
    pub until: Time,
    pub because: String,
}

/// A worker. What is written of it leaves out what follows from the attempts on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) state: WorkerState,
    /// The name of its host; empty for one of its own.
    #[serde(default)]
    pub(crate) host: String,
    /// The name of its rack.
    #[serde(default = "crate::event::default_rack")]
    pub(crate) rack: String,
    /// Bytes of memory that its attempts have, if it said so.
    #[serde(default)]
    pub(crate) memory: Option<u64>,
    /// What it says it lacks.
    #[serde(default)]
    pub(crate) short: Option<String>,
    /// An attempt failed there by its disk or its limits, and for how long it gets nothing.
    #[serde(default)]
    pub(crate) shortage: Option<Shortage>,
    /// How often in a row it was shortage, without an attempt that ended well in between.
    #[serde(default)]
    pub(crate) shortages: u32,
    /// It is kept free for a task that runs alone, or runs one.
    #[serde(default)]
    pub(crate) cleared: bool,
    /// It drained and was told that it may leave: that it is gone is no news.
    pub(crate) left: bool,
    /// It ends whatever happens, and what runs there may save its work until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) saves_until: Option<Time>,
    /// Excluded because much failed there: no new attempts before this time.
    pub(crate) excluded_until: Option<Time>,
    /// Counted failures there since the last success, and the tasks they are of.
    pub(crate) failures_in_row: u32,
    pub(crate) failed_tasks: BTreeSet<TaskId>,
    pub(crate) slots: ByKind<u32>,
    /// An attempt of either kind takes one of them: what one kind holds the other one lacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) shared: bool,
    #[serde(skip)]
    pub(crate) used: ByKind<u32>,
    /// Live attempts in order, suspended ones included: a few, so that a list is quicker than a tree.
    #[serde(skip)]
    attempts: Vec<AttemptId>,
    /// How many of them are suspended, or are just being suspended.
    #[serde(skip)]
    pub(crate) stopped: u32,
    pub(crate) reservations: Vec<Reservation>,
    pub(crate) declined: ByKind<Option<Cow<'static, str>>>,
    /// It had as many stopped ones as it keeps, and still has more than half of them.
    #[serde(default)]
    pub(crate) full: bool,
    /// How many of its slots masters hold.
    #[serde(skip)]
    pub(crate) masters: u32,
    /// Its slots are counted among those of the cluster.
    #[serde(skip)]
    pub(crate) listed: ByKind<bool>,
}

impl Worker {
    pub(crate) fn new(id: WorkerId) -> Worker {
        Worker {
            id,
            state: WorkerState::Unknown,
            host: String::new(),
            rack: String::new(),
            memory: None,
            short: None,
            shortage: None,
            shortages: 0,
            cleared: false,
            left: false,
            saves_until: None,
            excluded_until: None,
            failures_in_row: 0,
            failed_tasks: BTreeSet::new(),
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

    /// It as it is written: without what follows from its attempts.
    pub(crate) fn image(&self) -> Worker {
        let (used, attempts, stopped, listed) = (ByKind::default(), Vec::new(), 0, ByKind::default());
        Worker { used, attempts, stopped, listed, ..self.clone() }
    }

    /// Whether it has the slots that its attempts hold.
    pub(crate) fn has_room(&self) -> Result<(), String> {
        match TaskKind::ALL.into_iter().find(|kind| self.taken(*kind) > self.slots[*kind]) {
            Some(kind) => {
                let (taken, slots) = (self.taken(kind), self.slots[kind]);
                Err(format!("{}: {taken} of {slots} {kind} slots held", self.id))
            }
            None => Ok(()),
        }
    }

    /// An attempt lives here from now on.
    pub(crate) fn enter(&mut self, id: AttemptId) {
        if let Err(place) = self.attempts.binary_search(&id) {
            self.attempts.insert(place, id);
        }
    }

    /// An attempt lives here no more.
    pub(crate) fn forget(&mut self, id: AttemptId) {
        if let Ok(place) = self.attempts.binary_search(&id) {
            self.attempts.remove(place);
        }
    }

    /// It has these slots; of `shared` ones it has as many as it says of the kind of which it has more.
    pub(crate) fn offer(&mut self, slots: Slots, shared: bool) {
        let most = slots.map.max(slots.reduce);
        self.slots = if shared {
            ByKind { map: most, reduce: most }
        } else {
            ByKind { map: slots.map, reduce: slots.reduce }
        };
        self.shared = shared;
    }

    /// How many slots are not there for a kind, since attempts hold them.
    pub(crate) fn taken(&self, kind: TaskKind) -> u32 {
        if self.shared { self.used.map + self.used.reduce } else { self.used[kind] }
    }

    /// Whether it is up, draining or lost.
    pub fn state(&self) -> WorkerState {
        self.state
    }

    /// Until when it is excluded because much failed there, if it is.
    pub fn excluded_until(&self) -> Option<Time> {
        self.excluded_until
    }

    /// Whether new attempts may start here: it is up, not draining, not excluded, lacks nothing, and is not
    /// kept for a task that runs alone.
    pub fn takes_attempts(&self) -> bool {
        self.is_well() && !self.cleared
    }

    /// Whether nothing but another task keeps new attempts from it.
    pub(crate) fn is_well(&self) -> bool {
        let lacks_nothing = self.short.is_none() && self.shortage.is_none();
        self.state == WorkerState::Up && self.excluded_until.is_none() && lacks_nothing
    }

    /// What it lacks, or why it gets nothing for a while; for people.
    pub fn lacks(&self) -> Option<&str> {
        let shortage = self.shortage.as_ref().map(|shortage| shortage.because.as_str());
        self.short.as_deref().or(shortage)
    }

    /// Whether it is kept for a task that runs alone.
    pub fn is_cleared(&self) -> bool {
        self.cleared
    }

    /// The name of its rack: workers that say the same are near each other.
    pub fn rack(&self) -> &str {
        &self.rack
    }

    /// How many slots of a kind it has.
    pub fn slots(&self, kind: TaskKind) -> u32 {
        self.slots[kind]
    }

    /// How many slots of a kind no attempt holds, reserved ones included.
    pub fn free(&self, kind: TaskKind) -> u32 {
        self.slots[kind] - self.taken(kind)
    }

    /// How many free slots of a kind are kept for some job.
    pub fn reserved(&self, kind: TaskKind) -> u32 {
        self.reservations.iter().filter(|kept| self.shared || kept.kind == kind).count() as u32
    }

    /// The free slots that are kept for a job, oldest first.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// The free slot kept for this job, if there is one.
    pub fn reservation_of(&self, job: JobId, kind: TaskKind) -> Option<Reservation> {
        self.reservations.iter().copied().find(|kept| kept.job == job && kept.kind == kind)
    }

    /// Whether a job may take a free slot of a kind here.
    pub fn has_slot_for(&self, job: JobId, kind: TaskKind) -> bool {
        self.free(kind) > self.reserved(kind) || self.reservation_of(job, kind).is_some()
    }

    /// Its live attempts, suspended ones included.
    pub fn attempts(&self) -> impl Iterator<Item = AttemptId> + '_ {
        self.attempts.iter().copied().inspect(|_| looked())
    }

    /// Why the scheduler last left a slot of this kind empty, if it did and said so.
    pub fn declined(&self, kind: TaskKind) -> Option<&str> {
        self.declined[kind].as_deref()
    }
}
