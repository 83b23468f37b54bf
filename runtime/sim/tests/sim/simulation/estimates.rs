//! The estimated time left of jobs, compared with the time they took.

use std::collections::BTreeMap;

use napreduce_engine::{JobId, Scheduler, TimeLeft};
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
            (
                maps,
                random.random_range(20.0..90.0),
                reduces,
                random.random_range(10.0..120.0),
            )
        })
        .collect();
    let mut submitted = 0;
    let jobs = (0..KINDS + JOBS).map(|number| {
        submitted += random.random_range(20..240);
        let kind = if number < KINDS {
            number
        } else {
            random.random_range(0..KINDS)
        };
        let (maps, map_secs, reduces, reduce_secs) = kinds[kind as usize];
        let mut length = |mean: f64| Span((mean * skew.sample(&mut random) * 1e6) as u64);
        let mut job = SimulatedJob::new(format!("kind {kind}"), at(submitted));
        job.maps = (0..maps)
            .map(|_| SimulatedMap {
                work: length(map_secs),
                ..SimulatedMap::default()
            })
            .collect();
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
    Simulation::new(
        Box::new(Fair::new(FairConfiguration::default()).unwrap()),
        settings,
        daily_jobs(seed),
    )
}

/// One look at a job that runs: the time it still took, and the estimate.
#[derive(Debug, Clone, Copy)]
struct Sample {
    left: Span,
    estimate: Option<TimeLeft>,
}

/// Looks at every job that `looks_at` selects nineteen times while it runs, between its start and its end.
fn samples(simulation: impl Fn() -> Simulation, looks_at: impl Fn(JobId) -> bool) -> Vec<Sample> {
    let run = simulation().run().unwrap();
    let mut looks: BTreeMap<(Time, JobId), Span> = BTreeMap::new();
    for job in run.jobs.iter().filter(|job| looks_at(job.job)) {
        let began = job.worked.unwrap().0;
        let ran = job.ended.since(began).0;
        for part in 1..20 {
            let left = Span(ran - ran * part / 20);
            looks.insert((Time(job.ended.0 - left.0), job.job), left);
        }
    }
    let mut again = simulation();
    let mut samples = Vec::new();
    for ((look, job), left) in looks {
        while again.next_instant().is_some_and(|next| next <= look) {
            assert!(again.step().unwrap());
        }
        samples.push(Sample {
            left,
            estimate: again.time_left(job, look),
        });
    }
    samples
}

/// How well the estimates of some samples hold.
#[derive(Debug)]
struct Calibration {
    known_percent: usize,
    below_percent: usize,
    inside_percent: usize,
    median_ratio: f64,
    /// The median of the width of the range over the likely time.
    median_width: f64,
}

fn calibration(samples: &[Sample]) -> Calibration {
    let known: Vec<(Span, TimeLeft)> = samples
        .iter()
        .filter_map(|sample| Some((sample.left, sample.estimate?)))
        .collect();
    let inside = known
        .iter()
        .filter(|(left, estimate)| (estimate.least..=estimate.most).contains(left));
    let below = known
        .iter()
        .filter(|(left, estimate)| *left < estimate.least);
    let below_percent = below.count() * 100 / known.len().max(1);
    let inside_percent = inside.count() * 100 / known.len().max(1);
    let ratios = known
        .iter()
        .map(|(left, estimate)| estimate.likely.0 as f64 / left.0.max(1) as f64);
    let median_ratio = median(ratios.collect());
    let widths = known.iter().map(|(_, estimate)| {
        let width = estimate.most.0 - estimate.least.0;
        width as f64 / estimate.likely.0 as f64
    });
    let median_width = median(widths.collect());
    let known_percent = known.len() * 100 / samples.len();
    Calibration {
        known_percent,
        below_percent,
        inside_percent,
        median_ratio,
        median_width,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// What differs between the kinds of jobs.
#[derive(Debug, Clone, Copy)]
struct KindOfJobs {
    name: &'static str,
    /// Commands do not report progress.
    reports_progress: bool,
    /// One task of so many takes eight times as long. Without progress nothing foretells it; then the estimate is
    /// unknown while it runs.
    straggler_of: Option<u32>,
    reduces: u32,
    slowstart_permille: u32,
    /// How many jobs are submitted at once.
    together: u64,
    has_names: bool,
    is_fair: bool,
    shares_slots: bool,
}

const PLAIN: KindOfJobs = KindOfJobs {
    name: "maps",
    reports_progress: true,
    straggler_of: None,
    reduces: 0,
    slowstart_permille: 1_000,
    together: 1,
    has_names: false,
    is_fair: false,
    shares_slots: false,
};

const KINDS_OF_JOBS: [KindOfJobs; 10] = [
    PLAIN,
    KindOfJobs {
        name: "maps and reduces",
        reduces: 6,
        slowstart_permille: 50,
        ..PLAIN
    },
    KindOfJobs {
        name: "repeated",
        reduces: 6,
        slowstart_permille: 50,
        has_names: true,
        ..PLAIN
    },
    KindOfJobs {
        name: "commands",
        reports_progress: false,
        ..PLAIN
    },
    KindOfJobs {
        name: "repeated commands",
        reports_progress: false,
        has_names: true,
        ..PLAIN
    },
    KindOfJobs {
        name: "stragglers",
        straggler_of: Some(20),
        ..PLAIN
    },
    KindOfJobs {
        name: "stragglers of commands",
        reports_progress: false,
        straggler_of: Some(20),
        ..PLAIN
    },
    KindOfJobs {
        name: "queues",
        together: 3,
        ..PLAIN
    },
    KindOfJobs {
        name: "shares",
        together: 3,
        is_fair: true,
        reports_progress: false,
        ..PLAIN
    },
    KindOfJobs {
        name: "containers",
        reduces: 4,
        slowstart_permille: 500,
        shares_slots: true,
        ..PLAIN
    },
];

fn simulation_of(kind: KindOfJobs, seed: u64) -> Simulation {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut jobs = Vec::new();
    for number in 0..30 {
        let submitted = number / kind.together * 4_000;
        let name = if kind.has_names {
            format!("name {}", number % 3)
        } else {
            format!("job {number}")
        };
        let spread = random.random_range(0.05..0.6);
        let skew = LogNormal::new(0.0, spread).unwrap();
        let mean = if kind.has_names {
            20.0 + 10.0 * (number % 3) as f64
        } else {
            random.random_range(3.0..60.0)
        };
        let maps = random.random_range(10..80);
        let straggler = |random: &mut Pcg64| {
            let is_one = kind
                .straggler_of
                .is_some_and(|of| random.random_range(0..of) == 0);
            if is_one { 8.0 } else { 1.0 }
        };
        let mut length = |mean: f64| {
            let factor = straggler(&mut random);
            Span((mean * factor * skew.sample(&mut random) * 1e6) as u64)
        };
        let mut job = SimulatedJob::new(name, at(submitted));
        job.slowstart_permille = kind.slowstart_permille;
        job.maps = (0..maps)
            .map(|_| SimulatedMap {
                work: length(mean),
                ..SimulatedMap::default()
            })
            .collect();
        let reduce = |shuffle, reduce| SimulatedReduce {
            shuffle,
            reduce,
            bytes: 0,
        };
        job.reduces = (0..kind.reduces)
            .map(|_| reduce(length(mean / 4.0), length(mean)))
            .collect();
        jobs.push(job);
    }
    let mut settings = SimulationSettings::new(5, Slots { map: 2, reduce: 1 });
    if kind.shares_slots {
        settings = SimulationSettings::with_containers(5, 3);
    }
    settings.seed = seed;
    settings.progress_period = kind.reports_progress.then(|| seconds(1));
    let policy: Box<dyn Scheduler> = if kind.is_fair {
        Box::new(Fair::new(FairConfiguration::default()).unwrap())
    } else {
        Box::new(Fifo::default())
    };
    Simulation::new(policy, settings, Workload::of(jobs))
}

#[test]
fn range_holds_time_left_of_every_kind_of_job() {
    let mut all = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    for kind in KINDS_OF_JOBS {
        let mut of_kind = Vec::new();
        for seed in 1..=4 {
            of_kind.extend(samples(|| simulation_of(kind, seed), |_| true));
        }
        let found = calibration(&of_kind);
        let is_foreseeable = kind.reports_progress || kind.straggler_of.is_none();
        if !is_foreseeable {
            println!("{:25} {found:?}", kind.name);
            all.extend(of_kind);
            continue;
        }
        if found.known_percent < 60
            || found.inside_percent < 65
            || !(0.6..=1.5).contains(&found.median_ratio)
        {
            wrong.push(format!("{}: {found:?}", kind.name));
        }
        println!("{:25} {found:?}", kind.name);
        all.extend(of_kind);
    }
    assert_eq!(wrong, Vec::<String>::new());
    let found = calibration(&all);
    println!("{} samples: {found:?}", all.len());
    assert!(found.below_percent <= 20, "{found:?}");
    assert!(found.inside_percent >= 75, "{found:?}");
    assert!((0.8..=1.25).contains(&found.median_ratio), "{found:?}");
    assert!(found.median_width <= 1.0, "{found:?}");
}

#[test]
fn range_holds_time_left_of_daily_jobs() {
    let mut all = Vec::new();
    for seed in 1..=4 {
        all.extend(samples(|| simulation(seed), |job| job.0 > KINDS));
    }
    let found = calibration(&all);
    println!("{} samples: {found:?}", all.len());
    assert!(found.inside_percent >= 75, "{found:?}");
    assert!((0.8..=1.25).contains(&found.median_ratio), "{found:?}");
    assert!(found.median_width <= 1.0, "{found:?}");
}

#[test]
fn job_without_slots_has_no_estimate() {
    let jobs =
        ["first", "second"].map(|name| SimulatedJob::new(name, at(0)).with_maps(4, seconds(10)));
    let mut settings = machines(2);
    settings.progress_period = Some(seconds(1));
    let mut simulation = Simulation::new(
        Box::new(Fifo::default()),
        settings,
        Workload::of(jobs.to_vec()),
    );
    while simulation.now() < at(5) {
        assert!(simulation.step().unwrap());
    }
    let left = |job| simulation.time_left(JobId(job), simulation.now());
    let of_first = left(1).unwrap();
    assert!(
        (of_first.least..=of_first.most).contains(&seconds(15)),
        "{of_first:?}"
    );
    assert_eq!(left(2), None);
}

#[test]
fn running_tasks_correct_the_last_job_of_the_name() {
    let job =
        |number: u64, map| SimulatedJob::new("index", at(100 * number)).with_maps(4, seconds(map));
    // The second run is about as long as the first, so its estimate goes by that; the third and fourth are not.
    let jobs = [job(0, 2), job(1, 3), job(2, 30), job(3, 2)];
    let mut settings = machines(2);
    settings.progress_period = Some(seconds(1));
    let mut simulation = Simulation::new(
        Box::new(Fifo::default()),
        settings,
        Workload::of(jobs.to_vec()),
    );
    for (second, job, likely) in [(2, 1, 2), (102, 2, 4), (210, 3, 50), (302, 4, 2)] {
        while simulation.now() < at(second) {
            assert!(simulation.step().unwrap());
        }
        let left = simulation.time_left(JobId(job), simulation.now()).unwrap();
        let likely = seconds(likely);
        assert!(
            left.likely.0.abs_diff(likely.0) <= 3 * likely.0 / 10,
            "job {job}: {left:?}"
        );
        assert!(
            (left.least..=left.most).contains(&likely),
            "job {job}: {left:?}"
        );
    }
}
