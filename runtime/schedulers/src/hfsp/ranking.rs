//! The order of the jobs of one task kind, from the virtual cluster. The cost of re-ranking is bounded by the
//! number of events, however many jobs there are.

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, SortedMap, SortedSet, Span, Time};

use crate::hfsp::virtual_cluster::VirtualCluster;

/// The order of jobs that are not late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankingOrder {
    /// By finish time in the virtual cluster without further arrivals.
    #[default]
    ProjectedFinish,
    /// By remaining size in the virtual cluster. Re-ranks all jobs at every event.
    RemainingSize,
}

/// The rank of a job: late jobs first, in order of virtual finish; ties by submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// Whether it has not finished virtually.
    pub on_time: bool,
    /// Virtual finish time of a late job; otherwise the value of the order.
    pub key: u64,
    pub submitted: Time,
    pub job: JobId,
}

/// Credit for re-ranking, in virtual task ends plus ranked jobs; every `CALLS_PER_CREDIT` calls earn one.
const CREDIT_MAX: usize = 100_000;
const CALLS_PER_CREDIT: u32 = 4;
/// Work that is always allowed, so that few jobs are ranked exactly.
const FREE_WORK: usize = 64;

/// The ranked jobs of one task kind.
///
/// An arrival or a new measurement may change every rank, and computing them runs the virtual cluster to
/// its end. If that would cost more than the accumulated credit, only the affected job is ranked, by its
/// current share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ranking {
    order: RankingOrder,
    cluster: VirtualCluster,
    ranks: SortedMap<JobId, Rank>,
    /// Whether the ranks differ from a projection.
    stale: bool,
    /// Jobs without a rank for their current size.
    unranked: SortedSet<JobId>,
    credit: usize,
    calls: u32,
    last_steps: usize,
    last_event: Time,
}

impl Ranking {
    /// Creates an empty ranking over a cluster of `slots`.
    pub fn new(order: RankingOrder, slots: u32) -> Ranking {
        Ranking {
            order,
            cluster: VirtualCluster::new(slots),
            ranks: SortedMap::new(),
            stale: false,
            unranked: SortedSet::new(),
            credit: CREDIT_MAX,
            calls: 0,
            last_steps: 0,
            last_event: Time::default(),
        }
    }
}

impl Ranking {
    /// Returns the virtual cluster at the time of the last call.
    pub fn cluster(&self) -> &VirtualCluster {
        &self.cluster
    }

    /// Returns the rank of an active job.
    pub fn rank(&self, job: JobId) -> Option<Rank> {
        self.ranks.get(&job).copied()
    }

    /// Returns the active jobs in order.
    pub fn jobs(&self) -> Vec<JobId> {
        let mut ranks: Vec<Rank> = self.ranks.values().copied().collect();
        ranks.sort_unstable();
        ranks.into_iter().map(|rank| rank.job).collect()
    }

    /// Sets the number of slots of the real cluster.
    pub fn set_slots(&mut self, now: Time, slots: u32) {
        if self.cluster.slots() != slots {
            self.cluster.age(now);
            self.cluster.set_slots(slots);
            self.stale = true;
        }
    }

    /// Adds a job with groups of task time and count.
    pub fn enter(
        &mut self,
        now: Time,
        job: JobId,
        submitted: Time,
        weight: u32,
        groups: &[(Span, u32)],
    ) {
        self.cluster.age(now);
        self.cluster.enter(job, submitted, weight, groups);
        self.ranks.insert(
            job,
            Rank {
                on_time: true,
                key: u64::MAX,
                submitted,
                job,
            },
        );
        self.unranked.insert(job);
        self.stale = true;
    }

    /// Sets the mean task time of a job.
    pub fn resize(&mut self, now: Time, job: JobId, task_size: Span) {
        self.cluster.age(now);
        if self.cluster.contains(job) {
            self.cluster.resize(job, task_size);
            self.unranked.insert(job);
            self.stale = true;
        }
    }

    /// Removes the rank of a finished job. It keeps its virtual slots until it finishes virtually.
    pub fn done(&mut self, job: JobId) {
        self.ranks.remove(&job);
        self.unranked.remove(&job);
    }

    /// Removes a cancelled job, also from the virtual cluster.
    pub fn give_up(&mut self, now: Time, job: JobId) {
        self.done(job);
        self.cluster.age(now);
        if self.cluster.contains(job) {
            self.cluster.leave(job);
            self.stale = true;
        }
    }

    /// Advances virtual time and returns the jobs whose ranks changed. Called at every event.
    pub fn update(&mut self, now: Time) -> Vec<JobId> {
        self.calls += 1;
        if self.calls == CALLS_PER_CREDIT {
            self.calls = 0;
            self.credit = (self.credit + 1).min(CREDIT_MAX);
        }
        self.cluster.age(now);
        let mut changed = self.mark_late();
        if self.order == RankingOrder::RemainingSize {
            // Remaining sizes change with time.
            self.stale |= self.last_event < now;
        }
        self.last_event = now;
        if self.stale {
            let cost = self.ranks.len() + self.cluster.len() + self.last_steps;
            if self.order == RankingOrder::RemainingSize {
                changed.extend(self.rank_by_size());
            } else if cost <= self.credit.max(FREE_WORK) {
                changed.extend(self.rank_by_projection());
            } else {
                changed.extend(self.rank_unranked());
            }
        }
        changed
    }

    /// Marks jobs that finished virtually before they finished in reality.
    fn mark_late(&mut self) -> Vec<JobId> {
        let mut late = Vec::new();
        for (at, job) in self.cluster.take_finished() {
            if let Some(rank) = self.ranks.get_mut(&job) {
                rank.on_time = false;
                rank.key = at.0;
                self.unranked.remove(&job);
                late.push(job);
            }
        }
        late
    }

    fn rank_by_projection(&mut self) -> Vec<JobId> {
        let projection = self.cluster.project(self.credit.max(FREE_WORK));
        let cost = self.ranks.len() + self.cluster.len() + projection.steps;
        self.credit = self.credit.saturating_sub(cost);
        self.last_steps = projection.steps;
        self.stale = false;
        self.unranked.clear();
        projection
            .finishes
            .into_iter()
            .filter_map(|(job, finish)| self.set_key(job, finish.0))
            .collect()
    }

    fn rank_by_size(&mut self) -> Vec<JobId> {
        self.stale = false;
        self.unranked.clear();
        let on_time: Vec<JobId> = self.cluster.jobs().collect();
        let keyed = on_time
            .into_iter()
            .map(|job| (job, self.cluster.remaining(job).0))
            .collect::<Vec<_>>();
        keyed
            .into_iter()
            .filter_map(|(job, left)| self.set_key(job, left))
            .collect()
    }

    fn rank_unranked(&mut self) -> Vec<JobId> {
        let new = std::mem::take(&mut self.unranked);
        new.into_iter()
            .filter_map(|job| self.set_key(job, self.cluster.estimated_finish(job).0))
            .collect()
    }

    fn set_key(&mut self, job: JobId, key: u64) -> Option<JobId> {
        let rank = self
            .ranks
            .get_mut(&job)
            .filter(|rank| rank.on_time && rank.key != key)?;
        rank.key = key;
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn two_jobs(order: RankingOrder) -> Ranking {
        let mut ranking = Ranking::new(order, 4);
        ranking.enter(Time(0), JobId(1), Time(0), 1, &[(Span::from_secs(30), 1)]);
        ranking.enter(Time(0), JobId(2), Time(0), 1, &[(Span::from_secs(10), 4)]);
        ranking.update(Time(0));
        ranking
    }

    #[test]
    fn order_follows_configuration() {
        assert_eq!(
            two_jobs(RankingOrder::ProjectedFinish).jobs(),
            [JobId(2), JobId(1)]
        );
        assert_eq!(
            two_jobs(RankingOrder::RemainingSize).jobs(),
            [JobId(1), JobId(2)]
        );
    }

    #[test]
    fn virtually_finished_job_is_late_and_first() {
        for order in [RankingOrder::ProjectedFinish, RankingOrder::RemainingSize] {
            let mut ranking = two_jobs(order);
            assert_eq!(ranking.update(Time(20 * SECOND))[0], JobId(2));
            ranking.enter(
                Time(20 * SECOND),
                JobId(3),
                Time(20 * SECOND),
                1,
                &[(Span(1), 1)],
            );
            ranking.update(Time(20 * SECOND));
            assert_eq!(ranking.jobs(), [JobId(2), JobId(3), JobId(1)]);
            assert_eq!(ranking.rank(JobId(2)).map(|rank| rank.on_time), Some(false));
        }
    }

    #[test]
    fn done_job_keeps_virtual_slots_unlike_given_up_one() {
        let mut ranking = two_jobs(RankingOrder::ProjectedFinish);
        ranking.done(JobId(2));
        ranking.update(Time(SECOND));
        assert_eq!(
            (ranking.jobs(), ranking.cluster().allotted(JobId(2))),
            (vec![JobId(1)], 3)
        );
        let mut ranking = two_jobs(RankingOrder::ProjectedFinish);
        ranking.give_up(Time(0), JobId(2));
        assert!(!ranking.cluster().contains(JobId(2)));
    }

    #[test]
    fn new_jobs_rank_by_share_without_credit() {
        let mut ranking = Ranking::new(RankingOrder::ProjectedFinish, 10);
        ranking.credit = 0;
        let job = |id: u32| JobId(id);
        for id in 1..=500 {
            let length = Span::from_secs(u64::from(1000 - id));
            ranking.enter(Time(0), job(id), Time(0), 1, &[(length, 5)]);
            ranking.update(Time(0));
        }
        assert!(ranking.stale, "the credit does not cover a projection");
        ranking.enter(Time(0), job(501), Time(0), 1, &[(Span::from_secs(1), 1)]);
        ranking.update(Time(0));
        assert_eq!(ranking.jobs()[0], job(501));
        ranking.credit = CREDIT_MAX;
        ranking.update(Time(0));
        assert!(!ranking.stale);
        let finishes = ranking.cluster.project(usize::MAX).finishes;
        let mut exact: Vec<JobId> = (1..=501).map(job).collect();
        exact.sort_by_key(|job| (finishes[job], *job));
        assert!(ranking.jobs() == exact, "with credit the order is exact");
    }
}
