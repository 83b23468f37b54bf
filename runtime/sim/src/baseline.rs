//! Baselines from queueing theory: divisible jobs of known length on slots that move between jobs at no cost.
//! No real policy can do this; the baselines bound what a policy can achieve.
//!
//! The fluid model: a job is an amount of map slot time followed by an amount of reduce slot time, each
//! processed by at most as many slots as there are tasks. Overheads, failures, heartbeats, slowstart, task
//! boundaries and masters are not modelled. On one slot with enough tasks this is the single server of
//! queueing theory, for which SRPT minimizes the mean sojourn time (Schrage 1968).

use std::str::FromStr;

use napreduce_engine::{JobId, Span, TaskKind, Time, listed};

use crate::job::SimulatedJob;
use crate::run::{Ending, JobResult, Run};
use crate::settings::SimulationSettings;
use crate::workload::Workload;

listed! {
    /// A service discipline.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Baseline {
        /// Processor sharing: equal parts, each limited to what the job can use.
        Ps = "ps",
        /// Shortest remaining processing time, preemptive.
        Srpt = "srpt",
        /// Shortest job first, non-preemptive.
        Sjf = "sjf",
    }
}

impl FromStr for Baseline {
    type Err = String;

    fn from_str(text: &str) -> Result<Baseline, String> {
        Baseline::of_word(text)
            .ok_or_else(|| format!("there is no baseline {text:?}; allowed: ps, srpt, sjf"))
    }
}

/// Remaining work below this many microseconds counts as zero: sums of fractions are inexact.
const NEGLIGIBLE: f64 = 1e-3;

/// A job in service.
struct ActiveJob {
    plan: SimulatedJob,
    result: JobResult,
    /// Remaining slot time of maps and reduces, and the number of slots each can use.
    left: [f64; 2],
    width: [f64; 2],
    size: f64,
    begun: bool,
    /// Slots that it has now.
    rate: f64,
}

impl ActiveJob {
    /// Returns the current phase: 0 for maps, 1 for reduces, `None` when done.
    fn phase(&self) -> Option<usize> {
        self.left.iter().position(|left| *left > NEGLIGIBLE)
    }

    fn remaining(&self) -> f64 {
        self.left[0] + self.left[1]
    }
}

/// Simulates a workload under a baseline. Chains are followed; jobs that wait for a trigger are never
/// submitted.
pub fn run_baseline(workload: Workload, settings: &SimulationSettings, baseline: Baseline) -> Run {
    let mut fluid = Fluid::new(settings, baseline);
    let mut arrivals = workload.timed.peekable();
    loop {
        let arrival = arrivals.peek().map(|job| job.submit.0 as f64);
        let next = match (arrival, fluid.next_change()) {
            (None, None) => break,
            (Some(at), None) => at,
            (None, Some(at)) => at,
            (Some(one), Some(other)) => one.min(other),
        };
        let end = settings
            .until
            .map(|until| until.0 as f64)
            .filter(|until| *until < next);
        fluid.advance(end.unwrap_or(next));
        if end.is_some() {
            break;
        }
        // Ends precede arrivals at the same time.
        fluid.remove_finished();
        while let Some(job) = arrivals.next_if(|job| job.submit.0 as f64 <= fluid.now) {
            fluid.submit(job);
        }
        fluid.serve();
    }
    let mut run = fluid.finish();
    run.never_submitted
        .extend(workload.triggered.keys().map(|name| name.to_string()));
    run
}

struct Fluid<'a> {
    settings: &'a SimulationSettings,
    baseline: Baseline,
    /// Slots for maps and reduces. Shared containers are in the first place.
    slots: [f64; 2],
    shared: bool,
    now: f64,
    jobs: Vec<ActiveJob>,
    last: u32,
    run: Run,
}

impl<'a> Fluid<'a> {
    fn new(settings: &'a SimulationSettings, baseline: Baseline) -> Fluid<'a> {
        let (map, reduce) = settings.total_slots();
        let slots = [map as f64, reduce as f64];
        let shared = settings.masters_max.is_some();
        let jobs = Vec::new();
        let run = Run::default();
        Fluid {
            settings,
            baseline,
            slots,
            shared,
            now: 0.0,
            jobs,
            last: 0,
            run,
        }
    }

    fn time(&self) -> Time {
        Time(self.now.round() as u64)
    }

    fn submit(&mut self, plan: SimulatedJob) {
        self.last += 1;
        let result = JobResult::begin(JobId(self.last), &plan, self.time(), self.settings);
        let left = TaskKind::ALL.map(|kind| plan.work(kind).0 as f64);
        let width = TaskKind::ALL.map(|kind| plan.tasks(kind) as f64);
        let size = left[0] + left[1];
        self.jobs.push(ActiveJob {
            plan,
            result,
            left,
            width,
            size,
            begun: false,
            rate: 0.0,
        });
        // A job without work ends immediately.
        self.remove_finished();
    }

    /// Returns the time of the next end or change of order without further arrivals.
    fn next_change(&self) -> Option<f64> {
        let served = self.jobs.iter().filter(|job| job.rate > 0.0);
        let ends = served.filter_map(|job| Some(self.now + job.left[job.phase()?] / job.rate));
        let changes = ends.chain(self.overtakes());
        changes.min_by(f64::total_cmp)
    }

    /// Returns the times at which a job that could use more slots gets less remaining work than another
    /// served job.
    fn overtakes(&self) -> impl Iterator<Item = f64> + '_ {
        let held_back =
            |job: &&ActiveJob| job.phase().is_some_and(|phase| job.rate < job.width[phase]);
        let shortest = self.baseline == Baseline::Srpt;
        let slow = self
            .jobs
            .iter()
            .filter(move |job| shortest && job.rate > 0.0 && held_back(job));
        slow.flat_map(move |job| {
            self.jobs.iter().filter_map(move |other| {
                let behind = job.remaining() - other.remaining();
                let closing = job.rate - other.rate;
                // Slightly later, so that the order is unambiguous.
                let overtakes = other.rate > 0.0 && behind > 0.0 && closing > 0.0;
                let at = self.now + (behind + 2.0 * NEGLIGIBLE) / closing;
                (overtakes && at > self.now).then_some(at)
            })
        })
    }

    fn advance(&mut self, to: f64) {
        let span = (to - self.now).max(0.0);
        for job in self.jobs.iter_mut().filter(|job| job.rate > 0.0) {
            let Some(phase) = job.phase() else { continue };
            let done = (job.rate * span).min(job.left[phase]);
            job.left[phase] -= done;
            // The remainder takes less time than the resolution of the clock.
            if to + job.left[phase] / job.rate <= to {
                job.left[phase] = 0.0;
            }
        }
        self.now = self.now.max(to);
    }

    fn remove_finished(&mut self) {
        let now = self.time();
        let mut place = 0;
        while let Some(job) = self.jobs.get(place) {
            if job.phase().is_some() {
                place += 1;
                continue;
            }
            let ActiveJob {
                plan, mut result, ..
            } = self.jobs.remove(place);
            result.ended = now;
            result.ending = Ending::Succeeded;
            self.run.slot_time.useful = self.run.slot_time.useful.saturating_add(result.work.0);
            self.run.jobs.push(result);
            if let Some(mut followers) = plan.followed_by
                && let Some(mut next) = followers.jobs.pop_front()
            {
                // The last job inherits the deadline of the chain, counted from the first submission.
                let begun = now.since(plan.submit);
                let left = followers
                    .deadline
                    .map(|deadline| Span(deadline.0.saturating_sub(begun.0)));
                next.submit = now;
                if followers.jobs.is_empty() {
                    next.deadline = left;
                } else {
                    followers.deadline = left;
                    next.followed_by = Some(followers);
                }
                self.submit(next);
            }
        }
    }

    /// Reassigns all slots.
    fn serve(&mut self) {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        let key = |job: &ActiveJob| match self.baseline {
            Baseline::Ps => (false, 0.0),
            Baseline::Srpt => (false, job.remaining()),
            Baseline::Sjf => (!job.begun, job.size),
        };
        let keys: Vec<(bool, f64)> = self.jobs.iter().map(key).collect();
        order.sort_by(|one, other| {
            let (first, length) = keys[*one];
            let (second, than) = keys[*other];
            first.cmp(&second).then(length.total_cmp(&than))
        });
        for job in &mut self.jobs {
            job.rate = 0.0;
        }
        let pools: &[&[usize]] = if self.shared {
            &[&[0, 1]]
        } else {
            &[&[0], &[1]]
        };
        for (slots, phases) in self.slots.into_iter().zip(pools) {
            let in_pool = |place: &usize| {
                self.jobs[*place]
                    .phase()
                    .is_some_and(|phase| phases.contains(&phase))
            };
            let wanting: Vec<usize> = order.iter().copied().filter(in_pool).collect();
            match self.baseline {
                Baseline::Ps => self.share_equally(wanting, slots),
                Baseline::Srpt | Baseline::Sjf => self.share_in_order(wanting, slots),
            }
        }
        for job in self.jobs.iter_mut().filter(|job| job.rate > 0.0) {
            job.begun = true;
            let first = job
                .result
                .worked
                .map_or(Time(self.now.round() as u64), |(first, _)| first);
            job.result.worked = Some((first, Time(self.now.round() as u64)));
        }
    }

    fn width(&self, place: usize) -> f64 {
        let job = &self.jobs[place];
        job.phase().map_or(0.0, |phase| job.width[phase])
    }

    fn share_in_order(&mut self, wanting: Vec<usize>, mut slots: f64) {
        for place in wanting {
            let rate = self.width(place).min(slots);
            self.jobs[place].rate = rate;
            slots -= rate;
        }
    }

    /// Divides slots equally; what narrow jobs cannot use goes to the others.
    fn share_equally(&mut self, mut wanting: Vec<usize>, mut slots: f64) {
        wanting.sort_by(|one, other| self.width(*one).total_cmp(&self.width(*other)));
        let count = wanting.len();
        for (before, place) in wanting.into_iter().enumerate() {
            let rate = self.width(place).min(slots / (count - before) as f64);
            self.jobs[place].rate = rate;
            slots -= rate;
        }
    }

    fn finish(mut self) -> Run {
        self.run.unfinished = self.jobs.len();
        self.run.unfinished_names = self.jobs.iter().map(|job| job.plan.name.clone()).collect();
        self.run.ended = self.time();
        self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use napreduce_engine::Slots;

    /// Checks the end times of jobs on two map slots and one reduce slot, in seconds by name.
    #[track_caller]
    fn check(baseline: Baseline, jobs: Vec<SimulatedJob>, expected: &[(&str, f64)]) {
        let settings = SimulationSettings::new(1, Slots { map: 2, reduce: 1 });
        let run = run_baseline(Workload::of(jobs), &settings, baseline);
        let ends: Vec<(&str, f64)> = run
            .jobs
            .iter()
            .map(|job| (&*job.name, job.ended.0 as f64 / 1e6))
            .collect();
        assert_eq!(ends, expected, "{baseline}");
    }

    fn job(name: &str, submit: u64, maps: u32, reduces: u32, seconds: u64) -> SimulatedJob {
        let length = Span::from_secs(seconds);
        let job =
            SimulatedJob::new(name, Time(0) + Span::from_secs(submit)).with_maps(maps, length);
        job.with_reduces(reduces, Span(0), length)
    }

    #[test]
    fn ps_divides_equally_and_reassigns_excess() {
        check(
            Baseline::Ps,
            vec![job("a", 0, 4, 0, 6), job("b", 0, 4, 0, 3)],
            &[("b", 12.0), ("a", 18.0)],
        );
        check(
            Baseline::Ps,
            vec![job("wide", 0, 9, 0, 3), job("one", 0, 1, 0, 3)],
            &[("one", 3.0), ("wide", 15.0)],
        );
    }

    #[test]
    fn srpt_preempts_and_sjf_does_not() {
        let jobs = vec![job("long", 0, 10, 0, 4), job("short", 5, 2, 0, 3)];
        check(
            Baseline::Srpt,
            jobs.clone(),
            &[("short", 8.0), ("long", 23.0)],
        );
        check(Baseline::Sjf, jobs, &[("long", 20.0), ("short", 23.0)]);
    }

    #[test]
    fn srpt_reorders_when_remaining_work_crosses() {
        // At 2 s both jobs have 8 s left; the wide one has been faster with two slots and gets all three from
        // then on.
        let jobs = vec![job("narrow", 0, 1, 0, 10), job("wide", 0, 4, 0, 3)];
        let settings = SimulationSettings::new(1, Slots { map: 3, reduce: 1 });
        let run = run_baseline(Workload::of(jobs), &settings, Baseline::Srpt);
        let near = |name: &str, seconds: f64| {
            let ended = run.job(name).expect("the job ended").ended.0 as f64 / 1e6;
            assert!(
                (ended - seconds).abs() < 1e-5,
                "{name} ends at {ended}, not at {seconds}"
            );
        };
        near("wide", 2.0 + 8.0 / 3.0);
        near("narrow", 2.0 + 8.0 / 3.0 + 8.0);
    }

    #[test]
    fn sjf_starts_smallest_waiting_job() {
        let jobs = vec![
            job("first", 0, 2, 0, 5),
            job("large", 1, 2, 0, 9),
            job("small", 2, 2, 0, 1),
        ];
        check(
            Baseline::Sjf,
            jobs,
            &[("first", 5.0), ("small", 6.0), ("large", 15.0)],
        );
    }

    #[test]
    fn maps_run_concurrently_with_reduces_of_other_job() {
        let jobs = vec![job("a", 0, 2, 1, 4), job("b", 0, 2, 1, 5)];
        check(Baseline::Srpt, jobs, &[("a", 8.0), ("b", 14.0)]);
    }

    #[test]
    fn empty_job_ends_immediately_and_bound_stops_run() {
        check(
            Baseline::Ps,
            vec![job("none", 3, 2, 0, 0)],
            &[("none", 3.0)],
        );
        let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
        settings.until = Some(Time(0) + Span::from_secs(5));
        let run = run_baseline(
            Workload::of(vec![job("long", 0, 1, 0, 9)]),
            &settings,
            Baseline::Srpt,
        );
        assert_eq!(
            (run.unfinished, &*run.unfinished_names[0], run.ended),
            (1, "long", Time(5_000_000))
        );
    }

    #[test]
    fn names_round_trip() {
        for baseline in Baseline::ALL {
            assert_eq!(baseline.in_words().parse(), Ok(baseline));
        }
        assert!(
            "fifo"
                .parse::<Baseline>()
                .expect_err("the name is unknown")
                .contains("allowed: ps, srpt, sjf")
        );
    }
}
