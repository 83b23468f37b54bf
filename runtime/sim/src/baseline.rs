//! Baselines of theory: jobs that can be divided at will and know their lengths, on slots that can be taken
//! and given back for nothing. No policy of a cluster is one of them; they say how far one is from what could
//! be wished for.
//!
//! Owns the fluid model: a job is its maps and then its reduces, each an amount of slot time of which at most
//! as many slots as there are tasks can work at once. Overheads, failures, heartbeats, slowstart and whole
//! tasks are left out, and so are masters. On one slot, with as many tasks as one likes, it is the single
//! server of queueing theory, where SRPT has the least mean sojourn (Schrage 1968). Does not own policies:
//! those are simulated task by task.

use std::str::FromStr;

use napreduce_engine::{JobId, Span, TaskKind, Time, listed};

use crate::job::SimulatedJob;
use crate::run::{Ending, JobResult, Run};
use crate::settings::SimulationSettings;
use crate::workload::Workload;

listed! {
    /// Who is served.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Baseline {
        /// Processor sharing: equal parts, but nobody more than it can use.
        Ps = "ps",
        /// Shortest remaining processing time: who has least left, preempting.
        Srpt = "srpt",
        /// Shortest job first: who is smallest of those that have not begun; who has begun goes on.
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

/// Less than this many microseconds of work is none: sums of fractions are not exact.
const NOTHING: f64 = 1e-3;

/// A job in service.
struct Served {
    plan: SimulatedJob,
    result: JobResult,
    /// Slot time that is left of its maps and of its reduces, and how many slots can work at them.
    left: [f64; 2],
    width: [f64; 2],
    size: f64,
    begun: bool,
    /// Slots that it has now.
    rate: f64,
}

impl Served {
    /// What it works at: 0 its maps, 1 its reduces, nothing when it is done.
    fn phase(&self) -> Option<usize> {
        self.left.iter().position(|left| *left > NOTHING)
    }

    fn remaining(&self) -> f64 {
        self.left[0] + self.left[1]
    }
}

/// What comes of a workload. Chains are followed; jobs that wait for a trigger are never submitted.
pub fn run_baseline(workload: Workload, settings: &SimulationSettings, baseline: Baseline) -> Run {
    let mut fluid = Fluid::new(settings, baseline);
    let mut coming = workload.timed.peekable();
    loop {
        let arrival = coming.peek().map(|job| job.submit.0 as f64);
        let next = match (arrival, fluid.next_change()) {
            (None, None) => break,
            (Some(at), None) => at,
            (None, Some(at)) => at,
            (Some(one), Some(other)) => one.min(other),
        };
        let end = settings.until.map(|until| until.0 as f64).filter(|until| *until < next);
        fluid.advance(end.unwrap_or(next));
        if end.is_some() {
            break;
        }
        // What ends at a time goes before what comes then.
        fluid.take_ended();
        while let Some(job) = coming.next_if(|job| job.submit.0 as f64 <= fluid.now) {
            fluid.submit(job);
        }
        fluid.serve();
    }
    let mut run = fluid.finish();
    run.never_submitted.extend(workload.triggered.keys().map(|name| name.to_string()));
    run
}

struct Fluid<'a> {
    settings: &'a SimulationSettings,
    baseline: Baseline,
    /// Slots for maps and for reduces; containers are for both, and stand in the first place alone.
    slots: [f64; 2],
    shared: bool,
    now: f64,
    jobs: Vec<Served>,
    last: u32,
    run: Run,
}

impl<'a> Fluid<'a> {
    fn new(settings: &'a SimulationSettings, baseline: Baseline) -> Fluid<'a> {
        let (map, reduce) = settings.slots_in_all();
        let (slots, shared) = ([map as f64, reduce as f64], settings.masters_max.is_some());
        let (jobs, run) = (Vec::new(), Run::default());
        Fluid { settings, baseline, slots, shared, now: 0.0, jobs, last: 0, run }
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
        self.jobs.push(Served { plan, result, left, width, size, begun: false, rate: 0.0 });
        // One without any work is done at once.
        self.take_ended();
    }

    /// When something ends or another order would hold, if nothing comes before.
    fn next_change(&self) -> Option<f64> {
        let served = self.jobs.iter().filter(|job| job.rate > 0.0);
        let ends = served.filter_map(|job| Some(self.now + job.left[job.phase()?] / job.rate));
        let changes = ends.chain(self.overtakings());
        changes.min_by(f64::total_cmp)
    }

    /// When one job that could use more slots comes to have less left than another one that is served.
    fn overtakings(&self) -> impl Iterator<Item = f64> + '_ {
        let held_back = |job: &&Served| job.phase().is_some_and(|phase| job.rate < job.width[phase]);
        let shortest = self.baseline == Baseline::Srpt;
        let slow = self.jobs.iter().filter(move |job| shortest && job.rate > 0.0 && held_back(job));
        slow.flat_map(move |job| {
            self.jobs.iter().filter_map(move |other| {
                let (behind, closing) = (job.remaining() - other.remaining(), job.rate - other.rate);
                // A little later, so that there is no doubt who has less.
                let overtakes = other.rate > 0.0 && behind > 0.0 && closing > 0.0;
                let at = self.now + (behind + 2.0 * NOTHING) / closing;
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
            // What is left takes less time than can be told apart at this time.
            if to + job.left[phase] / job.rate <= to {
                job.left[phase] = 0.0;
            }
        }
        self.now = self.now.max(to);
    }

    fn take_ended(&mut self) {
        let now = self.time();
        let mut place = 0;
        while let Some(job) = self.jobs.get(place) {
            if job.phase().is_some() {
                place += 1;
                continue;
            }
            let Served { plan, mut result, .. } = self.jobs.remove(place);
            (result.ended, result.ending) = (now, Ending::Succeeded);
            self.run.books.useful = self.run.books.useful.saturating_add(result.work.0);
            self.run.jobs.push(result);
            if let Some(mut followers) = plan.followed_by
                && let Some(mut next) = followers.jobs.pop_front()
            {
                // The deadline of the last is that of the chain, from its first submission.
                let begun = now.since(plan.submit);
                let left = followers.deadline.map(|deadline| Span(deadline.0.saturating_sub(begun.0)));
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

    /// Shares the slots out anew.
    fn serve(&mut self) {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        let key = |job: &Served| match self.baseline {
            Baseline::Ps => (false, 0.0),
            Baseline::Srpt => (false, job.remaining()),
            Baseline::Sjf => (!job.begun, job.size),
        };
        let keys: Vec<(bool, f64)> = self.jobs.iter().map(key).collect();
        order.sort_by(|one, other| {
            let ((first, length), (second, than)) = (keys[*one], keys[*other]);
            first.cmp(&second).then(length.total_cmp(&than))
        });
        self.jobs.iter_mut().for_each(|job| job.rate = 0.0);
        let pools: &[&[usize]] = if self.shared { &[&[0, 1]] } else { &[&[0], &[1]] };
        for (slots, phases) in self.slots.into_iter().zip(pools) {
            let of_it =
                |place: &usize| self.jobs[*place].phase().is_some_and(|phase| phases.contains(&phase));
            let wanting: Vec<usize> = order.iter().copied().filter(of_it).collect();
            match self.baseline {
                Baseline::Ps => self.share_equally(wanting, slots),
                Baseline::Srpt | Baseline::Sjf => self.share_in_order(wanting, slots),
            }
        }
        for job in self.jobs.iter_mut().filter(|job| job.rate > 0.0) {
            job.begun = true;
            let first = job.result.worked.map_or(Time(self.now.round() as u64), |(first, _)| first);
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

    /// What the narrow ones cannot use is for the others.
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

    /// When jobs end on two map slots and one reduce slot, in seconds by their names.
    #[track_caller]
    fn check(baseline: Baseline, jobs: Vec<SimulatedJob>, expected: &[(&str, f64)]) {
        let settings = SimulationSettings::new(1, Slots { map: 2, reduce: 1 });
        let run = run_baseline(Workload::of(jobs), &settings, baseline);
        let ends: Vec<(&str, f64)> =
            run.jobs.iter().map(|job| (&*job.name, job.ended.0 as f64 / 1e6)).collect();
        assert_eq!(ends, expected, "{baseline}");
    }

    fn job(name: &str, submit: u64, maps: u32, reduces: u32, seconds: u64) -> SimulatedJob {
        let length = Span::from_secs(seconds);
        let job = SimulatedJob::new(name, Time(0) + Span::from_secs(submit)).with_maps(maps, length);
        job.with_reduces(reduces, Span(0), length)
    }

    #[test]
    fn sharing_gives_equal_parts_and_the_rest_to_who_can_use_it() {
        check(Baseline::Ps, vec![job("a", 0, 4, 0, 6), job("b", 0, 4, 0, 3)], &[("b", 12.0), ("a", 18.0)]);
        check(
            Baseline::Ps,
            vec![job("wide", 0, 9, 0, 3), job("one", 0, 1, 0, 3)],
            &[("one", 3.0), ("wide", 15.0)],
        );
    }

    #[test]
    fn the_least_left_goes_first_and_is_preempted_by_less() {
        let jobs = vec![job("long", 0, 10, 0, 4), job("short", 5, 2, 0, 3)];
        check(Baseline::Srpt, jobs.clone(), &[("short", 8.0), ("long", 23.0)]);
        check(Baseline::Sjf, jobs, &[("long", 20.0), ("short", 23.0)]);
    }

    #[test]
    fn who_comes_to_have_less_left_than_one_that_is_served_goes_before_it() {
        // At 2 s both have 8 s left, of which the wide one has done more with two slots; it has all three
        // from then on.
        let jobs = vec![job("narrow", 0, 1, 0, 10), job("wide", 0, 4, 0, 3)];
        let settings = SimulationSettings::new(1, Slots { map: 3, reduce: 1 });
        let run = run_baseline(Workload::of(jobs), &settings, Baseline::Srpt);
        let near = |name: &str, seconds: f64| {
            let ended = run.job(name).expect("it ended").ended.0 as f64 / 1e6;
            assert!((ended - seconds).abs() < 1e-5, "{name} ends at {ended}, not at {seconds}");
        };
        near("wide", 2.0 + 8.0 / 3.0);
        near("narrow", 2.0 + 8.0 / 3.0 + 8.0);
    }

    #[test]
    fn the_smallest_that_has_not_begun_is_next() {
        let jobs = vec![job("first", 0, 2, 0, 5), job("large", 1, 2, 0, 9), job("small", 2, 2, 0, 1)];
        check(Baseline::Sjf, jobs, &[("first", 5.0), ("small", 6.0), ("large", 15.0)]);
    }

    #[test]
    fn maps_of_one_job_work_beside_reduces_of_another() {
        let jobs = vec![job("a", 0, 2, 1, 4), job("b", 0, 2, 1, 5)];
        check(Baseline::Srpt, jobs, &[("a", 8.0), ("b", 14.0)]);
    }

    #[test]
    fn a_job_without_work_ends_as_it_comes_and_a_bound_leaves_the_others() {
        check(Baseline::Ps, vec![job("none", 3, 2, 0, 0)], &[("none", 3.0)]);
        let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
        settings.until = Some(Time(0) + Span::from_secs(5));
        let run = run_baseline(Workload::of(vec![job("long", 0, 1, 0, 9)]), &settings, Baseline::Srpt);
        assert_eq!((run.unfinished, &*run.unfinished_names[0], run.ended), (1, "long", Time(5_000_000)));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for baseline in Baseline::ALL {
            assert_eq!(baseline.in_words().parse(), Ok(baseline));
        }
        assert!("fifo".parse::<Baseline>().expect_err("no baseline").contains("allowed: ps, srpt, sjf"));
    }
}
