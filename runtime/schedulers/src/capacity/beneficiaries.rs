//! Selects the job that receives a preempted slot: the first job that will use it, in the neediest queue below
//! its ideal share. A victim without a beneficiary is not preempted.

use napreduce_engine::{
    Claims, ClusterView, Job, JobId, Offer, Ratio, SortedMap, TaskKind, WorkerId, sort_by_key,
};

use super::configuration::ApplicationOrder;
use super::monitor::{Claim, Pass, QueueTree, Victim};
use super::order::Need;
use super::usage::Usage;
use crate::serving::Delay;

/// Assigns the slots freed by one round to jobs.
pub(super) struct Beneficiaries<'a> {
    pub(super) usage: &'a Usage,
    pub(super) view: ClusterView<'a>,
    pub(super) kind: TaskKind,
    pub(super) tree: &'a QueueTree,
    ideal: Vec<Ratio>,
    within: Vec<Claim>,
    /// Slots of each leaf: held, promised, and assigned here.
    pub(super) allocated: Vec<u64>,
    /// Slots assigned here, by job and by user.
    assigned: SortedMap<JobId, u32>,
    assigned_to_users: SortedMap<(usize, &'a str), u32>,
    /// Slots taken here.
    taken: SortedMap<JobId, u32>,
    pub(super) claims: Claims<'a>,
    /// Delay scheduling of the policy, if it has any.
    delay: Option<&'a mut Delay>,
    /// Whether a job that waits for a slot near its data counts a slot elsewhere as declined.
    counts_declines: bool,
}

impl<'a> Beneficiaries<'a> {
    pub fn new(
        usage: &'a Usage,
        view: ClusterView<'a>,
        kind: &'a TaskKind,
        tree: &'a QueueTree,
        delay: Option<&'a mut Delay>,
    ) -> Beneficiaries<'a> {
        let allocated = |queue| {
            let sums = usage.of(*kind, queue);
            u64::from(sums.used) + u64::from(sums.promised)
        };
        Beneficiaries {
            usage,
            view,
            kind: *kind,
            tree,
            ideal: vec![Ratio::ZERO; tree.len()],
            within: Vec::new(),
            allocated: (0..tree.len()).map(allocated).collect(),
            assigned: SortedMap::new(),
            assigned_to_users: SortedMap::new(),
            taken: SortedMap::new(),
            claims: Claims::new(view, std::slice::from_ref(kind)),
            delay,
            counts_declines: false,
        }
    }

    /// Sets the ideal shares, and the claims of jobs within their queue, for the victims that follow.
    pub fn begin_pass(&mut self, ideal: &[Ratio], within: &[Claim], counts_declines: bool) {
        self.ideal = ideal.to_vec();
        self.within = within.to_vec();
        self.counts_declines = counts_declines;
    }

    /// Returns the job that receives the slot of a victim of job `of` on a worker, and its queue. Returns
    /// `None` if no job that is due a slot will use it.
    pub fn for_victim(
        &mut self,
        victim: &Victim,
        of: JobId,
        worker: WorkerId,
    ) -> Option<(JobId, usize)> {
        let (job, queue) = match victim.pass {
            Pass::IntraQueue => (self.claimant(victim.queue, of, worker)?, victim.queue),
            _ => self.neediest(victim.queue, worker)?,
        };
        self.assign(job, queue, worker);
        *self.taken.get_or_default(of) += 1;
        Some((job, queue))
    }

    /// Returns the job of an attempt that waits for the victim's worker, and its queue. Returns `None` if the
    /// queue holds its guarantee or the job will not use the slot.
    pub fn for_reservation(&mut self, job: JobId, worker: WorkerId) -> Option<(JobId, usize)> {
        let is_due = |&leaf: &usize| {
            Ratio::whole(self.allocated[leaf] + 1) <= self.tree.queue(leaf).guaranteed
        };
        let queue = self.usage.leaf_of(job).filter(is_due)?;
        if !self.will_use(job, worker) {
            return None;
        }
        self.assign(job, queue, worker);
        Some((job, queue))
    }

    /// Returns the job that needs the slot of a marked attempt of queue `giver` most, and its queue.
    pub fn for_marked(&mut self, giver: usize, worker: WorkerId) -> Option<(JobId, usize)> {
        let (job, queue) = self.neediest(giver, worker)?;
        self.assign(job, queue, worker);
        Some((job, queue))
    }

    pub(super) fn assign(&mut self, job: JobId, queue: usize, worker: WorkerId) {
        *self.assigned.get_or_default(job) += 1;
        if let Some(known) = self.view.job(job) {
            *self
                .assigned_to_users
                .get_or_default((queue, &known.spec().user)) += 1;
        }
        self.allocated[queue] += 1;
        self.claims.add(job, worker);
    }

    /// Whether the leaf holds and is promised less than its ideal share.
    fn is_below_ideal(&self, leaf: usize) -> bool {
        Ratio::whole(self.allocated[leaf]) < self.ideal[leaf]
    }

    fn neediest(&mut self, giver: usize, worker: WorkerId) -> Option<(JobId, usize)> {
        let needs_more = |&leaf: &usize| self.is_below_ideal(leaf) && leaf != giver;
        let mut leaves: Vec<usize> = self.tree.leaves().filter(needs_more).collect();
        sort_by_key(&mut leaves, |&leaf| {
            let state = self.tree.queue(leaf);
            (
                Need::new(
                    Ratio::whole(self.allocated[leaf]),
                    state.guaranteed,
                    state.priority,
                ),
                leaf,
            )
        });
        for leaf in leaves {
            if let Some(job) = self.first_in(leaf, worker) {
                return Some((job, leaf));
            }
        }
        None
    }

    /// Returns the first job of a leaf, in its order, that will use a slot of a worker.
    fn first_in(&mut self, leaf: usize, worker: WorkerId) -> Option<JobId> {
        let mut jobs = self
            .usage
            .of(self.kind, leaf)
            .wanting
            .iter()
            .map(|&(.., job)| job);
        jobs.find(|&job| self.may_have_more(leaf, job) && self.will_use(job, worker))
    }

    /// Whether the user of a job of a leaf is below the limit of users.
    pub(super) fn may_have_more(&self, leaf: usize, job: JobId) -> bool {
        let limit = self
            .usage
            .user_limit(self.kind, leaf, self.view.slots(self.kind));
        limit.is_none_or(|limit| self.user_holds(leaf, job) < limit)
    }

    /// Returns the slots that the user of a job holds and is promised in a leaf.
    fn user_holds(&self, leaf: usize, job: JobId) -> u32 {
        let held = self
            .usage
            .user_of(self.kind, job)
            .map_or(0, |user| user.used + user.promised);
        let user = self.view.job(job).map(|known| known.spec().user.as_str());
        let assigned = user.and_then(|user| self.assigned_to_users.get(&(leaf, user)));
        held + assigned.copied().unwrap_or_default()
    }

    /// Returns the application with the first open claim of the intra-queue pass.
    fn claimant(&mut self, queue: usize, giver: JobId, worker: WorkerId) -> Option<JobId> {
        for place in 0..self.within.len() {
            let claim = self.within[place];
            let job = JobId(u32::try_from(claim.application).unwrap_or_default());
            let is_open = claim.queue == queue && claim.amount > 0 && job != giver;
            if is_open && self.stays_with(queue, job, giver) && self.will_use(job, worker) {
                self.within[place].amount -= 1;
                return Some(job);
            }
        }
        None
    }

    /// Whether a slot that one job of a leaf gives to another does not return by the order of the leaf: the
    /// pass would take it again and again.
    fn stays_with(&self, leaf: usize, taker: JobId, giver: JobId) -> bool {
        let (Some(taking), Some(giving)) = (self.view.job(taker), self.view.job(giver)) else {
            return false;
        };
        let taken = self.taken.get(&giver).copied().unwrap_or_default();
        let limit = self
            .usage
            .user_limit(self.kind, leaf, self.view.slots(self.kind));
        if let Some(limit) = limit
            && taking.spec().user != giving.spec().user
            && self
                .usage
                .user_of(self.kind, giver)
                .is_some_and(|user| user.used > limit + taken)
        {
            return true;
        }
        let holds = |job: &Job| job.holding(self.kind);
        match self.usage.queues.queue(leaf).order {
            ApplicationOrder::Fifo => taking.default_order() < giving.default_order(),
            ApplicationOrder::Fair => {
                let assigned = self.assigned.get(&taker).copied().unwrap_or_default();
                holds(taking) + assigned + 1 < holds(giving).saturating_sub(taken)
            }
        }
    }

    /// Whether a job will use another slot that is freed for it on a worker.
    fn will_use(&mut self, job: JobId, worker: WorkerId) -> bool {
        let Some(known) = self.view.job(job) else {
            return false;
        };
        if !self.claims.wants_on(job, worker) {
            return false;
        }
        let Some(delay) = &mut self.delay else {
            return true;
        };
        let offer = Offer {
            worker,
            kind: self.kind,
            reserved_for: Some(job),
        };
        if self.counts_declines {
            delay.takes(self.view.now(), known, offer)
        } else {
            delay.would_take(known, offer)
        }
    }
}
