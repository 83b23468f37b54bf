//! The wait of a job, pool or queue without a slot, against the bound of `runtime/schedulers/src/turns.rs`,
//! over random workloads.

use std::collections::BTreeMap;

use napreduce_engine::{AttemptId, Job, Slots, Span, TaskKind, Time};
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Observed waits of jobs or groups.
#[derive(Default)]
struct Seen {
    waiting: BTreeMap<String, Time>,
    /// Longest wait of each with demand but without a slot.
    longest: BTreeMap<String, Span>,
    /// Maximum concurrently active ones.
    active: usize,
}

impl Seen {
    fn look(&mut self, now: Time, usage_and_demand: BTreeMap<String, (u32, u32)>) {
        self.active = self.active.max(
            usage_and_demand
                .values()
                .filter(|(_, demand)| *demand > 0)
                .count(),
        );
        let waits = |name: &String| {
            usage_and_demand
                .get(name)
                .is_some_and(|one| one.0 == 0 && one.1 > 0)
        };
        for (name, since) in &self.waiting {
            let waited = self.longest.entry(name.clone()).or_default();
            *waited = (*waited).max(now.since(*since));
        }
        self.waiting.retain(|name, _| waits(name));
        for name in usage_and_demand.keys().filter(|name| waits(name)) {
            self.waiting.entry(name.clone()).or_insert(now);
        }
    }
}

/// A run observed after every instant.
struct Watch {
    jobs: Seen,
    queues: Seen,
    /// The longest hold of a slot.
    hold: Span,
    preempted: u64,
}

fn policy(configuration: &str) -> SchedulerConfiguration {
    serde_json::from_str(configuration).unwrap_or_else(|error| panic!("{error}: {configuration}"))
}

fn watch(configuration: &str, kind: TaskKind, slots: u32, jobs: Vec<SimulatedJob>) -> Watch {
    let settings = SimulationSettings::new(
        1,
        Slots {
            map: slots,
            reduce: slots,
        },
    );
    let policy = policy(configuration).build().unwrap();
    let mut simulation = Simulation::new(policy, settings, Workload::of(jobs));
    let mut jobs = Seen::default();
    let mut queues = Seen::default();
    let mut hold = Span(0);
    let mut held: BTreeMap<AttemptId, Time> = BTreeMap::new();
    while simulation.step().unwrap() {
        let now = simulation.now();
        let view = simulation.view();
        let by = |name: fn(&Job) -> String| {
            let mut all: BTreeMap<String, (u32, u32)> = BTreeMap::new();
            for job in view.jobs() {
                let one = all.entry(name(job)).or_default();
                *one = (one.0 + job.holding(kind), one.1 + job.demand(kind));
            }
            all
        };
        jobs.look(now, by(|job| job.spec().name.clone()));
        queues.look(now, by(|job| job.spec().queue.clone()));
        let holds = |id: &AttemptId| {
            view.attempt(*id)
                .is_some_and(|attempt| attempt.holds_slot())
        };
        for (_, since) in held.iter().filter(|(id, _)| !holds(id)) {
            hold = hold.max(now.since(*since));
        }
        held.retain(|id, _| holds(id));
        for attempt in view
            .attempts()
            .filter(|one| one.holds_slot() && one.id().task.kind == kind)
        {
            held.entry(attempt.id()).or_insert(now);
        }
    }
    let run = simulation.run().unwrap();
    let counts = run.jobs.iter().map(|job| job.preemptions);
    let preempted = counts
        .map(|counts| counts.suspend + counts.checkpoint + counts.kill)
        .sum();
    Watch {
        jobs,
        queues,
        hold,
        preempted,
    }
}

/// The bound: longest hold, total weight, own weight, number of children, slots.
fn bound(hold: Span, weights: u64, weight: u64, count: usize, slots: f64) -> Span {
    let hold = hold.0 as f64;
    let count = count as f64;
    let others = weights as f64 / weight as f64 + 2.0 * (count - 1.0);
    Span((hold * others / slots + hold).ceil() as u64)
}

/// More jobs than slots, with one or many tasks of up to ten seconds, maps and reduces.
fn crowd(seed: u64, queues: &[&str], slots: u32) -> Vec<SimulatedJob> {
    let mut random = Pcg64::seed_from_u64(seed);
    let count = slots * 2 + random.random_range(3..8);
    let job = |number: u32| {
        let first = number < slots;
        let many = random.random_bool(0.4);
        let submit = if first {
            0
        } else {
            random.random_range(0..60_000_000)
        };
        let longest = random.random_range(1_000_000..10_000_000);
        let tasks = if first || many {
            random.random_range(40..120)
        } else {
            random.random_range(1..4)
        };
        let mut job = SimulatedJob::new(format!("job{number}"), Time(submit));
        job.queue = queues[random.random_range(0..queues.len())].into();
        job.priority = random.random_range(1..=3);
        for _ in 0..tasks {
            job = job.with_maps(1, Span(random.random_range(longest / 2..longest)));
        }
        let length = Span(longest);
        job.with_reduces(if many { 30 } else { 1 }, Span(0), length)
    };
    (0..count).map(job).collect()
}

const SEEDS: u64 = 10;

#[test]
fn fair_job_on_one_slot_waits_for_one_task() {
    let long = SimulatedJob::new("long", Time(0)).with_maps(100, Span::from_secs(10));
    let short = SimulatedJob::new("short", Time(5_000_000)).with_maps(1, Span::from_secs(10));
    let seen = watch(
        r#"{"scheduler": "fair"}"#,
        TaskKind::Map,
        1,
        vec![long, short],
    );
    assert_eq!(seen.jobs.longest["short"], Span::from_secs(5));
}

#[test]
fn fair_job_waits_stay_within_bound() {
    for kind in TaskKind::ALL {
        for seed in 0..SEEDS {
            let slots = 1 + seed as u32 % 4;
            let jobs = crowd(seed, &["default"], slots);
            let seen = watch(r#"{"scheduler": "fair"}"#, kind, slots, jobs);
            let count = seen.jobs.active;
            let most = bound(seen.hold, count as u64, 1, count, slots.into());
            for (job, waited) in &seen.jobs.longest {
                assert!(
                    *waited <= most,
                    "{job} with seed {seed} waits {waited} for {kind}s, at most {most}"
                );
            }
        }
    }
}

#[test]
fn weighted_fair_job_waits_stay_within_bound() {
    let configuration = r#"{"scheduler": "fair", "tables": {"fair": {"priority-weight": true}}}"#;
    for seed in 0..SEEDS {
        let slots = 1 + seed as u32 % 4;
        let jobs = crowd(seed, &["default"], slots);
        let weights: BTreeMap<String, u64> = jobs
            .iter()
            .map(|job| (job.name.to_string(), u64::from(job.priority.unsigned_abs())))
            .collect();
        let all: u64 = weights.values().sum();
        let seen = watch(configuration, TaskKind::Map, slots, jobs);
        for (job, waited) in &seen.jobs.longest {
            let most = bound(seen.hold, all, weights[job], seen.jobs.active, slots.into());
            assert!(
                *waited <= most,
                "{job} with seed {seed} waits {waited}, at most {most}"
            );
        }
    }
}

#[test]
fn fair_pool_waits_stay_within_bound() {
    let configuration = r#"{"scheduler": "fair", "tables": {"fair": {"root": {"pools": {
        "a": {"weight": 3}, "b": {"weight": 1}, "c": {"weight": 2}}}}}}"#;
    for seed in 0..SEEDS {
        let slots = 1 + seed as u32 % 2;
        let jobs = crowd(seed, &["a", "b", "c"], slots);
        let queue: BTreeMap<String, String> = jobs
            .iter()
            .map(|job| (job.name.to_string(), job.queue.to_string()))
            .collect();
        let seen = watch(configuration, TaskKind::Map, slots, jobs);
        let weight = |pool: &str| match pool {
            "a" => 3,
            "b" => 1,
            _ => 2,
        };
        let of_pool = |pool: &str| bound(seen.hold, 6, weight(pool), 3, slots.into());
        for (pool, waited) in &seen.queues.longest {
            let most = of_pool(pool);
            assert!(
                *waited <= most,
                "{pool} with seed {seed} waits {waited}, at most {most}"
            );
        }
        for (job, waited) in &seen.jobs.longest {
            let share = f64::from(slots) * weight(&queue[job]) as f64 / 6.0;
            let count = queue.values().filter(|other| **other == queue[job]).count();
            let most = Span(
                bound(seen.hold, count as u64, 1, count, share.min(1.0)).0 + of_pool(&queue[job]).0,
            );
            assert!(
                *waited <= most,
                "{job} with seed {seed} waits {waited}, at most {most}"
            );
        }
    }
}

#[test]
fn fair_pools_share_slots_beyond_a_minimum() {
    let configuration = r#"{"scheduler": "fair", "tables": {"fair": {"root": {"pools": {
        "a": {"min-maps": 1}}}}}}"#;
    for seed in 0..SEEDS {
        let slots = 2 + seed as u32 % 2;
        let seen = watch(
            configuration,
            TaskKind::Map,
            slots,
            crowd(seed, &["a", "b", "c", "d"], slots),
        );
        let most = bound(seen.hold, 4, 1, 4, f64::from(slots - 1));
        for (pool, waited) in &seen.queues.longest {
            assert!(
                *waited <= most,
                "{pool} with seed {seed} waits {waited}, at most {most}"
            );
        }
    }
}

/// Queues with these guarantees and fair application order.
fn capacity(mode: &str, guarantees: &[(&str, u64)]) -> String {
    let queue = |(name, percent): &(&str, u64)| {
        format!(r#"{{"name": "{name}", "guaranteed-percent": {percent}, "app-order": "fair"}}"#)
    };
    let queues: Vec<String> = guarantees.iter().map(queue).collect();
    let queues = queues.join(", ");
    format!(
        r#"{{"scheduler": "capacity", "tables": {{"capacity": {{"mode": "{mode}", "queue": [{queues}]}}}}}}"#
    )
}

#[test]
fn capacity_queues_below_one_slot_take_turns() {
    for mode in ["soft-cap", "preemptive"] {
        let configuration = capacity(mode, &[("alpha", 50), ("beta", 30), ("gamma", 20)]);
        let job = |queue: &str, tasks| {
            let mut job = SimulatedJob::new(queue, Time(0)).with_maps(tasks, Span::from_secs(30));
            job.queue = queue.into();
            job
        };
        let jobs = vec![job("alpha", 100), job("beta", 1), job("gamma", 1)];
        let seen = watch(&configuration, TaskKind::Map, 1, jobs);
        assert_eq!(
            seen.preempted, 0,
            "{mode}: slots of a turn are not preempted"
        );
        for queue in ["beta", "gamma"] {
            assert!(
                seen.queues.longest[queue] <= Span::from_secs(60),
                "{mode}: {queue} waits for long"
            );
        }
    }
}

#[test]
fn capacity_queue_waits_stay_within_bound() {
    let guarantees = [("alpha", 50), ("beta", 30), ("default", 20)];
    for mode in ["soft-cap", "preemptive"] {
        for seed in 0..SEEDS {
            let slots = 1 + seed as u32 % 2;
            let mut jobs = crowd(seed, &["alpha", "beta", "default"], slots);
            jobs.iter_mut().for_each(|job| job.priority = 0);
            let queue: BTreeMap<String, String> = jobs
                .iter()
                .map(|job| (job.name.to_string(), job.queue.to_string()))
                .collect();
            let tasks: usize = jobs
                .iter()
                .map(|job| job.maps.len() + job.reduces.len())
                .sum();
            let seen = watch(&capacity(mode, &guarantees), TaskKind::Map, slots, jobs);
            let guaranteed = |queue: &str| guarantees.iter().find(|one| one.0 == queue).unwrap().1;
            let of_queue = |queue: &str| bound(seen.hold, 100, guaranteed(queue), 3, slots.into());
            assert!(
                seen.preempted < tasks as u64 / 4,
                "{} of {tasks} tasks preempted",
                seen.preempted
            );
            for (queue, waited) in &seen.queues.longest {
                let most = of_queue(queue);
                assert!(
                    *waited <= most,
                    "{mode}: {queue} with seed {seed} waits {waited}, at most {most}"
                );
            }
            for (job, waited) in &seen.jobs.longest {
                let share = f64::from(slots) * guaranteed(&queue[job]) as f64 / 100.0;
                let count = queue.values().filter(|other| **other == queue[job]).count();
                let of_jobs = bound(seen.hold, count as u64, 1, count, share.min(1.0));
                let most = Span(of_jobs.0 + of_queue(&queue[job]).0);
                assert!(
                    *waited <= most,
                    "{mode}: {job} with seed {seed} waits {waited}, at most {most}"
                );
            }
        }
    }
}
