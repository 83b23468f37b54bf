//! When a job will be done, estimated from the tasks it has finished and the slots it holds.
//!
//! A running attempt needs its remaining input at its average rate. Each task without a slot takes as long as
//! the mean of the finished ones, and starts when a slot of the job becomes free. The job is expected to
//! have, from now on, as many slots as halfway between those it holds and an equal share. The range comes
//! from how much the lengths of its tasks differ.

use serde::{Deserialize, Serialize};

use crate::cluster::{Attempt, ClusterView, Job};
use crate::ids::TaskKind;
use crate::states::JobState;
use crate::time::{Span, Time};

/// The estimated time until a job is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLeft {
    pub least: Span,
    pub likely: Span,
    pub most: Span,
}

/// The expected work time of a task, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Length {
    mean: f64,
    deviation: f64,
    /// The number of tasks behind it.
    tasks: f64,
}

impl ClusterView<'_> {
    /// Estimates when a job will be done. Returns `None` while it waits for slots, is paused or suspended,
    /// and while nothing is known about the length of its tasks.
    pub fn time_left(&self, job: &Job) -> Option<TimeLeft> {
        if job.state() != JobState::Active || job.pause().is_some() {
            return None;
        }
        let maps = self.phase_left(job, TaskKind::Map)?;
        let reduces = self.phase_left(job, TaskKind::Reduce)?;
        Some(TimeLeft {
            least: maps.least + reduces.least,
            likely: maps.likely + reduces.likely,
            most: maps.most + reduces.most,
        })
    }

    /// Estimates the time that the tasks of one kind take once they can run.
    fn phase_left(&self, job: &Job, kind: TaskKind) -> Option<TimeLeft> {
        let mut tasks = job.tasks_total(kind) - job.tasks_done(kind);
        if tasks == 0 {
            return Some(TimeLeft::default());
        }
        let needs_maps = kind == TaskKind::Reduce && !job.has_had_every_map();
        let length = self.expected_length(job, kind, needs_maps)?;
        // When the slots that it holds become free, and the work that needs a slot.
        let mut slots: Vec<f64> = Vec::new();
        let mut work = 0.0;
        let live = job.attempts_of_kind(kind).filter_map(|attempt| self.attempt(attempt));
        for attempt in live.filter(|attempt| attempt.duplicate_of().is_none() && !attempt.superseded) {
            tasks = tasks.saturating_sub(1);
            let rest = if needs_maps { length.mean } else { rest_of(attempt, self.now(), length) };
            if attempt.holds_slot() {
                slots.push(rest);
            } else {
                work += rest;
            }
        }
        work += f64::from(tasks) * length.mean;
        let share = self.equal_share(kind);
        if needs_maps {
            slots.resize(slots.len().max(share.min(job.tasks_total(kind) as usize)), 0.0);
        }
        if slots.is_empty() {
            return None;
        }
        let last = slots.iter().copied().fold(0.0, f64::max);
        slots.sort_by(f64::total_cmp);
        // A slot that it will get becomes free halfway through a task.
        slots.resize((slots.len() + share).div_ceil(2), length.mean / 2.0);
        let likely = end_of_work(&slots, work, length.mean).max(last);
        let rounds = likely / length.mean.max(1.0);
        let spread = length.deviation * (1.0 + rounds + rounds * rounds / length.tasks).sqrt();
        let span = |micros: f64| Span(micros.max(0.0) as u64);
        Some(TimeLeft { least: span(likely - spread), likely: span(likely), most: span(likely + spread) })
    }

    /// Returns the length of tasks of a kind: that of its finished tasks, else of the last job of its name, else
    /// of its running tasks. If the last job and the running tasks differ by more than a factor of two, the
    /// running tasks count. For reduces that need maps, nothing but the maps may be known.
    fn expected_length(&self, job: &Job, kind: TaskKind, needs_maps: bool) -> Option<Length> {
        if let Some(length) = job.length_of_done(kind) {
            return Some(length);
        }
        let named = self.length_of_name(job, kind);
        if needs_maps {
            let of_maps = |maps: Length| Length { deviation: maps.mean / 2.0, tasks: 1.0, ..maps };
            return named.or_else(|| self.expected_length(job, TaskKind::Map, false).map(of_maps));
        }
        match (named, self.length_of_running(job, kind)) {
            (Some(named), Some(running)) => {
                let differs = named.mean > 2.0 * running.mean || running.mean > 2.0 * named.mean;
                Some(if differs { running } else { named })
            }
            (named, running) => named.or(running),
        }
    }

    fn length_of_name(&self, job: &Job, kind: TaskKind) -> Option<Length> {
        let named = self.cluster().lengths.of_name(&job.spec().name, kind)?;
        let mean = named.mean()?.0 as f64;
        Some(Length { mean, deviation: (named.longest.0 as f64 - mean) / 2.0, tasks: named.tasks as f64 })
    }

    /// Returns the length that the running tasks will have at their average rates.
    fn length_of_running(&self, job: &Job, kind: TaskKind) -> Option<Length> {
        let now = self.now();
        let live = job.attempts_of_kind(kind).filter_map(|attempt| self.attempt(attempt));
        let whole: Vec<f64> = live
            .filter_map(|attempt| Some((attempt.work_time(now) + attempt.remaining(now)?).0 as f64))
            .collect();
        let mean = whole.iter().sum::<f64>() / whole.len() as f64;
        (!whole.is_empty()).then_some(Length { mean, deviation: mean / 4.0, tasks: whole.len() as f64 })
    }

    /// Returns how many slots of a kind each job has if all that want some share them equally.
    fn equal_share(&self, kind: TaskKind) -> usize {
        let jobs = self.jobs().filter(|job| job.demand(kind) > 0).count().max(1);
        (self.slots(kind) as usize / jobs).max(1)
    }
}

impl Job {
    fn length_of_done(&self, kind: TaskKind) -> Option<Length> {
        let phase = &self.phases[kind];
        let tasks = f64::from(phase.done);
        let mean = phase.worked.0 as f64 / tasks;
        let variance = (phase.squares as f64 / tasks - mean * mean).max(0.0);
        (phase.done > 0).then_some(Length { mean, deviation: variance.sqrt(), tasks })
    }
}

/// Returns the work time that an attempt still needs: by its rate, else what it lacks to the expected length.
fn rest_of(attempt: &Attempt, now: Time, length: Length) -> f64 {
    let lacks = || (length.mean - attempt.work_time(now).0 as f64).max(0.0);
    attempt.remaining(now).map_or_else(lacks, |rest| rest.0 as f64)
}

/// Returns when the last of some tasks of equal length ends, if each slot takes one whenever it is free.
fn end_of_work(slots: &[f64], work: f64, length: f64) -> f64 {
    let length = length.max(1.0);
    let tasks = (work / length).ceil();
    if tasks == 0.0 {
        return 0.0;
    }
    let ended_by = |end: f64| slots.iter().map(|free| ((end - free) / length).floor().max(0.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, slots.iter().copied().fold(0.0, f64::max) + (tasks + 1.0) * length);
    // Each round halves the error; after forty it is below a microsecond for any job of a week.
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if ended_by(middle) >= tasks { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_take_the_slot_that_is_free_first() {
        for (slots, work, length, end) in [
            (&[0.0][..], 0.0, 10.0, 0.0),
            (&[0.0], 30.0, 10.0, 30.0),
            (&[5.0], 30.0, 10.0, 35.0),
            (&[0.0, 0.0], 30.0, 10.0, 20.0),
            (&[0.0, 5.0], 20.0, 10.0, 15.0),
            (&[0.0, 25.0], 20.0, 10.0, 20.0),
            (&[0.0; 100], 1_000.0, 10.0, 10.0),
        ] {
            let found = end_of_work(slots, work, length);
            assert!((found - end).abs() < 0.001, "{slots:?} {work}: {found}, expected {end}");
        }
    }
}
