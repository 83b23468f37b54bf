//! The jobs with reduces, by what is left of them, and what each of them holds and wants.
//!
//! Owns the estimates as of the last look at a job, and the order that follows from them. Does not own the
//! formulas.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use napreduce_engine::{Job, JobId, Ratio, TaskKind, Time, WorkerId};

use crate::fcs::estimates::{RemainingWork, ShuffleTime};
use crate::fcs::launch::PreemptedTasks;

/// The parts in which progress is kept.
const MILLION: u64 = 1_000_000;

/// The place of a job: less work left first, then submitted earlier.
pub(super) type RankKey = (RemainingWork, Time, JobId);

/// A job with reduces that are not all done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Member {
    submitted: Time,
    /// When its first map was seen at work.
    first_map: Option<Time>,
    /// Its preempted reduces, by their index, and where each was.
    pub preempted: PreemptedTasks<u32, WorkerId>,
    /// The progress of its reduces that are not done, in millionths.
    progress: BTreeMap<u32, u32>,
    progress_total: u64,
    /// What was seen of it last, and what follows from that.
    pub now: Option<JobDemand>,
}

/// What a job holds and wants as of the last look at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobDemand {
    pub place: RankKey,
    looked_at: Time,
    /// What its estimates follow from, besides the time: with the same, it is not looked at again for a
    /// while.
    seen: [u64; 5],
    /// Tasks that may be launched, and attempts that may be resumed.
    pub eligible: u32,
    pub suspended: u32,
    pub promised: u32,
    /// Slots that nobody asked it for yet.
    holding: u32,
}

/// All jobs with reduces.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Jobs {
    pub members: BTreeMap<JobId, Member>,
    /// Jobs that could use a slot.
    #[serde(skip)]
    pub waiting: BTreeSet<RankKey>,
    /// Jobs that could give one.
    #[serde(skip)]
    pub running: BTreeSet<RankKey>,
    /// Those of either, the one first that was not looked at for the longest.
    #[serde(skip)]
    stale: BTreeSet<(Time, JobId)>,
    /// How many slots are promised to jobs.
    #[serde(skip)]
    pub promised: u32,
    /// Jobs that want more than when slots were last taken for them.
    pub asking: BTreeSet<JobId>,
}

impl Jobs {
    /// Takes note of what a job holds and wants now, and of what is left of it.
    pub fn look_at(&mut self, now: Time, id: JobId, job: Option<&Job>) {
        self.note(now, id, job, true);
    }

    /// The same, but the estimates stay as they are if nothing changed that they follow from.
    pub fn job_changed(&mut self, now: Time, id: JobId, job: Option<&Job>) {
        self.note(now, id, job, false);
    }

    fn note(&mut self, now: Time, id: JobId, job: Option<&Job>, anew: bool) {
        let before = self.unlist(id);
        let left = job.map_or(0, |job| job.tasks_total(TaskKind::Reduce) - job.tasks_done(TaskKind::Reduce));
        let Some(job) = job.filter(|_| left > 0) else {
            self.members.remove(&id);
            self.asking.remove(&id);
            return;
        };
        let member = self.members.entry(id).or_default();
        member.submitted = job.submitted();
        let kind = TaskKind::Reduce;
        if job.holding(TaskKind::Map) + job.tasks_done(TaskKind::Map) > 0 {
            member.first_map.get_or_insert(now);
        }
        let maps = TaskKind::Map;
        let seen = [
            u64::from(job.tasks_done(maps)),
            u64::from(job.holding(maps)),
            u64::from(job.tasks_done(kind)),
            job.map_output_bytes(),
            member.progress_total,
        ];
        let (place, looked_at) = match before.filter(|before| !anew && before.seen == seen) {
            Some(before) => (before.place, before.looked_at),
            None => ((member.remaining_work(now, job), job.submitted(), id), now),
        };
        let standing = JobDemand {
            place,
            looked_at,
            seen,
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
        self.list(standing);
    }

    /// Lists every job, after a restore: the lists are not remembered.
    pub fn list_all(&mut self) {
        let all: Vec<JobDemand> = self.members.values().filter_map(|member| member.now).collect();
        all.into_iter().for_each(|standing| self.list(standing));
    }

    /// The job that was not looked at for the longest, if that was before a time and it holds or wants
    /// anything.
    pub fn stalest(&self, before: Time) -> Option<JobId> {
        self.stale.first().filter(|(looked_at, _)| *looked_at < before).map(|(_, job)| *job)
    }

    fn list(&mut self, standing: JobDemand) {
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

    fn unlist(&mut self, id: JobId) -> Option<JobDemand> {
        let standing = self.members.get(&id)?.now?;
        self.promised -= standing.promised;
        self.waiting.remove(&standing.place);
        self.running.remove(&standing.place);
        self.stale.remove(&(standing.looked_at, id));
        Some(standing)
    }
}

impl Member {
    /// A reduce has done so many millionths of its work.
    pub fn progressed(&mut self, index: u32, millionths: u32) {
        let before = self.progress.insert(index, millionths).unwrap_or_default();
        self.progress_total = self.progress_total - u64::from(before) + u64::from(millionths);
    }

    /// A reduce is done, or begins again from nothing.
    pub fn forget_progress(&mut self, index: u32) {
        let before = self.progress.remove(&index).unwrap_or_default();
        self.progress_total -= u64::from(before);
    }

    /// What is left, in whole microseconds and bytes; numbers of reduces in place of bytes if nobody counted
    /// those.
    fn remaining_work(&self, now: Time, job: &Job) -> RemainingWork {
        let shuffle = self.remaining_shuffle(now, job);
        let reduces = u64::from(job.tasks_total(TaskKind::Reduce));
        let done = u64::from(job.tasks_done(TaskKind::Reduce)) * MILLION + self.progress_total;
        let left = (reduces * MILLION).saturating_sub(done);
        let (maps, maps_done) = (job.tasks_total(TaskKind::Map), job.tasks_done(TaskKind::Map));
        let reduce = if job.map_output_bytes() == 0 {
            u128::from(left)
        } else {
            let total = scaled(job.map_output_bytes(), maps.max(1), maps_done).unwrap_or(0);
            u128::from(total) * u128::from(left) / u128::from(reduces * MILLION)
        };
        RemainingWork { shuffle, reduce: Ratio::whole(u64::try_from(reduce).unwrap_or(u64::MAX)) }
    }

    /// From the maps done since the first began; before any is, as if those that run were about to be. As
    /// `estimates::remaining_shuffle` says, in whole numbers: this is asked at every change of a job.
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
        scaled(elapsed, left, at_work)
            .map_or(ShuffleTime::Infinite, |time| ShuffleTime::Finite(Ratio::whole(time)))
    }
}

/// So many times an amount, divided by so many, to the nearest integer, halves up; nothing can be
/// divided by zero.
fn scaled(amount: u64, times: u32, by: u32) -> Option<u64> {
    let (doubled, by) = (u128::from(amount) * u128::from(times) * 2, u128::from(by));
    (doubled + by).checked_div(2 * by).map(|scaled| u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fcs::estimates::{remaining_reduce, remaining_shuffle};

    #[test]
    fn whole_numbers_are_what_the_formulas_say() {
        for (amount, left, done) in [(1, 1, 3), (5, 3, 2), (7, 1, 2), (1_000_003, 17, 9), (u64::MAX, 2, 1)] {
            let rate = Ratio::new(i128::from(done), i128::from(amount));
            let ShuffleTime::Finite(time) = remaining_shuffle(left, rate, Ratio::ONE) else {
                panic!("{done} maps were done")
            };
            assert_eq!(scaled(amount, left as u32, done as u32), Some(time.of_rounded(1)));
            let share = Ratio::new(i128::from(done), left as i128);
            let bytes = remaining_reduce(Ratio::whole(amount), share, Ratio::ZERO);
            assert_eq!(scaled(amount, left as u32, done as u32), Some(bytes.of_rounded(1)));
        }
        assert_eq!(scaled(5, 3, 0), None);
    }
}
