//! The order of the jobs of one kind of task, as the virtual cluster says.
//!
//! Owns when the order is found anew: the work that takes is bounded by the number of events, however many
//! jobs there are. Does not own what jobs want.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{JobId, Span, Time, fields};

use crate::hfsp::virtual_cluster::VirtualCluster;

/// By what jobs are ordered that are not late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankingOrder {
    /// When they end in the virtual cluster if no other comes.
    #[default]
    ProjectedFinish,
    /// What is left of them in the virtual cluster. Found anew at every event, which takes time in proportion
    /// to the jobs.
    RemainingSize,
}

/// The place of a job: late ones first, in the order in which they ended virtually; ties by submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// Whether it is not late: it has not ended virtually.
    pub on_time: bool,
    /// When it ended virtually, or what it is ordered by.
    pub key: u64,
    pub submitted: Time,
    pub job: JobId,
}

/// What may be saved up for the work of finding the order anew, in virtual tasks that end and jobs that are
/// ranked, and how many calls pay for one of them.
const CREDIT_MAX: usize = 100_000;
const CALLS_PER_CREDIT: u32 = 4;
/// So much is always done: the order of a few jobs is exact.
const FREE_WORK: usize = 64;

fields! {
    /// The jobs of one kind that are there, ranked.
    ///
    /// When a job comes or is measured every rank may change, and to know them the virtual cluster is run to
    /// its end. While that would cost more than what events have paid for, only that job is ranked, by the
    /// share it has just now.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub struct Ranking {
        order: RankingOrder = order,
        cluster: VirtualCluster = VirtualCluster::new(slots),
        ranks: BTreeMap<JobId, Rank>,
        /// The ranks are not what a projection would say.
        stale: bool,
        /// Jobs that have no rank, or not that of their size.
        unranked: BTreeSet<JobId>,
        credit: usize = CREDIT_MAX,
        calls: u32,
        last_steps: usize,
        last_event: Time,
    }

    /// No jobs in a cluster of so many slots.
    pub fn new(order: RankingOrder, slots: u32);
}

impl Ranking {
    /// The virtual cluster as of the last call with a time.
    pub fn cluster(&self) -> &VirtualCluster {
        &self.cluster
    }

    /// The place of a job that is there.
    pub fn rank(&self, job: JobId) -> Option<Rank> {
        self.ranks.get(&job).copied()
    }

    /// The jobs that are there, first to last.
    pub fn jobs(&self) -> Vec<JobId> {
        let mut ranks: Vec<Rank> = self.ranks.values().copied().collect();
        ranks.sort_unstable();
        ranks.into_iter().map(|rank| rank.job).collect()
    }

    /// The real cluster has so many slots.
    pub fn set_slots(&mut self, now: Time, slots: u32) {
        if self.cluster.slots() != slots {
            self.cluster.age(now);
            self.cluster.set_slots(slots);
            self.stale = true;
        }
    }

    /// A job comes, with so many tasks of each length.
    pub fn enter(&mut self, now: Time, job: JobId, submitted: Time, weight: u32, groups: &[(Span, u32)]) {
        self.cluster.age(now);
        self.cluster.enter(job, submitted, weight, groups);
        self.ranks.insert(job, Rank { on_time: true, key: u64::MAX, submitted, job });
        self.unranked.insert(job);
        self.stale = true;
    }

    /// The tasks of a job are of another size, in the mean.
    pub fn resize(&mut self, now: Time, job: JobId, task_size: Span) {
        self.cluster.age(now);
        if self.cluster.contains(job) {
            self.cluster.resize(job, task_size);
            self.unranked.insert(job);
            self.stale = true;
        }
    }

    /// A job is done: it has no rank any more, but stays in the virtual cluster until it ends there.
    pub fn done(&mut self, job: JobId) {
        self.ranks.remove(&job);
        self.unranked.remove(&job);
    }

    /// A job was given up: it goes from the virtual cluster, too.
    pub fn give_up(&mut self, now: Time, job: JobId) {
        self.done(job);
        self.cluster.age(now);
        if self.cluster.contains(job) {
            self.cluster.leave(job);
            self.stale = true;
        }
    }

    /// Lets virtual time pass and returns the jobs whose ranks changed, if they did. Called at every event.
    pub fn update(&mut self, now: Time) -> Vec<JobId> {
        self.calls += 1;
        if self.calls == CALLS_PER_CREDIT {
            self.calls = 0;
            self.credit = (self.credit + 1).min(CREDIT_MAX);
        }
        self.cluster.age(now);
        let mut changed = self.find_late();
        if self.order == RankingOrder::RemainingSize {
            // What is left changes with time, and with that the order.
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
                changed.extend(self.rank_new_ones());
            }
        }
        changed
    }

    /// Jobs that ended virtually and not really are late from then on.
    fn find_late(&mut self) -> Vec<JobId> {
        let mut late = Vec::new();
        for (at, job) in self.cluster.take_finished() {
            if let Some(rank) = self.ranks.get_mut(&job) {
                (rank.on_time, rank.key) = (false, at.0);
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
        projection.finishes.into_iter().filter_map(|(job, finish)| self.set_key(job, finish.0)).collect()
    }

    fn rank_by_size(&mut self) -> Vec<JobId> {
        self.stale = false;
        self.unranked.clear();
        let on_time: Vec<JobId> = self.cluster.jobs().collect();
        let keyed = on_time.into_iter().map(|job| (job, self.cluster.remaining(job).0)).collect::<Vec<_>>();
        keyed.into_iter().filter_map(|(job, left)| self.set_key(job, left)).collect()
    }

    fn rank_new_ones(&mut self) -> Vec<JobId> {
        let new = std::mem::take(&mut self.unranked);
        new.into_iter().filter_map(|job| self.set_key(job, self.cluster.estimated_finish(job).0)).collect()
    }

    fn set_key(&mut self, job: JobId, key: u64) -> Option<JobId> {
        let rank = self.ranks.get_mut(&job).filter(|rank| rank.on_time && rank.key != key)?;
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
    fn jobs_go_by_their_projected_finish_or_by_their_remaining_size() {
        assert_eq!(two_jobs(RankingOrder::ProjectedFinish).jobs(), [JobId(2), JobId(1)]);
        assert_eq!(two_jobs(RankingOrder::RemainingSize).jobs(), [JobId(1), JobId(2)]);
    }

    #[test]
    fn a_job_that_ended_virtually_is_late_and_before_all_others() {
        for order in [RankingOrder::ProjectedFinish, RankingOrder::RemainingSize] {
            let mut ranking = two_jobs(order);
            assert_eq!(ranking.update(Time(20 * SECOND))[0], JobId(2));
            ranking.enter(Time(20 * SECOND), JobId(3), Time(20 * SECOND), 1, &[(Span(1), 1)]);
            ranking.update(Time(20 * SECOND));
            assert_eq!(ranking.jobs(), [JobId(2), JobId(3), JobId(1)]);
            assert_eq!(ranking.rank(JobId(2)).map(|rank| rank.on_time), Some(false));
        }
    }

    #[test]
    fn a_job_that_is_done_keeps_its_virtual_slots_and_one_given_up_does_not() {
        let mut ranking = two_jobs(RankingOrder::ProjectedFinish);
        ranking.done(JobId(2));
        ranking.update(Time(SECOND));
        assert_eq!((ranking.jobs(), ranking.cluster().allotted(JobId(2))), (vec![JobId(1)], 3));
        let mut ranking = two_jobs(RankingOrder::ProjectedFinish);
        ranking.give_up(Time(0), JobId(2));
        assert!(!ranking.cluster().contains(JobId(2)));
    }

    #[test]
    fn with_too_many_jobs_to_project_at_every_event_new_ones_are_placed_by_their_share() {
        let mut ranking = Ranking::new(RankingOrder::ProjectedFinish, 10);
        ranking.credit = 0;
        let job = |id: u32| JobId(id);
        for id in 1..=500 {
            let length = Span::from_secs(u64::from(1000 - id));
            ranking.enter(Time(0), job(id), Time(0), 1, &[(length, 5)]);
            ranking.update(Time(0));
        }
        assert!(ranking.stale, "the last projection was too long ago");
        ranking.enter(Time(0), job(501), Time(0), 1, &[(Span::from_secs(1), 1)]);
        ranking.update(Time(0));
        assert_eq!(ranking.jobs()[0], job(501));
        ranking.credit = CREDIT_MAX;
        ranking.update(Time(0));
        assert!(!ranking.stale);
        let finishes = ranking.cluster.project(usize::MAX).finishes;
        let mut exact: Vec<JobId> = (1..=501).map(job).collect();
        exact.sort_by_key(|job| (finishes[job], *job));
        assert!(ranking.jobs() == exact, "what events paid for is as exact as ever");
    }
}
