//! Usage and demand of every queue and user, updated incrementally: a change costs the logarithm of the jobs
//! in the queue plus the depth of the tree.

use serde::{Deserialize, Serialize};

use napreduce_engine::{
    ByKind, ClusterView, Job, JobId, QueueLimits, QueueShare, Ratio, SortedMap, SortedSet,
    TaskKind, Time,
};

use super::configuration::ApplicationOrder;
use super::queues::{Queue, Queues};
use crate::running::{Group, Limit, RunningJobs};
use crate::turns::{Standing, Turn, TurnWeight, Turns};

/// The sort key of a job in its queue: slots held and turn with `fair`, priority with `fifo`.
pub(super) type RankKey = (i64, i128, Time, JobId);

/// Usage and demand of a queue or user for one slot kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub used: u32,
    /// Unmet demand, including suspended attempts.
    pub pending: u64,
    /// Slots being freed or reserved for it.
    pub promised: u32,
    /// Jobs with unmet demand in order of service; for leaves and users only.
    pub wanting: SortedSet<RankKey>,
    /// Number of jobs with unmet demand in this queue and below.
    pub wanting_below: u32,
}

/// The users and jobs of a leaf for one slot kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Leaf {
    /// By user number; users without usage and demand are absent.
    pub users: SortedMap<u32, Sums>,
    /// Users with unmet demand.
    pub active_users: u32,
    /// Jobs with usage or demand.
    pub jobs: SortedSet<JobId>,
}

/// The usage and demand of all queues.
#[derive(Debug, Clone)]
pub(super) struct Usage {
    pub queues: Queues,
    sums: ByKind<Vec<Sums>>,
    leaves: ByKind<Vec<Leaf>>,
    /// Each queue's turn among its siblings.
    turn: ByKind<Vec<Turn>>,
    /// The virtual time of each queue's children.
    turns: ByKind<Vec<Turns>>,
    entries: SortedMap<JobId, Entry>,
    users: SortedMap<String, u32>,
    /// The limit per user if limits on running jobs are enforced.
    limits: Option<UserLimit>,
    /// Whether another policy assigns slots to the other kind of task.
    of_one_kind: bool,
    running: RunningJobs,
    /// Saved turns of jobs that have not been reported since the restore.
    remembered: SortedMap<JobId, ByKind<Turn>>,
}

/// The saved turns.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedTurns {
    queues: Vec<(String, ByKind<Turn>, ByKind<Turns>)>,
    jobs: Vec<(JobId, ByKind<Turn>)>,
}

/// Maximum running jobs per user; `None` is unlimited.
type UserLimit = Option<u32>;

/// The last recorded state of a job.
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
    rank: Option<RankKey>,
}

impl Usage {
    /// Returns the state of an empty cluster without limits on running jobs.
    pub fn new(queues: Queues) -> Usage {
        let count = queues.all().len();
        let sums = ByKind {
            map: vec![Sums::default(); count],
            reduce: vec![Sums::default(); count],
        };
        let leaves = ByKind {
            map: vec![Leaf::default(); count],
            reduce: vec![Leaf::default(); count],
        };
        let turn = ByKind {
            map: vec![Turn::default(); count],
            reduce: vec![Turn::default(); count],
        };
        let turns = ByKind {
            map: vec![Turns::default(); count],
            reduce: vec![Turns::default(); count],
        };
        let entries = SortedMap::new();
        let users = SortedMap::new();
        let running = RunningJobs::default();
        let remembered = SortedMap::new();
        let limits = None;
        let of_one_kind = false;
        Usage {
            queues,
            sums,
            leaves,
            turn,
            turns,
            entries,
            users,
            limits,
            of_one_kind,
            running,
            remembered,
        }
    }

    /// Restricts the policy to one kind: with shared slots, tasks of the other kind do not count as usage.
    pub fn of_one_kind(self) -> Usage {
        Usage {
            of_one_kind: true,
            ..self
        }
    }

    /// Whether slots held by tasks of both kinds are counted together.
    fn counts_both(&self, view: &ClusterView<'_>) -> bool {
        view.shares_slots() && !self.of_one_kind
    }

    /// As [`Usage::new`], with limits on running jobs. A waiting job has neither usage nor demand.
    pub fn with_limits(queues: Queues, per_user: UserLimit) -> Usage {
        Usage {
            limits: Some(per_user),
            ..Usage::new(queues)
        }
    }

    /// Returns the running jobs that a limit counts.
    pub fn running(&self) -> Vec<JobId> {
        self.running.running()
    }

    /// Restores the running jobs; must precede the first update.
    pub fn restore_running(&mut self, running: Vec<JobId>) {
        self.running.restore(running);
    }

    pub fn saved_turns(&self) -> SavedTurns {
        let queue = |(number, queue): (usize, &Queue)| {
            let turn = &self.turn;
            let turns = &self.turns;
            (
                queue.name.clone(),
                ByKind::from_fn(|kind| turn[kind][number]),
                ByKind::from_fn(|kind| turns[kind][number]),
            )
        };
        SavedTurns {
            queues: self.queues.all().iter().enumerate().map(queue).collect(),
            jobs: self
                .entries
                .iter()
                .map(|(job, entry)| (*job, entry.turns))
                .collect(),
        }
    }

    /// Restores the turns; must precede the first update.
    pub fn restore_turns(&mut self, saved: SavedTurns) {
        for (name, turn, turns) in saved.queues {
            let Some(queue) = self
                .queues
                .all()
                .iter()
                .position(|queue| queue.name == name)
            else {
                continue;
            };
            for kind in TaskKind::ALL {
                (self.turn[kind][queue], self.turns[kind][queue]) = (turn[kind], turns[kind]);
            }
        }
        self.remembered = saved.jobs.into_iter().collect();
    }

    /// Sort key of a queue among siblings with the same fraction of their guarantees, smallest first.
    pub fn turn(&self, kind: TaskKind, queue: usize) -> i128 {
        self.turn[kind][queue].place()
    }

    /// Returns the limit for which a job waits.
    pub fn why_not_running(&self, job: JobId) -> Option<String> {
        self.running.why_waiting(job, |queue| {
            format!("queue {}", self.queues.queue(queue).name)
        })
    }

    pub fn of(&self, kind: TaskKind, queue: usize) -> &Sums {
        &self.sums[kind][queue]
    }

    pub fn leaf(&self, kind: TaskKind, queue: usize) -> &Leaf {
        &self.leaves[kind][queue]
    }

    pub fn leaf_of(&self, job: JobId) -> Option<usize> {
        self.entries.get(&job).map(|entry| entry.leaf)
    }

    /// Returns usage and demand of the job's user in the job's leaf.
    pub fn user_of(&self, kind: TaskKind, job: JobId) -> Option<&Sums> {
        let entry = self.entries.get(&job)?;
        self.leaves[kind][entry.leaf].users.get(&entry.user)
    }

    /// Lists the queues below the root with their guarantees at the current cluster size.
    pub fn listed(&self, view: &ClusterView<'_>) -> Vec<QueueShare> {
        let named = |number: usize| self.queues.queue(number).name.clone();
        let mut jobs: SortedMap<usize, Vec<JobId>> = SortedMap::new();
        for (job, entry) in self.entries.iter() {
            jobs.get_or_default(entry.leaf).push(*job);
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
                // The root is omitted: jobs cannot name it.
                parent: queue.parent.filter(|parent| *parent > 0).map(named),
                limits: ByKind::from_fn(limits),
                jobs: jobs.remove(&number).unwrap_or_default(),
                ..QueueShare::default()
            }
        };
        self.queues
            .all()
            .iter()
            .enumerate()
            .skip(1)
            .map(&mut share)
            .collect()
    }

    /// Records the current usage and demand of a job.
    pub fn update(&mut self, job: JobId, view: &ClusterView<'_>) {
        let Some(known) = view.job(job) else {
            if let Some(entry) = self.entries.remove(&job) {
                for kind in TaskKind::ALL {
                    self.change(kind, job, entry, Amounts::default());
                    let now = view.now();
                    let mut turn = entry.turns[kind];
                    self.turns[kind][entry.leaf].take(now, &mut turn, Standing::default(), false);
                }
                self.update_turns(entry.leaf, view, false);
            }
            for next in self.running.leave(job) {
                self.update(next, view);
            }
            return;
        };
        let both = self.counts_both(view);
        let restored = !self.remembered.is_empty();
        let mut entry = match self.entries.get(&job) {
            Some(entry) => *entry,
            None => self.add(known, view),
        };
        if self.running.is_waiting(job) {
            return;
        }
        let before = entry;
        for kind in TaskKind::ALL {
            let mut amounts = Amounts::new(known, kind, both);
            let order = self.queues.queue(entry.leaf).order;
            if order == ApplicationOrder::Fair {
                let standing = standing_of(known, kind, both);
                let turns = &mut self.turns[kind][entry.leaf];
                turns.take(view.now(), &mut entry.turns[kind], standing, restored);
            }
            if amounts.pending > 0 {
                amounts.rank = Some(rank_of(known, order, amounts.used, &entry.turns[kind]));
            }
            if amounts != before.amounts[kind] {
                self.change(kind, job, before, amounts);
                entry.amounts[kind] = amounts;
            }
        }
        self.entries.insert(job, entry);
        if entry.amounts != before.amounts {
            self.update_turns(entry.leaf, view, restored);
        }
    }

    /// Updates the turns of a leaf and its ancestors after a change.
    fn update_turns(&mut self, leaf: usize, view: &ClusterView<'_>, restored: bool) {
        let mut queue = leaf;
        while let Some(parent) = self.queues.queue(queue).parent {
            for kind in TaskKind::ALL {
                let standing = self.standing(kind, queue, view);
                let turn = &mut self.turn[kind][queue];
                self.turns[kind][parent].take(view.now(), turn, standing, restored);
            }
            queue = parent;
        }
    }

    /// Returns the standing of a queue. With shared slots it is the same for both kinds.
    fn standing(&self, kind: TaskKind, queue: usize, view: &ClusterView<'_>) -> Standing {
        let wants = |kind: &TaskKind| self.of(*kind, queue).wanting_below > 0;
        let wants = if self.counts_both(view) {
            TaskKind::ALL.iter().any(wants)
        } else {
            wants(&kind)
        };
        let used = self.of(kind, queue).used;
        Standing {
            usage: used.into(),
            waits: wants && used < self.queues.maximum(queue, view.slots(kind)),
            active: wants || used > 0,
            weight: self.queues.turn_weight(queue),
        }
    }

    fn add(&mut self, job: &Job, view: &ClusterView<'_>) -> Entry {
        let next = self.users.len() as u32;
        let user = *self
            .users
            .get_or_insert_with(job.spec().user.clone(), || next);
        let leaf = self.queues.leaf_of(&job.spec().queue);
        let turns = self.remembered.remove(&job.id()).unwrap_or_default();
        let entry = Entry {
            leaf,
            user,
            amounts: ByKind::default(),
            turns,
        };
        self.entries.insert(job.id(), entry);
        let limits = if job.is_managed() {
            Vec::new()
        } else {
            self.limits_of(leaf, &job.spec().user)
        };
        for next in self.running.enter(job.id(), job.submitted(), limits) {
            self.update(next, view);
        }
        entry
    }

    /// Returns the limits on running jobs that apply to a user's job in a leaf.
    fn limits_of(&self, leaf: usize, user: &str) -> Vec<Limit> {
        let Some(per_user) = self.limits else {
            return Vec::new();
        };
        let above = std::iter::successors(Some(leaf), |&queue| self.queues.queue(queue).parent);
        let of_queue = |queue| {
            Some((
                Group::Queue(queue),
                self.queues.queue(queue).max_running_jobs?,
            ))
        };
        let of_user = per_user.map(|most| (Group::User(user.to_owned()), most));
        above.filter_map(of_queue).chain(of_user).collect()
    }

    fn change(&mut self, kind: TaskKind, job: JobId, entry: Entry, new: Amounts) {
        let old = entry.amounts[kind];
        let mut queue = Some(entry.leaf);
        while let Some(number) = queue {
            let sums = &mut self.sums[kind][number];
            sums.replace(old, new);
            sums.wanting_below += u32::from(new.rank.is_some());
            sums.wanting_below -= u32::from(old.rank.is_some());
            queue = self.queues.queue(number).parent;
        }
        self.sums[kind][entry.leaf].reorder(old, new);
        let leaf = &mut self.leaves[kind][entry.leaf];
        let user = leaf.users.get_or_default(entry.user);
        let was_active = !user.wanting.is_empty();
        user.replace(old, new);
        user.reorder(old, new);
        leaf.active_users += u32::from(!user.wanting.is_empty());
        leaf.active_users -= u32::from(was_active);
        if user.used == 0 && user.promised == 0 && user.wanting.is_empty() {
            leaf.users.remove(&entry.user);
        }
        let was_there = old != Amounts::default();
        let is_there = new != Amounts::default();
        if was_there && !is_there {
            leaf.jobs.remove(&job);
        } else if is_there && !was_there {
            leaf.jobs.insert(job);
        }
    }

    /// Returns the maximum slots per user of a leaf: an equal part of the larger of usage and guarantee among
    /// the users with demand, but at least the configured percentage. `None` is unlimited.
    pub fn user_limit(&self, kind: TaskKind, leaf: usize, slots: u32) -> Option<u32> {
        let percent = self.queues.queue(leaf).user_limit_percent;
        if percent >= Ratio::whole(100) {
            return None;
        }
        let used = u128::from(self.of(kind, leaf).used) + 1;
        let guaranteed = self.queues.weight(leaf) * u128::from(slots);
        let current = guaranteed.max(used * self.queues.unit());
        let equal = current
            .div_ceil(self.queues.unit() * u128::from(self.leaf(kind, leaf).active_users.max(1)));
        let above = percent.numerator().unsigned_abs();
        let below = percent.denominator().unsigned_abs();
        let least = (current * above).div_ceil(self.queues.unit() * below * 100);
        u32::try_from(equal.max(least)).ok()
    }

    /// Returns the unmet demand of a leaf, capped at the user limit.
    pub fn pending(&self, kind: TaskKind, leaf: usize, slots: u32) -> u64 {
        let Some(limit) = self.user_limit(kind, leaf, slots) else {
            return self.of(kind, leaf).pending;
        };
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

    fn reorder(&mut self, old: Amounts, new: Amounts) {
        if old.rank == new.rank {
            return;
        }
        if let Some(rank) = old.rank {
            self.wanting.remove(&rank);
        }
        self.wanting.extend(new.rank);
    }
}

impl Amounts {
    /// With `both`, counts slots held by tasks of either kind.
    fn new(job: &Job, kind: TaskKind, both: bool) -> Amounts {
        let held = job.holding(kind);
        let used = if both {
            TaskKind::ALL.iter().map(|kind| job.holding(*kind)).sum()
        } else {
            held
        };
        let pending = job.demand(kind) - held;
        Amounts {
            used,
            pending,
            promised: job.promised(kind),
            rank: None,
        }
    }
}

fn rank_of(job: &Job, order: ApplicationOrder, used: u32, turn: &Turn) -> RankKey {
    let (first, turn) = match order {
        ApplicationOrder::Fifo => (-i64::from(job.spec().priority), 0),
        ApplicationOrder::Fair => (i64::from(used), turn.place()),
    };
    (first, turn, job.submitted(), job.id())
}

/// Returns the standing of a job in its queue; with `both` it is the same for both kinds.
fn standing_of(job: &Job, kind: TaskKind, both: bool) -> Standing {
    let kinds = if both {
        &TaskKind::ALL[..]
    } else {
        std::slice::from_ref(&kind)
    };
    let usage: u64 = kinds.iter().map(|kind| u64::from(job.holding(*kind))).sum();
    let demand: u64 = kinds.iter().map(|kind| u64::from(job.demand(*kind))).sum();
    Standing {
        usage,
        waits: usage < demand,
        active: demand > 0,
        weight: TurnWeight::default(),
    }
}
