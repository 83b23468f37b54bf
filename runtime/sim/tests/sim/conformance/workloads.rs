//! Random workloads: queues, users, priorities, deadlines, early reduces, and jobs of every size.

use napreduce_engine::{Slots, Span, Time};
use napreduce_sim::{SimulatedJob, SimulatedMap, SimulatedReduce, SimulationSettings};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A small cluster.
pub fn cluster(seed: u64) -> SimulationSettings {
    let mut random = Pcg64::seed_from_u64(seed ^ 0xC1);
    let slots = Slots {
        map: random.random_range(1..=3),
        reduce: random.random_range(1..=2),
    };
    SimulationSettings::new(random.random_range(2..=5), slots)
}

pub fn one_slot() -> SimulationSettings {
    SimulationSettings::new(1, Slots { map: 1, reduce: 1 })
}

/// Jobs of all kinds.
pub fn jobs(seed: u64) -> Vec<SimulatedJob> {
    let mut random = Pcg64::seed_from_u64(seed);
    (0..16).map(|number| job(number, &mut random)).collect()
}

fn job(number: u32, random: &mut Pcg64) -> SimulatedJob {
    let mut job = SimulatedJob::new(
        format!("job{number}"),
        Time(random.random_range(0..90_000_000)),
    );
    job.queue = ["production", "research", "default"][random.random_range(0..3)].into();
    job.user = ["ada", "bob"][random.random_range(0..2)].into();
    job.priority = random.random_range(-1..=1);
    job.deadline = random
        .random_bool(0.5)
        .then(|| Span::from_secs(random.random_range(5..200)));
    job.slowstart_permille = [0, 50, 500, 1000][random.random_range(0..4)];
    job.attempts_max = 100;
    job.memory = random.random_range(0..2_000_000);
    let (maps, reduces) = match random.random_range(0..4) {
        0 => (random.random_range(10..40), random.random_range(0..10)),
        1 => (0, random.random_range(0..4)),
        _ => (random.random_range(1..6), random.random_range(0..3)),
    };
    job.maps = (0..maps)
        .map(|_| SimulatedMap {
            work: Span(random.random_range(0..12_000_000)),
            bytes: random.random_range(0..1_000_000),
            output_bytes: random.random_range(0..1_000_000),
            preferred: (0..random.random_range(0..3))
                .map(|_| random.random_range(0..3))
                .collect(),
        })
        .collect();
    job.reduces = (0..reduces)
        .map(|_| SimulatedReduce {
            shuffle: Span(random.random_range(0..5_000_000)),
            reduce: Span(random.random_range(0..20_000_000)),
            bytes: random.random_range(0..1_000_000),
        })
        .collect();
    job
}

/// One-task jobs in busy periods of several jobs.
pub fn single_tasks(seed: u64) -> Vec<SimulatedJob> {
    let mut random = Pcg64::seed_from_u64(seed);
    let one = |number: u32| {
        let mut job = job(number, &mut random);
        job.reduces.clear();
        job.maps.clear();
        job.with_maps(1, Span(random.random_range(1..9_000_000)))
    };
    (0..20).map(one).collect()
}

/// A long background job, and alternating short jobs of production and research.
pub fn alternating(seed: u64) -> Vec<SimulatedJob> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut jobs =
        vec![SimulatedJob::new("background", Time(0)).with_maps(60, Span::from_secs(15))];
    jobs[0] = jobs[0]
        .clone()
        .with_reduces(12, Span::from_secs(2), Span::from_secs(40));
    jobs[0].queue = "research".into();
    jobs[0].deadline = Some(Span::from_secs(3_000));
    for number in 1..=20_u32 {
        let (queue, priority) = if number.is_multiple_of(2) {
            ("research", 0)
        } else {
            ("production", 1)
        };
        let mut job = SimulatedJob::new(
            format!("short{number}"),
            Time(u64::from(number) * 4_000_000),
        );
        job = job.with_maps(
            random.random_range(1..4),
            Span::from_secs(random.random_range(1..4)),
        );
        job = job.with_reduces(
            random.random_range(0..3),
            Span::from_secs(1),
            Span::from_secs(3),
        );
        job.queue = queue.into();
        job.priority = priority;
        job.deadline = Some(Span::from_secs(40));
        jobs.push(job);
    }
    jobs
}
