//! Selects the job that receives a preempted slot: the first job that can use it in the neediest queue below
//! its ideal share. A victim without a beneficiary is not preempted.

use std::collections::BTreeMap;

use napreduce_engine::{ClusterView, Job, JobId, Ratio, TaskKind};

use super::monitor::{Claim, Pass, QueueTree, Victim};
use super::order::Need;
use super::usage::Usage;

/// Assigns the slots freed by one round to jobs.
pub(super) struct Beneficiaries<'a> {
    usage: &'a Usage,
    view: ClusterView<'a>,
    kind: TaskKind,
    tree: &'a QueueTree,
    ideal: &'a [Ratio],
    claims: Vec<Claim>,
    /// Slots of each leaf: held, promised, and assigned here.
    allocated: Vec<u64>,
    assigned: BTreeMap<JobId, u32>,
}

impl<'a> Beneficiaries<'a> {
    pub fn new(
        usage: &'a Usage,
        view: ClusterView<'a>,
        kind: TaskKind,
        tree: &'a QueueTree,
        ideal: &'a [Ratio],
        claims: Vec<Claim>,
    ) -> Beneficiaries<'a> {
        let allocated = |queue| {
            let sums = usage.of(kind, queue);
            u64::from(sums.used) + u64::from(sums.promised)
        };
        Beneficiaries {
            usage,
            view,
            kind,
            tree,
            ideal,
            claims,
            allocated: (0..tree.len()).map(allocated).collect(),
            assigned: BTreeMap::new(),
        }
    }

    /// Returns the job that receives the slot of a victim, and its queue. Returns `None` if all demand is
    /// covered by promised slots.
    pub fn for_victim(&mut self, victim: &Victim, of: JobId) -> Option<(JobId, usize)> {
        let (job, queue) = match victim.pass {
            Pass::IntraQueue => (self.claimant(victim.queue, of)?, victim.queue),
            _ => self.neediest(victim.queue)?,
        };
        self.assign(job, queue);
        Some((job, queue))
    }

    /// Returns the job of an attempt that waits for the victim's worker, and its queue. Returns `None` if the
    /// queue holds its guarantee or promised slots cover the job's demand.
    pub fn for_reservation(&mut self, job: JobId) -> Option<(JobId, usize)> {
        let is_due = |&leaf: &usize| Ratio::whole(self.allocated[leaf]) < self.tree.queue(leaf).guaranteed;
        let queue = self.usage.leaf_of(job).filter(is_due)?;
        self.view.job(job).filter(|job| self.can_use(job))?;
        self.assign(job, queue);
        Some((job, queue))
    }

    /// Returns the job that needs the slot of a marked attempt of queue `giver` most, and its queue.
    pub fn for_marked(&mut self, giver: usize) -> Option<(JobId, usize)> {
        let (job, queue) = self.neediest(giver)?;
        self.assign(job, queue);
        Some((job, queue))
    }

    fn assign(&mut self, job: JobId, queue: usize) {
        *self.assigned.entry(job).or_default() += 1;
        self.allocated[queue] += 1;
    }

    /// Whether the leaf holds and is promised less than its ideal share.
    fn is_below_ideal(&self, leaf: usize) -> bool {
        Ratio::whole(self.allocated[leaf]) < self.ideal[leaf]
    }

    fn neediest(&self, giver: usize) -> Option<(JobId, usize)> {
        let needs_more = |&leaf: &usize| self.is_below_ideal(leaf) && leaf != giver;
        let mut leaves: Vec<usize> = self.tree.leaves().filter(needs_more).collect();
        leaves.sort_by_key(|&leaf| {
            let state = self.tree.queue(leaf);
            (Need::of(Ratio::whole(self.allocated[leaf]), state.guaranteed, state.priority), leaf)
        });
        leaves.into_iter().find_map(|leaf| Some((self.first_in(leaf)?, leaf)))
    }

    /// Returns the first job of a leaf whose demand exceeds what it is promised.
    fn first_in(&self, leaf: usize) -> Option<JobId> {
        let limit = self.usage.user_limit(self.kind, leaf, self.view.slots(self.kind));
        let is_within = |job: &Job| {
            let user = self.usage.user_of(self.kind, job.id());
            let used = user.map_or(0, |user| user.used + user.promised);
            limit.is_none_or(|limit| used < limit)
        };
        let wanting = self.usage.of(self.kind, leaf).wanting.iter();
        let jobs = wanting.filter_map(|&(.., job)| self.view.job(job));
        jobs.filter(|job| is_within(job)).find(|job| self.can_use(job)).map(Job::id)
    }

    /// Returns the application with the first open claim of the intra-queue pass.
    fn claimant(&mut self, queue: usize, giver: JobId) -> Option<JobId> {
        let mut claims = std::mem::take(&mut self.claims);
        let can_use = |claim: &&mut Claim| {
            claim.queue == queue
                && claim.amount > 0
                && job_of(claim) != giver
                && self.view.job(job_of(claim)).is_some_and(|job| self.can_use(job))
        };
        let found = claims.iter_mut().find(can_use).map(|claim| {
            claim.amount -= 1;
            job_of(claim)
        });
        self.claims = claims;
        found
    }

    fn can_use(&self, job: &Job) -> bool {
        let assigned = self.assigned.get(&job.id()).copied().unwrap_or_default();
        job.demand(self.kind) - job.holding(self.kind) > job.promised(self.kind) + assigned
    }
}

fn job_of(claim: &Claim) -> JobId {
    JobId(u32::try_from(claim.application).unwrap_or_default())
}
