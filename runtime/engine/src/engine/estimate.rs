//! When a job will be done, estimated from the lengths of its tasks and the slots that its policy gives it.
//!
//! The length of a running task comes from its own rate and from the finished tasks of its phase; that of a
//! waiting task from the finished ones and what the running ones are expected to take, else from the last job
//! of the same name, else from the rates of the running ones. Slots follow the order of the policy. The
//! estimate comes from a fixed number of drawn courses of the job: a little more than their median, since
//! lengths are skewed. The range leaves out the extremes. It is made so that it holds the time that jobs really take in four of five cases.
//!
//! Lengths are logistic, because then the time left of a running task falls while it runs, however long it has
//! run. So an estimate falls with the clock between events. A task that has run longer than any such task
//! plausibly does tells nothing about its end: then there is no estimate, unless the other tasks take longer
//! anyway. The range of a job with a late task has a longer upper end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::cluster::{Attempt, ClusterView, Job};
use crate::engine::Engine;
use crate::ids::{JobId, TaskKind};
use crate::scheduler::Scheduler;
use crate::states::JobState;
use crate::time::{Span, Time};

/// The estimated time until a job is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLeft {
    /// The job takes at least this long, in nine of ten cases.
    pub least: Span,
    pub likely: Span,
    /// The job takes at most this long, in nine of ten cases.
    pub most: Span,
}

/// How many courses of a job are drawn.
const DRAWS: usize = 40;

/// How many tasks of a phase are drawn one by one; of more, the first ones take their mean.
const TASKS_DRAWN: usize = 400;

/// The weight of the assumed deviation, in tasks.
const ASSUMED_TASKS: f64 = 2.0;

/// The assumed deviation of lengths, relative to their mean.
const ASSUMED_DEVIATION: f64 = 0.3;

/// How often the expected lengths of running tasks are refined.
const PASSES: usize = 5;

/// A task that is late, with nothing that tells why, seldom takes more than so many times as long again.
const LATE_LASTS: f64 = 4.0;

/// Two lengths contradict each other if they differ by more than so many deviations.
const CONTRADICTION: f64 = 2.0;

/// A task is late if fewer than this share of such tasks run longer. Then only its own rate counts for it.
const LATE: f64 = 0.05;

/// A task has run implausibly long if fewer than this share of such tasks run longer.
const IMPLAUSIBLE: f64 = 0.01;

/// No estimate of a running job is shorter, in microseconds: its last task has to end and to be reported.
const SHORTEST: f64 = 100_000.0;

/// The deviation that is due to the start and the report of a task, in microseconds.
const REPORT_DEVIATION: f64 = 150_000.0;

/// The expected work time of a task, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Length {
    mean: f64,
    deviation: f64,
}

/// The expected length of the tasks of a phase.
#[derive(Debug, Clone, Copy)]
struct Basis {
    length: Length,
    /// The same without the running tasks, which is what a running task's own rate is compared with.
    of_others: Length,
    /// The deviation of the mean itself, relative to it.
    doubt: f64,
}

/// A task that has an attempt.
#[derive(Debug, Clone, Copy)]
struct BegunTask {
    index: u32,
    length: Length,
    worked: f64,
    /// Whether the length is based on other tasks, so that it shares their doubt.
    is_by_others: bool,
    holds_slot: bool,
}

/// The slots of a kind that a job gets from its policy.
#[derive(Debug, Clone, Copy)]
struct Turn {
    slots: usize,
    /// When waiting tasks begin to get slots, in microseconds.
    wait: f64,
    /// Whether the number is certain: no other job shares the slots.
    is_alone: bool,
}

/// A phase of a job as it is now.
#[derive(Debug)]
struct PhasePlan {
    kind: TaskKind,
    begun: Vec<BegunTask>,
    waiting: usize,
    basis: Basis,
    turn: Turn,
    has_free_slots: bool,
    launch: f64,
    /// The longest work time of a task that has run implausibly long.
    overdue: f64,
    /// The longest work time, at the last event, of a task that was late then.
    late_before: f64,
}

impl Engine {
    /// Estimates when a job will be done, from `now` on; `now` is not before the last event. Returns `None`
    /// while it waits for slots, is paused or suspended, and while too little is known about its tasks.
    ///
    /// Between events the estimate falls with the clock, and becomes `None` when a task runs longer than such
    /// tasks plausibly do.
    pub fn time_left(&self, job: JobId, now: Time) -> Option<TimeLeft> {
        let view = self.view();
        let job = view.job(job)?;
        if job.state() != JobState::Active
            || job.pause().is_some()
            || job.attempts().next().is_none()
        {
            return None;
        }
        let now = now.max(view.now());
        let estimator = Estimator {
            view: &view,
            policy: &*self.scheduler,
            job,
            now,
        };
        let mut phases = Vec::new();
        for kind in TaskKind::ALL {
            if job.tasks_done(kind) < job.tasks_total(kind) {
                phases.push(estimator.plan(kind)?);
            }
        }
        if phases.is_empty() {
            return None;
        }
        let mut ends: Vec<f64> = Vec::with_capacity(DRAWS);
        for draw in 0..DRAWS {
            ends.push(phases.iter().map(|phase| phase.end(draw)).sum());
        }
        ends.sort_by(f64::total_cmp);
        let likely = ends[DRAWS / 2 + DRAWS / 20];
        let overdue = phases.iter().map(|phase| phase.overdue).fold(0.0, f64::max);
        if likely < overdue {
            return None;
        }
        let likely = likely.max(SHORTEST);
        let outside = DRAWS / 20;
        let least = (ends[outside] * 0.95).clamp(SHORTEST / 2.0, likely);
        let most = (ends[DRAWS - 1 - outside] * 1.1 + 2.0 * SHORTEST).max(likely);
        let late_before = phases
            .iter()
            .map(|phase| phase.late_before)
            .fold(0.0, f64::max);
        let since_event = now.since(view.now()).0 as f64;
        // The range takes in what late tasks may still take. It is settled at the last event, so it falls too.
        let most = most.max(LATE_LASTS * late_before - since_event);
        let span = |micros: f64| Span(micros as u64);
        Some(TimeLeft {
            least: span(least),
            likely: span(likely),
            most: span(most),
        })
    }
}

/// One look at a job.
struct Estimator<'a> {
    view: &'a ClusterView<'a>,
    policy: &'a dyn Scheduler,
    job: &'a Job,
    now: Time,
}

impl Estimator<'_> {
    fn plan(&self, kind: TaskKind) -> Option<PhasePlan> {
        let job = self.job;
        let needs_maps = kind == TaskKind::Reduce && !job.has_had_every_map();
        let basis = self.basis(job, kind, needs_maps);
        let undone = job.tasks_total(kind) - job.tasks_done(kind);
        let mut begun = Vec::new();
        let mut overdue = 0.0_f64;
        let mut late_before = 0.0_f64;
        let since_event = self.now.since(self.view.now()).0 as f64;
        for attempt in live(self.view, job, kind) {
            let task = self.begun(attempt, basis, needs_maps)?;
            if task.is_overdue() {
                overdue = overdue.max(task.worked);
            }
            let worked_before = task.worked - since_event;
            if task.length.survival(worked_before) < LATE {
                late_before = late_before.max(worked_before);
            }
            begun.push(task);
        }
        let waiting = (undone as usize).saturating_sub(begun.len());
        let basis = basis.or_else(|| {
            // Every task of the phase has a rate.
            let length = begun.first()?.length;
            (waiting == 0).then_some(Basis::new(length, ASSUMED_DEVIATION))
        })?;
        let turn = self.turn(kind, waiting)?;
        let holds = begun.iter().filter(|task| task.holds_slot).count();
        if holds == 0 && turn.slots == 0 {
            return None;
        }
        Some(PhasePlan {
            kind,
            begun,
            waiting,
            basis,
            turn,
            has_free_slots: self.view.free_slots(kind) > 0,
            launch: self
                .view
                .costs(kind)
                .launch
                .map_or(0.0, |span| span.0 as f64),
            overdue,
            late_before,
        })
    }

    /// Returns an attempt as a task of its phase; `None` if nothing is known about its length.
    fn begun(
        &self,
        attempt: &Attempt,
        basis: Option<Basis>,
        needs_maps: bool,
    ) -> Option<BegunTask> {
        let index = attempt.id().task.index;
        let holds_slot = attempt.holds_slot();
        if needs_maps {
            let length = basis?.length;
            return Some(BegunTask {
                index,
                length,
                worked: 0.0,
                is_by_others: true,
                holds_slot,
            });
        }
        let worked = attempt.work_with_inputs(self.now).0 as f64;
        let by_rate = length_by_rate(attempt, self.now);
        let (length, is_by_others) = match (by_rate, basis) {
            (None, None) => return None,
            (None, Some(basis)) => (basis.length, true),
            (Some(by_rate), Some(basis)) => (by_rate.given(basis.of_others, worked), false),
            (Some(by_rate), None) => (by_rate, false),
        };
        Some(BegunTask {
            index,
            length,
            worked,
            is_by_others,
            holds_slot,
        })
    }

    /// Returns the expected length of tasks of a kind: that of the job's finished tasks, else of the last job
    /// of its name, else of its running tasks. If the last job and the running tasks differ by more than a
    /// factor of two, the running tasks count, else both. For reduces that need maps, nothing but the maps may
    /// be known.
    fn basis(&self, job: &Job, kind: TaskKind, needs_maps: bool) -> Option<Basis> {
        let sums = job.phases[kind].sums;
        let done = f64::from(job.tasks_done(kind));
        if let Some(finished) = Length::of_tasks(done, sums.worked, sums.waited, sums.squares) {
            let length = self.with_running(job, kind, finished, done);
            let doubt = length.deviation / length.mean.max(1.0) / done.sqrt();
            return Some(Basis {
                length,
                of_others: finished,
                doubt,
            });
        }
        let named = self.view.cluster().lengths.of_name(&job.spec().name, kind);
        let named = named.and_then(|named| {
            let squares = u128::from(named.squares) * 1_000_000;
            let length = Length::of_tasks(named.tasks as f64, named.total, named.waited, squares)?;
            Some(Basis::new(length, 0.15))
        });
        if needs_maps {
            return named.or_else(|| {
                let maps = self.basis(job, TaskKind::Map, false)?.length;
                let length = Length {
                    deviation: maps.mean / 2.0,
                    ..maps
                };
                Some(Basis::new(length, 0.5))
            });
        }
        match (named, self.basis_of_running(job, kind)) {
            (Some(named), Some(running)) => {
                let ratio = named.length.mean / running.length.mean.max(1.0);
                if !(0.5..=2.0).contains(&ratio) {
                    return Some(running);
                }
                let mean = f64::midpoint(named.length.mean, running.length.mean);
                Some(Basis::new(
                    Length {
                        mean,
                        ..named.length
                    },
                    named.doubt,
                ))
            }
            (named, running) => named.or(running),
        }
    }

    /// Returns the length of the finished tasks and the running ones together. The first tasks to finish are the
    /// shortest, so a running task counts with the length that it is expected to have. It is constant between
    /// events.
    fn with_running(&self, job: &Job, kind: TaskKind, finished: Length, done: f64) -> Length {
        let at = self.view.now();
        let running: Vec<(f64, Option<Length>)> = live(self.view, job, kind)
            .map(|attempt| {
                (
                    attempt.work_with_inputs(at).0 as f64,
                    length_by_rate(attempt, at),
                )
            })
            .collect();
        let count = done + running.len() as f64;
        let mut length = finished;
        for _ in 0..PASSES {
            let mut sum = done * finished.mean;
            let mut squares = done * finished.square();
            for &(worked, by_rate) in &running {
                let expected = match by_rate {
                    Some(own) => own.given(finished, worked),
                    None => length.beyond(worked),
                };
                sum += expected.mean;
                squares += expected.square();
            }
            let mean = sum / count;
            let variance = (squares / count - mean * mean).max(0.0);
            length = Length {
                mean,
                deviation: variance.sqrt(),
            };
        }
        length
    }

    /// Returns the length that the running tasks will have at their average rates.
    fn basis_of_running(&self, job: &Job, kind: TaskKind) -> Option<Basis> {
        let lengths: Vec<Length> = live(self.view, job, kind)
            .filter_map(|attempt| length_by_rate(attempt, self.now))
            .collect();
        if lengths.is_empty() {
            return None;
        }
        let mean = lengths.iter().map(|length| length.mean).sum::<f64>() / lengths.len() as f64;
        let deviation = mean * ASSUMED_DEVIATION + REPORT_DEVIATION;
        Some(Basis::new(
            Length { mean, deviation },
            ASSUMED_DEVIATION / 2.0,
        ))
    }

    /// Returns the slots that the job gets: those that the jobs before it leave, in equal shares with the jobs
    /// that have the same claim. If they leave none, it gets slots when their waiting tasks have begun.
    /// Returns `None` if that cannot be told.
    fn turn(&self, kind: TaskKind, waiting: usize) -> Option<Turn> {
        let job = self.job;
        let mut total = u64::from(self.view.slots(kind));
        if self.view.shares_slots() {
            let used = match kind {
                TaskKind::Map => self.view.used(TaskKind::Reduce),
                // Its reduces get the containers of its maps.
                TaskKind::Reduce => self
                    .view
                    .used(TaskKind::Map)
                    .saturating_sub(job.holding(TaskKind::Map)),
            };
            total = total.saturating_sub(u64::from(used));
        }
        let mut before = 0;
        let mut work_before = Some(0.0);
        let mut others: Vec<u64> = Vec::new();
        for other in self.view.jobs() {
            let demand = u64::from(other.demand(kind));
            if other.id() == job.id() || demand == 0 || other.pause().is_some() {
                continue;
            }
            if self.policy.is_before(kind, other, job) {
                before += demand;
                let waits = f64::from(other.demand(kind).saturating_sub(other.holding(kind)));
                let mean = self
                    .basis(other, kind, false)
                    .map(|basis| basis.length.mean);
                let mean = if waits == 0.0 { Some(0.0) } else { mean };
                work_before = work_before.zip(mean).map(|(sum, mean)| sum + waits * mean);
            } else if !self.policy.is_before(kind, job, other) {
                others.push(demand);
            }
        }
        let left = total.saturating_sub(before);
        let is_alone = others.is_empty() && before == 0;
        if left > 0 || waiting == 0 {
            let slots = equal_share(left, others).max(u64::from(waiting > 0));
            return Some(Turn {
                slots: slots as usize,
                wait: 0.0,
                is_alone,
            });
        }
        let wait = work_before? / (total.max(1) as f64);
        Some(Turn {
            slots: equal_share(total, others).max(1) as usize,
            wait,
            is_alone,
        })
    }
}

/// Returns a job's part of some slots that it shares equally with jobs of these demands.
fn equal_share(slots: u64, mut demands: Vec<u64>) -> u64 {
    demands.sort_unstable();
    let mut left = slots;
    let mut jobs = demands.len() as u64 + 1;
    for demand in demands {
        if demand >= left / jobs {
            break;
        }
        left -= demand;
        jobs -= 1;
    }
    left.div_ceil(jobs)
}

/// Returns the attempts of a kind that count for the time left.
fn live<'a>(
    view: &'a ClusterView<'_>,
    job: &'a Job,
    kind: TaskKind,
) -> impl Iterator<Item = &'a Attempt> {
    let attempts = job
        .attempts_of_kind(kind)
        .filter_map(|attempt| view.attempt(attempt));
    attempts.filter(|attempt| attempt.duplicate_of().is_none() && !attempt.superseded)
}

/// Returns the length that an attempt will have at its average rate. The less of its input is consumed, the
/// less certain it is.
fn length_by_rate(attempt: &Attempt, now: Time) -> Option<Length> {
    let projection = attempt.projection(now)?;
    let mean = projection.length.0 as f64;
    let rest = projection.remaining.0 as f64;
    let deviation = rest * (0.1 + 0.3 * (1.0 - projection.share)) + REPORT_DEVIATION;
    Some(Length { mean, deviation })
}

impl Basis {
    fn new(length: Length, doubt: f64) -> Basis {
        Basis {
            length,
            of_others: length,
            doubt,
        }
    }
}

impl Length {
    /// Returns the length by some finished tasks. Few tasks tell little about the deviation.
    fn of_tasks(tasks: f64, worked: Span, waited: Span, squares: u128) -> Option<Length> {
        if tasks == 0.0 {
            return None;
        }
        let mean = worked.0.saturating_sub(waited.0) as f64 / tasks;
        let variance = (squares as f64 / tasks - mean * mean).max(0.0);
        let assumed = (mean * ASSUMED_DEVIATION).powi(2);
        let variance = (variance * tasks + assumed * ASSUMED_TASKS) / (tasks + ASSUMED_TASKS);
        Some(Length {
            mean,
            deviation: variance.sqrt() + REPORT_DEVIATION,
        })
    }

    /// Returns the length by two independent sources, each with the weight of its certainty.
    fn combine(self, other: Length) -> Length {
        let own = 1.0 / self.deviation.max(1.0).powi(2);
        let others = 1.0 / other.deviation.max(1.0).powi(2);
        let mean = (self.mean * own + other.mean * others) / (own + others);
        Length {
            mean,
            deviation: (1.0 / (own + others)).sqrt(),
        }
    }

    /// Returns the length of a task that has its own rate, if such tasks take the other length. The other one
    /// does not count for a task that is late by it, or whose own rate contradicts it.
    fn given(self, other: Length, worked: f64) -> Length {
        let difference = (self.mean - other.mean).abs();
        let plausible = CONTRADICTION * self.deviation.hypot(other.deviation);
        if other.survival(worked) <= LATE || difference > plausible {
            self
        } else {
            self.combine(other)
        }
    }

    /// Returns the expected length of those tasks that take longer than `worked`, with the same deviation.
    fn beyond(self, worked: f64) -> Length {
        let scale = self.scale();
        let ahead = (self.mean - worked) / scale;
        if ahead < -20.0 {
            return Length {
                mean: worked + scale,
                ..self
            };
        }
        let excess = ahead.max(0.0) + (-ahead.abs()).exp().ln_1p();
        let rest = scale * excess / self.survival(worked);
        Length {
            mean: worked + rest,
            ..self
        }
    }

    /// Returns the mean of the squares of such lengths.
    fn square(self) -> f64 {
        self.mean * self.mean + self.deviation * self.deviation
    }

    fn scale(self) -> f64 {
        self.deviation.max(1.0) * 3.0_f64.sqrt() / std::f64::consts::PI
    }

    /// Returns the share of such tasks that take longer.
    fn survival(self, micros: f64) -> f64 {
        1.0 / (1.0 + ((micros - self.mean) / self.scale()).exp())
    }

    /// Returns the length that a share of those tasks do not exceed that take longer than `worked`.
    fn quantile_beyond(self, worked: f64, share: f64) -> f64 {
        let longer = self.survival(worked) * (1.0 - share);
        let longer = longer.clamp(1e-9, 1.0 - 1e-9);
        self.mean + self.scale() * ((1.0 - longer) / longer).ln()
    }

    fn times(self, factor: f64) -> Length {
        Length {
            mean: self.mean * factor,
            deviation: self.deviation * factor,
        }
    }
}

impl BegunTask {
    fn is_overdue(&self) -> bool {
        self.length.survival(self.worked) < IMPLAUSIBLE
    }

    /// Returns the time left in one course of the job.
    fn rest(&self, factor: f64, share: f64) -> f64 {
        let length = if self.is_by_others {
            self.length.times(factor)
        } else {
            self.length
        };
        (length.quantile_beyond(self.worked, share) - self.worked).max(0.0)
    }
}

impl PhasePlan {
    /// Returns when the phase ends in one course of the job, in microseconds from now.
    fn end(&self, draw: usize) -> f64 {
        let factor = self.factor(draw);
        let mut slots: Vec<f64> = Vec::new();
        let mut rests: Vec<f64> = Vec::new();
        let mut end = 0.0_f64;
        for task in &self.begun {
            let rest = task.rest(factor, uniform(self.kind, draw, task.index));
            if task.holds_slot {
                end = end.max(rest);
                slots.push(rest);
            } else {
                rests.push(rest + self.launch);
            }
        }
        if self.waiting == 0 && rests.is_empty() {
            return end;
        }
        let length = self.basis.length.times(factor);
        self.settle_slots(&mut slots, draw, length.mean);
        let drawn = self.waiting.min(TASKS_DRAWN);
        let in_bulk =
            (self.waiting - drawn) as f64 * (length.mean + self.launch) / slots.len() as f64;
        for number in 0..drawn {
            let share = uniform(self.kind, draw, u32::MAX - number as u32);
            let whole = length
                .quantile_beyond(f64::NEG_INFINITY, share)
                .max(length.mean * 0.1);
            rests.push(whole + self.launch);
        }
        let mut free: BinaryHeap<Reverse<u64>> = slots
            .into_iter()
            .map(|slot| Reverse((slot + in_bulk) as u64))
            .collect();
        for rest in rests {
            let Some(Reverse(slot)) = free.pop() else {
                break;
            };
            let done = slot + rest as u64;
            end = end.max(done as f64);
            free.push(Reverse(done));
        }
        end
    }

    /// Makes the slots of running tasks those that waiting tasks get, with the times when they become free. A
    /// number that other jobs may change is somewhere between those it holds and its share.
    fn settle_slots(&self, slots: &mut Vec<f64>, draw: usize, mean: f64) {
        let held = slots.len() as f64;
        let share = self.turn.slots as f64;
        let certainty = if self.turn.is_alone {
            1.0
        } else {
            uniform(self.kind, draw, u32::MAX / 2)
        };
        let number = (held + (share - held) * certainty).round().max(1.0) as usize;
        slots.sort_by(f64::total_cmp);
        if self.turn.wait > 0.0 {
            slots
                .iter_mut()
                .for_each(|slot| *slot = slot.max(self.turn.wait));
        }
        if number < slots.len() {
            // Other jobs get the slots that become free first.
            slots.drain(..slots.len() - number);
            return;
        }
        let free = if self.has_free_slots { 0.0 } else { mean / 2.0 };
        slots.resize(number, free.max(self.turn.wait));
    }

    /// Returns by how much the tasks of the phase differ from their expected length together.
    fn factor(&self, draw: usize) -> f64 {
        let share = uniform(self.kind, draw, u32::MAX / 2 + 1).clamp(0.01, 0.99);
        let scale = self.basis.doubt * 3.0_f64.sqrt() / std::f64::consts::PI;
        (1.0 + scale * (share / (1.0 - share)).ln()).clamp(0.2, 5.0)
    }
}

/// Returns a number between 0 and 1 that depends on these values alone, so that the same tasks take the same
/// share of the possible time at every look.
fn uniform(kind: TaskKind, draw: usize, number: u32) -> f64 {
    let kind = u64::from(kind == TaskKind::Reduce);
    let place = (u64::from(number) << 8) | draw as u64;
    let mut mixed = (place << 1) | kind;
    mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_falls_while_the_task_runs() {
        for (mean, deviation) in [(10.0, 0.1), (10.0, 3.0), (10.0, 9.0)] {
            let length = Length { mean, deviation };
            for share in [0.01, 0.5, 0.99] {
                let rest = |tenth: i32| {
                    let worked = f64::from(tenth) / 10.0;
                    length.quantile_beyond(worked, share) - worked
                };
                assert!(
                    (0..300).all(|tenth| rest(tenth + 1) <= rest(tenth) + 1e-6),
                    "{length:?} {share}"
                );
            }
        }
    }

    #[test]
    fn expected_length_grows_with_the_work_so_far() {
        for deviation in [0.1, 3.0, 9.0] {
            let length = Length {
                mean: 10.0e6,
                deviation: deviation * 1e6,
            };
            let beyond = |seconds: i32| length.beyond(f64::from(seconds) * 1e6).mean;
            assert!(beyond(-100) >= length.mean, "{deviation}: {}", beyond(-100));
            assert!(
                (beyond(-100) - length.mean).abs() < 1.0,
                "{deviation}: {}",
                beyond(-100)
            );
            assert!(
                (-100..100).all(|second| beyond(second) <= beyond(second + 1) + 1.0),
                "{deviation}"
            );
            let rest = beyond(200) - 200e6;
            assert!((rest - length.scale()).abs() < 1.0, "{deviation}: {rest}");
        }
    }

    #[test]
    fn share_of_small_demands_is_left_to_the_others() {
        assert_eq!(equal_share(10, vec![]), 10);
        assert_eq!(equal_share(10, vec![100]), 5);
        assert_eq!(equal_share(10, vec![1, 100]), 5);
        assert_eq!(equal_share(10, vec![1, 1]), 8);
        assert_eq!(equal_share(1, vec![1, 1]), 1);
    }

    #[test]
    fn waiting_tasks_take_the_slot_that_is_free_first() {
        let length = Length {
            mean: 10e6,
            deviation: 1.0,
        };
        let plan = |waiting, slots| PhasePlan {
            kind: TaskKind::Map,
            begun: Vec::new(),
            waiting,
            basis: Basis::new(length, 0.0),
            turn: Turn {
                slots,
                wait: 0.0,
                is_alone: true,
            },
            has_free_slots: true,
            launch: 0.0,
            overdue: 0.0,
            late_before: 0.0,
        };
        for (waiting, slots, seconds) in [
            (1, 1, 10),
            (3, 1, 30),
            (4, 2, 20),
            (5, 2, 30),
            (1_000, 100, 100),
        ] {
            let end = plan(waiting, slots).end(0);
            assert!(
                (end / 1e6 - f64::from(seconds)).abs() < 0.1,
                "{waiting} on {slots}: {end}"
            );
        }
    }
}
