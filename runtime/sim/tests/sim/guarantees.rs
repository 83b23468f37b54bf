//! Capacity's guarantees over random workloads: no queue with demand is below the whole slots of its guarantee
//! for longer than the bound of `docs/schedulers/capacity.md`, every freed slot is used, and no task loses its
//! slot again and again.

use std::collections::BTreeMap;

use napreduce_engine::{Job, JobId, PreemptionSettings, Slots, Span, SuspendedMax, TaskKind, Time};
use napreduce_schedulers::capacity::{Capacity, CapacityConfiguration};
use napreduce_sim::fuzz::{QueueRanges, QueueWorkload};
use napreduce_sim::{SimulatedJob, Simulation, SimulationSettings, Workload};

/// Workloads of an ordinary test run. All 1,000 are run by `--ignored`.
const SOME: u64 = 60;

/// Runs a workload; returns how many requests of the monitor freed a slot.
fn run(trial: &QueueWorkload) -> Result<u64, String> {
    let configuration: CapacityConfiguration =
        toml::from_str(&trial.configuration).map_err(|error| error.to_string())?;
    let policy = Capacity::new(&configuration).map_err(|error| error.to_string())?;
    let slots = Slots {
        map: trial.slots_each,
        reduce: 0,
    };
    let mut settings = SimulationSettings::new(trial.machines, slots);
    settings.engine.preemption = PreemptionSettings {
        suspended_max: SuspendedMax::Unlimited,
        ..PreemptionSettings::default()
    };
    let workload = Workload::of(trial.jobs.clone());
    let mut simulation = Simulation::new(Box::new(policy), settings, workload);
    let bound = trial.bound();
    let mut below: BTreeMap<&str, Time> = BTreeMap::new();
    while simulation.step().map_err(|error| error.to_string())? {
        let view = simulation.view();
        for leaf in &trial.leaves {
            let jobs = || view.jobs().filter(|job| job.spec().queue == leaf.name);
            let held: u64 = jobs()
                .map(|job| u64::from(job.holding(TaskKind::Map)))
                .sum();
            let wanted: u64 = jobs().map(demand).sum();
            let due = wanted.min(trial.guaranteed(leaf));
            let now = simulation.now();
            let queue = leaf.name.as_str();
            let waited = below.get(queue).map_or(Span(0), |since| now.since(*since));
            if waited > bound {
                return Err(format!(
                    "{queue} holds {held} of {due} after {waited:?} (bound {bound:?})"
                ));
            }
            if held >= due {
                below.remove(queue);
            } else {
                below.entry(queue).or_insert(now);
            }
        }
    }
    simulation.check()?;
    let tally = simulation.view().tally();
    if tally.slots_unused > 0 {
        return Err(format!("{} slots were freed in vain", tally.slots_unused));
    }
    Ok(tally.requests_satisfied + tally.requests_forced)
}

fn demand(job: &Job) -> u64 {
    u64::from(job.demand(TaskKind::Map))
}

fn check(seeds: std::ops::Range<u64>) -> u64 {
    let mut preempted = 0;
    let mut broken = Vec::new();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let trial = QueueWorkload::draw(seed, QueueRanges::SIMULATED);
        match run(&trial) {
            Ok(requests) => preempted += requests,
            Err(error) => broken.push(format!("{error}\n{}", trial.describe())),
        }
    }
    let shown = broken
        .iter()
        .take(3)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        broken.is_empty(),
        "{} of {count} workloads:\n{shown}",
        broken.len()
    );
    preempted
}

#[test]
fn guarantees_hold_within_bound_on_random_workloads() {
    assert!(check(0..SOME) > 100, "the monitor was needed");
}

/// Workloads where an order to preempt and the end of a task of its beneficiary met in one instant, so that the slot was
/// freed in vain. An end comes before what else is due at its instant.
#[test]
fn no_slot_is_freed_for_a_job_whose_own_tasks_end_at_that_instant() {
    for seed in [105, 166, 181, 251, 338, 471, 490, 513, 593, 663, 863, 932] {
        check(seed..seed + 1);
    }
}

#[test]
#[ignore = "long: run it after a change of the monitor"]
fn guarantees_hold_within_bound_on_thousand_workloads() {
    check(0..1_000);
}

#[test]
fn passes_between_and_within_queues_do_not_undo_each_other() {
    let configuration: CapacityConfiguration = toml::from_str(
        "mode = \"preemptive\"
         [[queue]]\nname = \"a\"\nguaranteed-percent = 50\napp-order = \"fair\"
         [[queue]]\nname = \"b\"\nguaranteed-percent = 50
         [monitor]\nprimitive = \"kill\"\nintra-queue = true\nintra-queue-order = \"priority-first\"
         intra-queue-max-allowable-limit = 1\ninterval = \"1s\"\nmax-wait-before-kill = \"2s\"
         total-per-round = 1\nnatural-termination-factor = 1\ndead-zone = 0",
    )
    .unwrap();
    let policy = Capacity::new(&configuration).unwrap();
    let job = |name: &str, queue: &str, submit: u64, maps: u32, seconds: u64, priority: i32| {
        let plan = SimulatedJob::new(name, Time(submit * 1_000_000))
            .with_maps(maps, Span::from_secs(seconds));
        SimulatedJob {
            queue: queue.into(),
            priority,
            ..plan
        }
    };
    let jobs = vec![
        job("urgent", "a", 0, 60, 100, 5),
        job("low", "a", 1, 10, 100, 0),
        job("other", "b", 30, 40, 15, 0),
    ];
    let settings = SimulationSettings::new(5, Slots { map: 2, reduce: 0 });
    let mut simulation = Simulation::new(Box::new(policy), settings, Workload::of(jobs));
    while simulation.step().unwrap() {}
    let kills: BTreeMap<JobId, u64> = simulation
        .so_far()
        .jobs
        .iter()
        .map(|job| (job.job, job.preemptions.kill))
        .collect();
    assert!(kills.values().all(|count| *count <= 10), "{kills:?}");
}

#[test]
fn suspended_work_moves_to_slots_that_are_due_to_its_queue() {
    let configuration: CapacityConfiguration = toml::from_str(
        "mode = \"preemptive\"
         [[queue]]\nname = \"a\"\nguaranteed-percent = 50
         [[queue]]\nname = \"b\"\nguaranteed-percent = 50
         [monitor]\nprimitive = \"suspend\"\ninterval = \"1s\"\nmax-wait-before-kill = \"4s\"",
    )
    .unwrap();
    let policy = Capacity::new(&configuration).unwrap();
    let job = |name: &str, queue: &str, submit: u64, seconds: u64| {
        let plan = SimulatedJob::new(name, Time(submit * 1_000_000))
            .with_maps(1, Span::from_secs(seconds));
        SimulatedJob {
            queue: queue.into(),
            ..plan
        }
    };
    // When the short job ends, its slot is free, and another queue holds its guarantee on the worker of the long job.
    let jobs = vec![
        job("short", "a", 0, 10),
        job("long", "a", 1, 100),
        job("other", "b", 5, 200),
    ];
    let settings = SimulationSettings::new(2, Slots { map: 1, reduce: 0 });
    let simulation = Simulation::new(Box::new(policy), settings, Workload::of(jobs));
    let run = simulation.run().unwrap();
    let long = run
        .jobs
        .iter()
        .find(|job| job.name.as_ref() == "long")
        .unwrap();
    assert!(long.ended <= Time(115_000_000), "{:?}", long.ended);
    assert_eq!(long.work, Span::from_secs(100));
}
