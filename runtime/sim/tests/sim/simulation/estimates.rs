//! The estimated time left of jobs, compared with the time they took.

use std::collections::BTreeMap;

use napreduce_engine::{JobId, TimeLeft};
use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_sim::{SimulatedMap, SimulatedReduce};
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, LogNormal};
use rand_pcg::Pcg64;

use super::*;

const JOBS: u32 = 50;
const KINDS: u32 = 12;

/// Kinds of jobs that come again and again, as on a cluster in daily use: first one of each, then [`JOBS`]
/// more. Task lengths of a job differ by a factor of about 1.5.
fn daily_jobs(seed: u64) -> Workload {
    let mut random = Pcg64::seed_from_u64(seed);
    let skew = LogNormal::new(0.0, 0.4).unwrap();
    let kinds: Vec<(u32, f64, u32, f64)> = (0..KINDS)
        .map(|_| {
            let maps = random.random_range(3.0_f64..5.3).exp() as u32;
            let reduces = random.random_range(0..10);
            (maps, random.random_range(20.0..90.0), reduces, random.random_range(10.0..120.0))
        })
        .collect();
    let mut submitted = 0;
    let jobs = (0..KINDS + JOBS).map(|number| {
        submitted += random.random_range(20..240);
        let kind = if number < KINDS { number } else { random.random_range(0..KINDS) };
        let (maps, map_secs, reduces, reduce_secs) = kinds[kind as usize];
        let mut length = |mean: f64| Span((mean * skew.sample(&mut random) * 1e6) as u64);
        let mut job = SimulatedJob::new(format!("kind {kind}"), at(submitted));
        job.maps =
            (0..maps).map(|_| SimulatedMap { work: length(map_secs), ..SimulatedMap::default() }).collect();
        job.reduces = (0..reduces)
            .map(|_| SimulatedReduce {
                shuffle: length(reduce_secs / 4.0),
                reduce: length(reduce_secs),
                bytes: 0,
            })
            .collect();
        job
    });
    Workload::of(jobs.collect())
}

fn simulation(seed: u64) -> Simulation {
    let mut settings = SimulationSettings::new(20, Slots { map: 4, reduce: 2 });
    settings.progress_period = Some(seconds(1));
    Simulation::new(Box::new(Fair::new(FairConfiguration::default()).unwrap()), settings, daily_jobs(seed))
}

/// Returns, for each job after the first of each kind, the time left and its estimate when half of its time
/// was over.
fn at_half_time(seed: u64) -> BTreeMap<JobId, (Span, Option<TimeLeft>)> {
    let run = simulation(seed).run().unwrap();
    let mut halves: BTreeMap<(Time, JobId), Span> = BTreeMap::new();
    for job in run.jobs.iter().filter(|job| job.job.0 > KINDS) {
        let half = Span(job.sojourn().0 / 2);
        halves.insert((job.submitted + half, job.job), half);
    }
    let mut again = simulation(seed);
    let mut estimates = BTreeMap::new();
    while let Some((&(half, job), &left)) = halves.first_key_value() {
        if again.now() < half {
            assert!(again.step().unwrap());
            continue;
        }
        let view = again.view();
        estimates.insert(job, (left, view.job(job).and_then(|job| view.time_left(job))));
        halves.pop_first();
    }
    estimates
}

#[test]
fn estimates_at_half_time_are_within_a_quarter_for_four_of_five_jobs() {
    let all: Vec<(Span, Option<TimeLeft>)> =
        (1..=4).flat_map(|seed| at_half_time(seed).into_values()).collect();
    assert_eq!(all.len(), 4 * JOBS as usize);
    let is_close = |left: Span, estimate: TimeLeft| 4 * estimate.likely.0.abs_diff(left.0) <= left.0;
    let is_inside = |left: Span, estimate: TimeLeft| (estimate.least..=estimate.most).contains(&left);
    let share = |holds: &dyn Fn(Span, TimeLeft) -> bool| {
        let holds = all.iter().filter(|(left, estimate)| estimate.is_some_and(|one| holds(*left, one)));
        holds.count() * 100 / all.len()
    };
    let (close, inside) = (share(&is_close), share(&is_inside));
    assert!(close >= 80, "{close} % are within a quarter");
    assert!(inside >= 75, "{inside} % are within their range");
}

#[test]
fn job_without_slots_has_no_estimate() {
    let jobs = ["first", "second"].map(|name| SimulatedJob::new(name, at(0)).with_maps(4, seconds(10)));
    let mut settings = machines(2);
    settings.progress_period = Some(seconds(1));
    let mut simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs.to_vec()));
    while simulation.now() < at(5) {
        assert!(simulation.step().unwrap());
    }
    let view = simulation.view();
    let left = |job| view.time_left(view.job(JobId(job)).unwrap());
    assert_eq!((left(1).unwrap().likely, left(2)), (seconds(15), None));
}

#[test]
fn running_tasks_correct_the_last_job_of_the_name() {
    let job = |number: u64, map| SimulatedJob::new("index", at(100 * number)).with_maps(4, seconds(map));
    // The second run is about as long as the first, so its estimate goes by that; the third and fourth are not.
    let jobs = [job(0, 2), job(1, 3), job(2, 30), job(3, 2)];
    let mut settings = machines(2);
    settings.progress_period = Some(seconds(1));
    let mut simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs.to_vec()));
    for (second, job, likely) in [(1, 1, 3), (101, 2, 4), (210, 3, 50), (301, 4, 3)] {
        while simulation.now() < at(second) {
            assert!(simulation.step().unwrap());
        }
        let view = simulation.view();
        let left = view.time_left(view.job(JobId(job)).unwrap()).unwrap();
        assert_eq!(left.likely, seconds(likely), "job {job}");
    }
}
