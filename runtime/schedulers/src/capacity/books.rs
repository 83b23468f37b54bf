//! What each queue and each of its users has and wants, kept in step with the jobs one change at a time.
//!
//! Owns the sums and the orders that make a decision cheap: a change costs the logarithm of the jobs of a
//! queue and the depth of the tree. Does not own any decision.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{ByKind, ClusterView, Job, JobId, QueueLimits, QueueShare, Ratio, TaskKind, Time};

use super::configuration::ApplicationOrder;
use super::queues::{Queue, Queues};
use crate::running::{Group, Limit, RunningJobs};
use crate::turns::{Standing, Turn, TurnWeight, Turns};

/// The place of a job in the order of its queue: with `fair` its slots and its turn, with `fifo` its priority
/// first.
pub(super) type RankKey = (i64, i128, Time, JobId);

/// What a queue, or a user in one, has and wants of one kind of slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub used: u32,
    /// What it could use more, suspended attempts included.
    pub pending: u64,
    /// Slots that are being freed or kept for it.
    pub promised: u32,
    /// The jobs that want more, the most deserving first. Of leaves and users only.
    pub wanting: BTreeSet<RankKey>,
    /// How many jobs want more, in all queues below.
    pub wanting_below: u32,
}

/// A leaf for one kind of slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    /// By the number of the user; those who have and want nothing are not listed.
    pub users: BTreeMap<u32, Sums>,
    /// How many of them want more.
    pub active_users: u32,
    /// The jobs that have or want something.
    pub jobs: BTreeSet<JobId>,
}

/// The books of all queues.
#[derive(Debug, Clone)]
pub(super) struct Books {
    pub queues: Queues,
    sums: ByKind<Vec<Sums>>,
    leaves: ByKind<Vec<Leaf>>,
    /// Each queue's turn among its siblings, and those of the queues or jobs in it.
    turn: ByKind<Vec<Turn>>,
    turns: ByKind<Vec<Turns>>,
    entries: BTreeMap<JobId, Entry>,
    users: BTreeMap<String, u32>,
    /// Whether limits on running jobs are kept to, and how many jobs of one user may run.
    limits: Option<UserLimit>,
    /// Another policy gives slots to tasks of the other kind.
    of_one_kind: bool,
    running: RunningJobs,
    /// The turns of jobs that were saved, until these are named again.
    remembered: BTreeMap<JobId, ByKind<Turn>>,
}

/// What turns go by, as it is saved.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedTurns {
    queues: Vec<(String, ByKind<Turn>, ByKind<Turns>)>,
    jobs: Vec<(JobId, ByKind<Turn>)>,
}

/// How many jobs of one user may run at once, if not as many as like.
type UserLimit = Option<u32>;

/// What was last entered for a job.
#[derive(Debug, Clone, Copy)]
struct Entry {
    leaf: usize,
    user: u32,
    amounts: ByKind<Amounts>,
    turns: ByKind<Turn>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amounts {
    used: u32,
    pending: u32,
    promised: u32,
    place: Option<RankKey>,
}

impl Books {
    /// The books of an empty cluster, in which every job runs.
    pub fn new(queues: Queues) -> Books {
        let count = queues.all().len();
        let sums = ByKind { map: vec![Sums::default(); count], reduce: vec![Sums::default(); count] };
        let leaves = ByKind { map: vec![Leaf::default(); count], reduce: vec![Leaf::default(); count] };
        let turn = ByKind { map: vec![Turn::default(); count], reduce: vec![Turn::default(); count] };
        let turns = ByKind { map: vec![Turns::default(); count], reduce: vec![Turns::default(); count] };
        let (entries, users, running) = (BTreeMap::new(), BTreeMap::new(), RunningJobs::default());
        let (remembered, limits, of_one_kind) = (BTreeMap::new(), None, false);
        Books { queues, sums, leaves, turn, turns, entries, users, limits, of_one_kind, running, remembered }
    }

    /// The same, where another policy gives slots to tasks of the other kind: even where slots are of one kind,
    /// those do not count against what a queue may have.
    pub fn of_one_kind(self) -> Books {
        Books { of_one_kind: true, ..self }
    }

    /// Whether slots that tasks of either kind hold are counted together.
    fn counts_both(&self, view: &ClusterView<'_>) -> bool {
        view.shares_slots() && !self.of_one_kind
    }

    /// The same, with so many jobs of a queue and of a user running at once: one that waits for that has and
    /// wants nothing.
    pub fn with_limits(queues: Queues, of_a_user: UserLimit) -> Books {
        Books { limits: Some(of_a_user), ..Books::new(queues) }
    }

    /// The jobs that run while others may have to wait for them.
    pub fn running(&self) -> Vec<JobId> {
        self.running.running()
    }

    /// Goes on from what these were, before any job is entered.
    pub fn recall_running(&mut self, running: Vec<JobId>) {
        self.running.recall(running);
    }

    pub fn saved_turns(&self) -> SavedTurns {
        let queue = |(number, queue): (usize, &Queue)| {
            let (turn, turns) = (&self.turn, &self.turns);
            (
                queue.name.clone(),
                ByKind::of(|kind| turn[kind][number]),
                ByKind::of(|kind| turns[kind][number]),
            )
        };
        SavedTurns {
            queues: self.queues.all().iter().enumerate().map(queue).collect(),
            jobs: self.entries.iter().map(|(job, entry)| (*job, entry.turns)).collect(),
        }
    }

    /// Goes on from what these were, before any job is entered.
    pub fn recall_turns(&mut self, saved: SavedTurns) {
        for (name, turn, turns) in saved.queues {
            let Some(queue) = self.queues.all().iter().position(|queue| queue.name == name) else { continue };
            for kind in TaskKind::ALL {
                (self.turn[kind][queue], self.turns[kind][queue]) = (turn[kind], turns[kind]);
            }
        }
        self.remembered = saved.jobs.into_iter().collect();
    }

    /// Orders queues of one parent that have equally much of their guarantees, smaller first.
    pub fn turn(&self, kind: TaskKind, queue: usize) -> i128 {
        self.turn[kind][queue].place()
    }

    /// Why a job has no place among those that run.
    pub fn why_not_running(&self, job: JobId) -> Option<String> {
        self.running.why_waiting(job, |queue| format!("queue {}", self.queues.queue(queue).name))
    }

    /// What a queue has and wants.
    pub fn of(&self, kind: TaskKind, queue: usize) -> &Sums {
        &self.sums[kind][queue]
    }

    /// The users and jobs of a leaf.
    pub fn leaf(&self, kind: TaskKind, queue: usize) -> &Leaf {
        &self.leaves[kind][queue]
    }

    pub fn leaf_of(&self, job: JobId) -> Option<usize> {
        self.entries.get(&job).map(|entry| entry.leaf)
    }

    /// What its user has and wants in the leaf of a job.
    pub fn user_of(&self, kind: TaskKind, job: JobId) -> Option<&Sums> {
        let entry = self.entries.get(&job)?;
        self.leaves[kind][entry.leaf].users.get(&entry.user)
    }

    /// The queues below the root, with what they are guaranteed of the slots that there are.
    pub fn listed(&self, view: &ClusterView<'_>) -> Vec<QueueShare> {
        let named = |number: usize| self.queues.queue(number).name.clone();
        let mut jobs: BTreeMap<usize, Vec<JobId>> = BTreeMap::new();
        for (job, entry) in &self.entries {
            jobs.entry(entry.leaf).or_default().push(*job);
        }
        let mut share = |(number, queue): (usize, &Queue)| {
            let limits = |kind| {
                let slots = view.slots(kind);
                QueueLimits {
                    guaranteed: Some(self.queues.guaranteed(number, slots)),
                    maximum: Some(u64::from(self.queues.maximum(number, slots))),
                }
            };
            QueueShare {
                name: queue.name.clone(),
                // What is below the root is below nothing that a job can name.
                parent: queue.parent.filter(|parent| *parent > 0).map(named),
                limits: ByKind::of(limits),
                jobs: jobs.remove(&number).unwrap_or_default(),
                ..QueueShare::default()
            }
        };
        self.queues.all().iter().enumerate().skip(1).map(&mut share).collect()
    }

    /// Enters what a job has and wants now.
    pub fn update(&mut self, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            if let Some(entry) = self.entries.remove(&job) {
                for kind in TaskKind::ALL {
                    self.change(kind, job, entry, Amounts::default());
                    let (now, mut turn) = (view.now(), entry.turns[kind]);
                    self.turns[kind][entry.leaf].take(now, &mut turn, Standing::default(), false);
                }
                self.pass_turns(entry.leaf, view, false);
            }
            for next in self.running.leave(job) {
                self.update(next, view);
            }
            return;
        };
        let (both, recalled) = (self.counts_both(view), !self.remembered.is_empty());
        let mut entry = match self.entries.get(&job) {
            Some(entry) => *entry,
            None => self.enter(known, view),
        };
        if self.running.is_waiting(job) {
            return;
        }
        let before = entry;
        for kind in TaskKind::ALL {
            let mut amounts = Amounts::of(known, kind, both);
            let order = self.queues.queue(entry.leaf).order;
            if order == ApplicationOrder::Fair {
                let standing = standing_of(known, kind, both);
                let turns = &mut self.turns[kind][entry.leaf];
                turns.take(view.now(), &mut entry.turns[kind], standing, recalled);
            }
            if amounts.pending > 0 {
                amounts.place = Some(place_of(known, order, amounts.used, &entry.turns[kind]));
            }
            if amounts != before.amounts[kind] {
                self.change(kind, job, before, amounts);
                entry.amounts[kind] = amounts;
            }
        }
        self.entries.insert(job, entry);
        if entry.amounts != before.amounts {
            self.pass_turns(entry.leaf, view, recalled);
        }
    }

    /// What a queue has or wants is different, and with it what those have and want that it is a part of.
    fn pass_turns(&mut self, leaf: usize, view: &ClusterView<'_>, recalled: bool) {
        let mut queue = leaf;
        while let Some(parent) = self.queues.queue(queue).parent {
            for kind in TaskKind::ALL {
                let (standing, turn) = (self.standing(kind, queue, view), &mut self.turn[kind][queue]);
                self.turns[kind][parent].take(view.now(), turn, standing, recalled);
            }
            queue = parent;
        }
    }

    /// What the turn of a queue goes by. Where slots are counted together, turns are the same for both kinds.
    fn standing(&self, kind: TaskKind, queue: usize, view: &ClusterView<'_>) -> Standing {
        let wants = |kind: &TaskKind| self.of(*kind, queue).wanting_below > 0;
        let wants = if self.counts_both(view) { TaskKind::ALL.iter().any(wants) } else { wants(&kind) };
        let used = self.of(kind, queue).used;
        Standing {
            usage: used.into(),
            waits: wants && used < self.queues.maximum(queue, view.slots(kind)),
            active: wants || used > 0,
            weight: self.queues.turn_weight(queue),
        }
    }

    /// A job that is new.
    fn enter(&mut self, job: &Job, view: &ClusterView<'_>) -> Entry {
        let next = self.users.len() as u32;
        let user = *self.users.entry(job.spec().user.clone()).or_insert(next);
        let leaf = self.queues.leaf_of(&job.spec().queue);
        let turns = self.remembered.remove(&job.id()).unwrap_or_default();
        let entry = Entry { leaf, user, amounts: ByKind::default(), turns };
        self.entries.insert(job.id(), entry);
        let limits = if job.is_managed() { Vec::new() } else { self.limits_of(leaf, &job.spec().user) };
        for next in self.running.enter(job.id(), job.submitted(), limits) {
            self.update(next, view);
        }
        entry
    }

    /// The limits on running jobs that count a job of this user in this leaf.
    fn limits_of(&self, leaf: usize, user: &str) -> Vec<Limit> {
        let Some(of_a_user) = self.limits else { return Vec::new() };
        let above = std::iter::successors(Some(leaf), |&queue| self.queues.queue(queue).parent);
        let of_queue = |queue| Some((Group::Queue(queue), self.queues.queue(queue).max_running_jobs?));
        let of_user = of_a_user.map(|most| (Group::User(user.to_owned()), most));
        above.filter_map(of_queue).chain(of_user).collect()
    }

    fn change(&mut self, kind: TaskKind, job: JobId, entry: Entry, new: Amounts) {
        let old = entry.amounts[kind];
        let mut queue = Some(entry.leaf);
        while let Some(number) = queue {
            let sums = &mut self.sums[kind][number];
            sums.replace(old, new);
            sums.wanting_below += u32::from(new.place.is_some());
            sums.wanting_below -= u32::from(old.place.is_some());
            queue = self.queues.queue(number).parent;
        }
        self.sums[kind][entry.leaf].list(old, new);
        let leaf = &mut self.leaves[kind][entry.leaf];
        let user = leaf.users.entry(entry.user).or_default();
        let was_active = !user.wanting.is_empty();
        user.replace(old, new);
        user.list(old, new);
        leaf.active_users += u32::from(!user.wanting.is_empty());
        leaf.active_users -= u32::from(was_active);
        if user.used == 0 && user.promised == 0 && user.wanting.is_empty() {
            leaf.users.remove(&entry.user);
        }
        let (was_there, is_there) = (old != Amounts::default(), new != Amounts::default());
        match (was_there, is_there) {
            (true, false) => drop(leaf.jobs.remove(&job)),
            (false, true) => drop(leaf.jobs.insert(job)),
            _ => {}
        }
    }

    /// How many slots one user of a leaf may hold while `slots` are there: an equal part of what the queue
    /// has or is guaranteed, whichever is more, among the users who want more, but not less than what the
    /// configuration leaves to each. Without a limit none.
    pub fn user_limit(&self, kind: TaskKind, leaf: usize, slots: u32) -> Option<u32> {
        let percent = self.queues.queue(leaf).user_limit_percent;
        if percent >= Ratio::whole(100) {
            return None;
        }
        let used = u128::from(self.of(kind, leaf).used) + 1;
        let guaranteed = self.queues.weight(leaf) * u128::from(slots);
        let current = guaranteed.max(used * self.queues.unit());
        let equal =
            current.div_ceil(self.queues.unit() * u128::from(self.leaf(kind, leaf).active_users.max(1)));
        let (above, below) = (percent.numerator().unsigned_abs(), percent.denominator().unsigned_abs());
        let least = (current * above).div_ceil(self.queues.unit() * below * 100);
        u32::try_from(equal.max(least)).ok()
    }

    /// What a leaf wants more, no user beyond the limit.
    pub fn pending(&self, kind: TaskKind, leaf: usize, slots: u32) -> u64 {
        let Some(limit) = self.user_limit(kind, leaf, slots) else { return self.of(kind, leaf).pending };
        let room = |user: &Sums| user.pending.min(u64::from(limit.saturating_sub(user.used)));
        self.leaf(kind, leaf).users.values().map(room).sum()
    }
}

impl Sums {
    fn replace(&mut self, old: Amounts, new: Amounts) {
        self.used = self.used + new.used - old.used;
        self.pending = self.pending + u64::from(new.pending) - u64::from(old.pending);
        self.promised = self.promised + new.promised - old.promised;
    }

    fn list(&mut self, old: Amounts, new: Amounts) {
        if old.place == new.place {
            return;
        }
        if let Some(place) = old.place {
            self.wanting.remove(&place);
        }
        self.wanting.extend(new.place);
    }
}

impl Amounts {
    /// With `both`, slots that its tasks of either kind hold count.
    fn of(job: &Job, kind: TaskKind, both: bool) -> Amounts {
        let held = job.holding(kind);
        let used = if both { TaskKind::ALL.iter().map(|kind| job.holding(*kind)).sum() } else { held };
        let pending = job.demand(kind) - held;
        Amounts { used, pending, promised: job.promised(kind), place: None }
    }
}

fn place_of(job: &Job, order: ApplicationOrder, used: u32, turn: &Turn) -> RankKey {
    let (first, turn) = match order {
        ApplicationOrder::Fifo => (-i64::from(job.spec().priority), 0),
        ApplicationOrder::Fair => (i64::from(used), turn.place()),
    };
    (first, turn, job.submitted(), job.id())
}

/// What the turn of a job in its queue goes by; with `both` it is the same for both kinds.
fn standing_of(job: &Job, kind: TaskKind, both: bool) -> Standing {
    let kinds = if both { &TaskKind::ALL[..] } else { std::slice::from_ref(&kind) };
    let usage: u64 = kinds.iter().map(|kind| u64::from(job.holding(*kind))).sum();
    let demand: u64 = kinds.iter().map(|kind| u64::from(job.demand(*kind))).sum();
    Standing { usage, waits: usage < demand, active: demand > 0, weight: TurnWeight::default() }
}
