//! Disks and network of a machine, divided among its tasks that are at work.
//!
//! Owns who moves how many bytes a second and how fast each task is by that: max-min fair shares, as
//! processor sharing gives them, each at most what the task can use. Does not own when tasks begin and end; a
//! reduce that waits for maps moves nothing here.

use napreduce_engine::{Span, TaskKind};

use super::Simulation;
use super::attempts::{Phase, VirtualAttempt};
use super::jobs::RunningJob;

/// How much work is done in each second, in parts of a thousand million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace(u32);

impl Pace {
    const WHOLE: u32 = 1_000_000_000;
    /// A second of work each second.
    pub const FULL: Pace = Pace(Pace::WHOLE);
    /// Not worked out yet.
    pub const UNKNOWN: Pace = Pace(0);

    /// That of a task which wants to move so many bytes a second and is given so many; never nothing at all.
    fn of(given: u64, wanted: u64) -> Pace {
        let share = u128::from(given) * u128::from(Pace::WHOLE) / u128::from(wanted.max(1));
        Pace(u32::try_from(share).unwrap_or(Pace::WHOLE).clamp(1, Pace::WHOLE))
    }

    /// The work that is done in so many microseconds.
    pub fn done_in(self, span: u64) -> u64 {
        if self == Pace::FULL {
            return span;
        }
        (u128::from(span) * u128::from(self.0) / u128::from(Pace::WHOLE)) as u64
    }

    /// How long so much work takes: the least whole microseconds in which it is done.
    pub fn time_for(self, work: u64) -> Span {
        if self == Pace::FULL {
            return Span(work);
        }
        let time = (u128::from(work) * u128::from(Pace::WHOLE)).div_ceil(u128::from(self.0.max(1)));
        Span(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// What a task moves bytes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Through {
    Disk,
    Network,
}

/// What a task at work moves, and how many bytes a second it would if it were alone.
fn demand(attempt: &VirtualAttempt, job: &RunningJob) -> (Through, u64) {
    let each_second = |bytes: u64, time: u64| match time {
        0 => 0,
        time => u64::try_from((u128::from(bytes) * 1_000_000).div_ceil(u128::from(time))).unwrap_or(u64::MAX),
    };
    let index = attempt.id.task.index as usize;
    match attempt.kind() {
        TaskKind::Map => {
            let map = &job.plan.maps[index];
            (Through::Disk, each_second(map.bytes.saturating_add(map.output_bytes), map.work.0))
        }
        TaskKind::Reduce => {
            let reduce = &job.plan.reduces[index];
            match attempt.done < attempt.shuffle {
                true => (Through::Network, each_second(reduce.bytes, reduce.shuffle.0)),
                false => (Through::Disk, each_second(reduce.bytes, reduce.reduce.0)),
            }
        }
    }
}

/// Divides so many bytes a second among those that want some: each has an equal part of what is left, but
/// none more than it wants.
fn max_min(bandwidth: u64, wanted: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|one| wanted[*one]);
    let (mut left, mut given) = (bandwidth, vec![0; wanted.len()]);
    for (before, one) in order.iter().enumerate() {
        given[*one] = wanted[*one].min(left / (wanted.len() - before) as u64);
        left -= given[*one];
    }
    given
}

impl Simulation {
    /// What moves on a machine has changed: finds how fast its tasks are now.
    pub(super) fn share_bandwidth(&mut self, worker: u32) {
        let Some(bandwidth) = self.settings.overheads.machine_bandwidth else { return };
        let mut at_work: Vec<(u32, Through, u64)> = Vec::new();
        for position in 0..self.workers[worker as usize].attempts.len() {
            let place = self.workers[worker as usize].attempts[position];
            if self.attempts.at(place).phase == Phase::Working {
                // What it moves depends on how far it is.
                self.bring_up_to_date(place);
                let attempt = self.attempts.at(place);
                let (through, wanted) = demand(attempt, self.jobs.at_mut(attempt.id.task.job));
                at_work.push((place, through, wanted));
            }
        }
        for (through, limit) in [(Through::Disk, bandwidth.disk), (Through::Network, bandwidth.network)] {
            let moving: Vec<(u32, u64)> =
                at_work.iter().filter(|one| one.1 == through).map(|one| (one.0, one.2)).collect();
            let wanted: Vec<u64> = moving.iter().map(|(_, wanted)| *wanted).collect();
            let given = limit.map_or_else(|| wanted.clone(), |limit| max_min(limit, &wanted));
            for ((place, wanted), given) in moving.into_iter().zip(given) {
                let pace = if wanted == 0 { Pace::FULL } else { Pace::of(given, wanted) };
                self.set_pace(place, pace);
            }
        }
    }

    fn set_pace(&mut self, place: u32, pace: Pace) {
        if self.attempts.at(place).pace == pace {
            return;
        }
        let attempt = self.attempts.at_mut(place);
        attempt.pace = pace;
        attempt.stamp = attempt.stamp.wrapping_add(1);
        self.expect_end(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_but_none_is_more_than_wanted() {
        assert_eq!(max_min(100, &[200, 200]), [50, 50]);
        assert_eq!(max_min(100, &[10, 200, 60]), [10, 45, 45]);
        assert_eq!(max_min(100, &[10, 20, 30]), [10, 20, 30]);
        assert_eq!(max_min(100, &[0, 300]), [0, 100]);
        assert!(max_min(7, &[]).is_empty());
    }

    #[test]
    fn work_and_time_agree_at_any_pace() {
        for (given, wanted) in [(1, 3), (2, 3), (999, 1000), (5, 5), (1, 1_000_000)] {
            let pace = Pace::of(given, wanted);
            for work in [0, 1, 7, 1_000_000, 123_456_789] {
                let time = pace.time_for(work);
                assert!(pace.done_in(time.0) >= work, "{given} of {wanted}, {work}");
                assert!(time.0 == 0 || pace.done_in(time.0 - 1) < work, "{given} of {wanted}, {work}");
            }
        }
    }
}
