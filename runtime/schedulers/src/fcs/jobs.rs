//! The jobs with unfinished reduces: their demand, their estimated remaining work, and the order that
//! follows.

use serde::{Deserialize, Serialize};

use napreduce_engine::{Job, JobId, Ratio, SortedMap, SortedSet, TaskKind, Time, WorkerId};

use crate::fcs::estimates::{RemainingWork, ShuffleTime};
use crate::fcs::launch::PreemptedTasks;

/// Units of progress.
const MILLION: u64 = 1_000_000;

/// The sort key of a job: least remaining work, then earliest submission.
pub(super) type RankKey = (RemainingWork, Time, JobId);

/// A job with unfinished reduces.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Member {
    submitted: Time,
    /// When its first map was observed running.
    first_map: Option<Time>,
    /// Preempted reduces by index, with their workers.
    pub preempted: PreemptedTasks<u32, WorkerId>,
    /// Progress of unfinished reduces, in millionths.
    progress: SortedMap<u32, u32>,
    progress_total: u64,
    /// State at the last update.
    pub now: Option<JobDemand>,
}

/// The demand of a job and its rank at the last update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobDemand {
    pub place: RankKey,
    looked_at: Time,
    /// The inputs of the estimate other than time. While they are unchanged, the estimate is refreshed
    /// periodically only.
    #[serde(rename = "seen")]
    inputs: [u64; 5],
    /// Launchable tasks and resumable attempts.
    pub eligible: u32,
    pub suspended: u32,
    pub promised: u32,
    /// Slots without a pending preemption.
    holding: u32,
}

/// All jobs with unfinished reduces.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Jobs {
    pub members: SortedMap<JobId, Member>,
    /// Jobs with unmet demand.
    #[serde(skip)]
    pub waiting: SortedSet<RankKey>,
    /// Jobs with preemptable slots.
    #[serde(skip)]
    pub running: SortedSet<RankKey>,
    /// Jobs in either set, least recently updated first.
    #[serde(skip)]
    stale: SortedSet<(Time, JobId)>,
    /// Total slots promised to jobs.
    #[serde(skip)]
    pub promised: u32,
    /// Jobs whose demand grew since the last preemption.
    pub asking: SortedSet<JobId>,
}

impl Jobs {
    /// Updates demand and estimates of a job.
    pub fn refresh(&mut self, now: Time, id: JobId, job: Option<&Job>) {
        self.record(now, id, job, true);
    }

    /// Updates the demand of a job; keeps the estimates if their inputs are unchanged.
    pub fn job_changed(&mut self, now: Time, id: JobId, job: Option<&Job>) {
        self.record(now, id, job, false);
    }

    fn record(&mut self, now: Time, id: JobId, job: Option<&Job>, force: bool) {
        let before = self.remove_from_index(id);
        let left = job.map_or(0, |job| {
            job.tasks_total(TaskKind::Reduce) - job.tasks_done(TaskKind::Reduce)
        });
        let Some(job) = job.filter(|_| left > 0) else {
            self.members.remove(&id);
            self.asking.remove(&id);
            return;
        };
        let member = self.members.get_or_default(id);
        member.submitted = job.submitted();
        let kind = TaskKind::Reduce;
        if job.holding(TaskKind::Map) + job.tasks_done(TaskKind::Map) > 0 {
            member.first_map.get_or_insert(now);
        }
        let maps = TaskKind::Map;
        let inputs = [
            u64::from(job.tasks_done(maps)),
            u64::from(job.holding(maps)),
            u64::from(job.tasks_done(kind)),
            job.map_output_bytes(),
            member.progress_total,
        ];
        let (place, looked_at) = match before.filter(|before| !force && before.inputs == inputs) {
            Some(before) => (before.place, before.looked_at),
            None => ((member.remaining_work(now, job), job.submitted(), id), now),
        };
        let standing = JobDemand {
            place,
            looked_at,
            inputs,
            eligible: job.eligible_count(kind),
            suspended: job.demand(kind) - job.holding(kind) - job.eligible_count(kind),
            promised: job.promised(kind),
            holding: job.holding(kind) - job.requested(kind),
        };
        member.now = Some(standing);
        let wanted = before.map_or(0, |before| before.eligible + before.suspended);
        if standing.eligible + standing.suspended > wanted {
            self.asking.insert(id);
        }
        self.add_to_index(standing);
    }

    /// Rebuilds the index after a restore; it is not saved.
    pub fn rebuild_index(&mut self) {
        let all: Vec<JobDemand> = self
            .members
            .values()
            .filter_map(|member| member.now)
            .collect();
        for standing in all {
            self.add_to_index(standing);
        }
    }

    /// Returns the least recently updated job, if its last update precedes `before` and it has demand or
    /// slots.
    pub fn stalest(&self, before: Time) -> Option<JobId> {
        self.stale
            .first()
            .filter(|(looked_at, _)| *looked_at < before)
            .map(|(_, job)| *job)
    }

    fn add_to_index(&mut self, standing: JobDemand) {
        let id = standing.place.2;
        self.promised += standing.promised;
        let waits = standing.eligible + standing.suspended > 0;
        if waits {
            self.waiting.insert(standing.place);
        }
        if standing.holding > 0 {
            self.running.insert(standing.place);
        }
        if waits || standing.holding > 0 {
            self.stale.insert((standing.looked_at, id));
        }
    }

    fn remove_from_index(&mut self, id: JobId) -> Option<JobDemand> {
        let standing = self.members.get(&id)?.now?;
        self.promised -= standing.promised;
        self.waiting.remove(&standing.place);
        self.running.remove(&standing.place);
        self.stale.remove(&(standing.looked_at, id));
        Some(standing)
    }
}

impl Member {
    /// Records the progress of a reduce.
    pub fn set_progress(&mut self, index: u32, millionths: u32) {
        let before = self.progress.insert(index, millionths).unwrap_or_default();
        self.progress_total = self.progress_total - u64::from(before) + u64::from(millionths);
    }

    /// Drops the progress of a reduce that finished or starts over.
    pub fn clear_progress(&mut self, index: u32) {
        let before = self.progress.remove(&index).unwrap_or_default();
        self.progress_total -= u64::from(before);
    }

    /// Returns the remaining work in microseconds and bytes; without byte counts, in reduces instead.
    fn remaining_work(&self, now: Time, job: &Job) -> RemainingWork {
        let shuffle = self.remaining_shuffle(now, job);
        let reduces = u64::from(job.tasks_total(TaskKind::Reduce));
        let done = u64::from(job.tasks_done(TaskKind::Reduce)) * MILLION + self.progress_total;
        let left = (reduces * MILLION).saturating_sub(done);
        let maps = job.tasks_total(TaskKind::Map);
        let maps_done = job.tasks_done(TaskKind::Map);
        let reduce = if job.map_output_bytes() == 0 {
            u128::from(left)
        } else {
            let total = scaled(job.map_output_bytes(), maps.max(1), maps_done).unwrap_or(0);
            u128::from(total) * u128::from(left) / u128::from(reduces * MILLION)
        };
        RemainingWork {
            shuffle,
            reduce: Ratio::whole(u64::try_from(reduce).unwrap_or(u64::MAX)),
        }
    }

    /// Extrapolates from the maps done since the first one started; before any is done, from those running.
    /// Integer version of `estimates::remaining_shuffle`, since it runs at every change of a job.
    fn remaining_shuffle(&self, now: Time, job: &Job) -> ShuffleTime {
        let kind = TaskKind::Map;
        let done = job.tasks_done(kind);
        let left = job.tasks_total(kind) - done;
        if left == 0 {
            return ShuffleTime::Finite(Ratio::ZERO);
        }
        let elapsed = self.first_map.map_or(0, |first| now.since(first).0);
        if elapsed == 0 {
            return ShuffleTime::Infinite;
        }
        let at_work = if done == 0 { job.holding(kind) } else { done };
        scaled(elapsed, left, at_work).map_or(ShuffleTime::Infinite, |time| {
            ShuffleTime::Finite(Ratio::whole(time))
        })
    }
}

/// Returns `amount * times / by`, rounded to the nearest integer, halves up; `None` if `by` is zero.
fn scaled(amount: u64, times: u32, by: u32) -> Option<u64> {
    let doubled = u128::from(amount) * u128::from(times) * 2;
    let by = u128::from(by);
    (doubled + by)
        .checked_div(2 * by)
        .map(|scaled| u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcs::estimates::{remaining_reduce, remaining_shuffle};

    #[test]
    fn integer_estimates_match_formulas() {
        for (amount, left, done) in [
            (1, 1, 3),
            (5, 3, 2),
            (7, 1, 2),
            (1_000_003, 17, 9),
            (u64::MAX, 2, 1),
        ] {
            let rate = Ratio::new(i128::from(done), i128::from(amount));
            let ShuffleTime::Finite(time) = remaining_shuffle(left, rate, Ratio::ONE) else {
                panic!("{done} maps were done")
            };
            assert_eq!(
                scaled(amount, left as u32, done as u32),
                Some(time.of_rounded(1))
            );
            let share = Ratio::new(i128::from(done), left as i128);
            let bytes = remaining_reduce(Ratio::whole(amount), share, Ratio::ZERO);
            assert_eq!(
                scaled(amount, left as u32, done as u32),
                Some(bytes.of_rounded(1))
            );
        }
        assert_eq!(scaled(5, 3, 0), None);
    }
}
