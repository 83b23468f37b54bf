//! For whom a slot is taken: the neediest queue that should have more, and in it the first job that can use
//! it.
//!
//! Owns that nothing is taken for nobody. Does not own who gives.

use std::collections::BTreeMap;

use napreduce_engine::{ClusterView, Job, JobId, Ratio, TaskKind};

use super::books::Books;
use super::monitor::{Claim, Pass, QueueTree, Victim};
use super::order::Need;

/// Hands the slots of one round to jobs.
pub(super) struct Beneficiaries<'a> {
    books: &'a Books,
    view: ClusterView<'a>,
    kind: TaskKind,
    tree: &'a QueueTree,
    ideal: &'a [Ratio],
    claims: Vec<Claim>,
    /// What each leaf has, is promised, and was given here.
    has: Vec<u64>,
    given: BTreeMap<JobId, u32>,
}

impl<'a> Beneficiaries<'a> {
    /// Nobody was given anything yet.
    pub fn of(
        books: &'a Books,
        view: ClusterView<'a>,
        kind: TaskKind,
        tree: &'a QueueTree,
        ideal: &'a [Ratio],
        claims: Vec<Claim>,
    ) -> Beneficiaries<'a> {
        let has = |queue| {
            let sums = books.of(kind, queue);
            u64::from(sums.used) + u64::from(sums.promised)
        };
        Beneficiaries {
            books,
            view,
            kind,
            tree,
            ideal,
            claims,
            has: (0..tree.len()).map(has).collect(),
            given: BTreeMap::new(),
        }
    }

    /// The job that gets the slot of a victim of this job, with its queue; nobody, when all that is due is
    /// promised already.
    pub fn next(&mut self, victim: &Victim, of: JobId) -> Option<(JobId, usize)> {
        let (job, queue) = match victim.pass {
            Pass::IntraQueue => (self.claimant(victim.queue, of)?, victim.queue),
            _ => self.neediest(victim.queue)?,
        };
        self.give(job, queue);
        Some((job, queue))
    }

    /// The job of an attempt that waits for the worker of a victim, with its queue; nobody, when the
    /// queue has its guarantee, or all that the job can use is promised already.
    pub fn waiting(&mut self, job: JobId) -> Option<(JobId, usize)> {
        let is_due = |&leaf: &usize| Ratio::whole(self.has[leaf]) < self.tree.queue(leaf).guaranteed;
        let queue = self.books.leaf_of(job).filter(is_due)?;
        self.view.job(job).filter(|job| self.can_use(job))?;
        self.give(job, queue);
        Some((job, queue))
    }

    /// The job that needs the slot of a marked attempt of this queue most, with its queue.
    pub fn needs(&mut self, giver: usize) -> Option<(JobId, usize)> {
        let (job, queue) = self.neediest(giver)?;
        self.give(job, queue);
        Some((job, queue))
    }

    fn give(&mut self, job: JobId, queue: usize) {
        *self.given.entry(job).or_default() += 1;
        self.has[queue] += 1;
    }

    /// Whether a leaf should have more than it has and is promised.
    fn lacks(&self, leaf: usize) -> bool {
        Ratio::whole(self.has[leaf]) < self.ideal[leaf]
    }

    fn neediest(&self, giver: usize) -> Option<(JobId, usize)> {
        let lacks = |&leaf: &usize| self.lacks(leaf) && leaf != giver;
        let mut leaves: Vec<usize> = self.tree.leaves().filter(lacks).collect();
        leaves.sort_by_key(|&leaf| {
            let state = self.tree.queue(leaf);
            (Need::of(Ratio::whole(self.has[leaf]), state.guaranteed, state.priority), leaf)
        });
        leaves.into_iter().find_map(|leaf| Some((self.first_in(leaf)?, leaf)))
    }

    /// The first job of a leaf that could use a slot more than it is promised.
    fn first_in(&self, leaf: usize) -> Option<JobId> {
        let limit = self.books.user_limit(self.kind, leaf, self.view.slots(self.kind));
        let is_within = |job: &Job| {
            let user = self.books.user_of(self.kind, job.id());
            let used = user.map_or(0, |user| user.used + user.promised);
            limit.is_none_or(|limit| used < limit)
        };
        let wanting = self.books.of(self.kind, leaf).wanting.iter();
        let jobs = wanting.filter_map(|&(.., job)| self.view.job(job));
        jobs.filter(|job| is_within(job)).find(|job| self.can_use(job)).map(Job::id)
    }

    /// The application of a queue for which the pass inside of queues took most urgently.
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
        let given = self.given.get(&job.id()).copied().unwrap_or_default();
        job.demand(self.kind) - job.holding(self.kind) > job.promised(self.kind) + given
    }
}

fn job_of(claim: &Claim) -> JobId {
    JobId(u32::try_from(claim.application).unwrap_or_default())
}
