//! An update: what the view shows as plain pictures, and what follows from them as requests.
//!
//! Owns the drawing and the reading back. Does not own the rules (`update`, `starvation`, `victims`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::{Attempt, ClusterView, Job};
use crate::ids::{AttemptId, JobId, TaskKind, WorkerId};
use crate::scheduler::fair::configuration::PoolOrder;
use crate::scheduler::fair::policy::Fair;
use crate::scheduler::fair::starvation::JobNeed;
use crate::scheduler::fair::update::{
    JobPicture, PoolPicture, Starved, is_utilised, recheck_after, set_shares, starved,
};
use crate::scheduler::fair::victims::{Container, Holder, Host, Search};
use crate::scheduler::{Actions, Preempt};
use crate::states::{AttemptState, JobState};
use crate::time::Time;

/// What runs where, in the shape in which victims are looked for.
struct Places {
    workers: Vec<WorkerId>,
    /// The attempts of each worker, in the order of its containers.
    attempts: Vec<Vec<AttemptId>>,
    search: Search,
}

impl Fair {
    /// Looks at everybody's share, and takes slots for those who starve.
    pub(super) fn preempt(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let used = |kind| (u64::from(view.used(kind)), u64::from(view.slots(kind)));
        let utilised = is_utilised(self.configuration.utilization_gate, &TaskKind::ALL.map(used));
        for &kind in actions.kinds() {
            let mut pools = self.picture(kind);
            set_shares(view.slots(kind).into(), self.configuration.cap_by_demand, &mut pools);
            let found = starved(now, &mut pools);
            self.remember(kind, &pools);
            if utilised && !found.is_empty() {
                self.make_room(now, kind, view, &pools, &found, actions);
            }
        }
    }

    /// The tree, with the jobs that hold or want something of a kind.
    fn picture(&self, kind: TaskKind) -> Vec<PoolPicture> {
        let pools = self.tree.pools.iter().map(|pool| PoolPicture {
            parent: pool.parent,
            claim: pool.claim(kind),
            in_turn: pool.order == PoolOrder::Fifo,
            yields: pool.yields,
            patience: pool.patience,
            last_at_min: pool.last_at_min[kind].max(self.waiting_since),
            jobs: pool.jobs.iter().filter_map(|job| self.job_picture(*job, kind)).collect(),
            usage: 0,
            demand: 0,
            share: 0,
        });
        pools.collect()
    }

    fn job_picture(&self, job: JobId, kind: TaskKind) -> Option<JobPicture> {
        let entry = self.tree.jobs.get(&job)?;
        let (held, look) = (entry.kinds[kind].wish.held, entry.looks[kind]);
        if held.demand == 0 {
            return None;
        }
        let need = JobNeed {
            usage: held.usage,
            share: 0,
            demand: held.demand,
            last_at_share: look.last_at_share.max(self.waiting_since),
            next_check: look.next_check,
        };
        let (submitted, priority) = (entry.submitted, entry.priority);
        Some(JobPicture { job, submitted, priority, weight: self.tree.weights.of(entry, kind), need })
    }

    fn remember(&mut self, kind: TaskKind, pools: &[PoolPicture]) {
        for (pool, picture) in self.tree.pools.iter_mut().zip(pools) {
            pool.last_at_min[kind] = picture.last_at_min;
        }
        for job in pools.iter().flat_map(|pool| &pool.jobs) {
            if let Some(entry) = self.tree.jobs.get_mut(&job.job) {
                entry.looks[kind].last_at_share = job.need.last_at_share;
            }
        }
    }

    /// Asks for as many slots as the starved jobs lack and victims can be found for.
    fn make_room(
        &mut self,
        now: Time,
        kind: TaskKind,
        view: &ClusterView<'_>,
        pools: &[PoolPicture],
        found: &[Starved],
        actions: &mut Actions,
    ) {
        let configuration = &self.configuration;
        let delay =
            recheck_after(configuration.kill_wait, configuration.heartbeat, configuration.recheck_delay);
        let (primitive, grace) = (configuration.primitive, Some(configuration.kill_wait));
        let mut places = Places::draw(kind, view, pools);
        for one in found {
            let picture = &pools[one.pool].jobs[one.place];
            if let Some(entry) = self.tree.jobs.get_mut(&picture.job) {
                entry.looks[kind].next_check = now + delay;
            }
            let claimant = view.job(picture.job).filter(|job| job.state() == JobState::Active);
            let Some(claimant) = claimant else { continue };
            let lacks = one.amount.saturating_sub(claimant.promised(kind).into());
            let JobNeed { usage, share, demand, .. } = picture.need;
            for _ in 0..lacks {
                let Some(victims) = places.make_room(claimant, kind) else { break };
                for attempt in victims {
                    let (job, beneficiary) = (picture.job, Some(picture.job));
                    let reason = format!(
                        "{job} starves: it holds {usage} of {demand} {kind} slots, its share is {share}"
                    );
                    actions.preempt(Preempt { attempt, primitive, grace, reason, beneficiary });
                }
            }
        }
    }
}

impl Places {
    fn draw(kind: TaskKind, view: &ClusterView<'_>, pools: &[PoolPicture]) -> Places {
        let mut holder_of: BTreeMap<JobId, usize> = BTreeMap::new();
        let mut holders = Vec::new();
        for (pool, job) in pools.iter().flat_map(|pool| pool.jobs.iter().map(move |job| (pool, job))) {
            let marked = view.job(job.job).map_or(0, |job| job.requested(kind));
            let usage = job.need.usage.saturating_sub(marked.into());
            holder_of.insert(job.job, holders.len());
            holders.push(Holder { usage, share: job.need.share, yields: pool.yields });
        }
        let (mut workers, mut attempts, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for (id, worker) in view.workers().filter(|(_, worker)| worker.takes_attempts()) {
            let live = worker.attempts().filter(|attempt| attempt.task.kind == kind);
            let mut here: Vec<&Attempt> = live
                .filter_map(|attempt| view.attempt(attempt))
                .filter(|attempt| may_go(attempt) && view.request(attempt.id()).is_none())
                .filter(|attempt| holder_of.contains_key(&attempt.id().task.job))
                .collect();
            // The youngest first: they lose least.
            here.sort_by_key(|attempt| Reverse((attempt.launched(), attempt.id())));
            let container = |attempt: &&Attempt| Container {
                holder: holder_of[&attempt.id().task.job],
                size: 1,
                master: false,
            };
            let free = worker.free(kind).saturating_sub(worker.reserved(kind)).into();
            hosts.push(Host { free, containers: here.iter().map(container).collect() });
            attempts.push(here.iter().map(|attempt| attempt.id()).collect());
            workers.push(id);
        }
        Places { workers, attempts, search: Search::new(hosts, holders) }
    }

    /// Who must go so that a job gets a slot that it can use; nobody, when one is free.
    fn make_room(&mut self, claimant: &Job, kind: TaskKind) -> Option<Vec<AttemptId>> {
        let Places { workers, attempts, search } = self;
        let room = search.make_room_where(1, |host| claimant.wants_on(kind, workers[host]))?;
        Some(room.taken.iter().map(|place| attempts[room.host][*place]).collect())
    }
}

/// Whether an attempt runs, so that its slot can be taken.
fn may_go(attempt: &Attempt) -> bool {
    attempt.holds_slot() && attempt.state() != AttemptState::Killing
}
