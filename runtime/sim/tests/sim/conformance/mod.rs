//! Invariants of every policy under random workloads. New policies are added in `subjects`, random
//! configurations in the crate's `fuzz` module. In every run the simulation itself asserts conservation of
//! slot time, Little's law, one attempt per slot, one completion per task, and no reduce before the last map.

mod accesses;
mod containers;
mod endings;
mod logs;
mod subjects;
mod turns;
mod watched;
mod workloads;

use napreduce_engine::{
    Conversion, Converted, CostRule, PreemptionLimits, Span, SpeculationSettings, TaskKind,
};
use napreduce_sim::{
    Cost, Ending, Failures, MachineBandwidth, Run, Simulation, SimulationSettings, Workload,
};

use crate::conformance::logs::Shared;
use crate::conformance::subjects::{Subject, subjects};
use crate::conformance::watched::Watched;

const SEEDS: u64 = 6;
/// A typical run takes some thousands.
const INSTANTS_MAX: u64 = 100_000;

/// The environment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surroundings {
    /// No overheads or failures.
    Ideal,
    /// All overheads, with heartbeats.
    Slow,
    /// Failures of attempts and machines.
    Failing,
    /// All overheads, and active engine features: conversion, limits, cost comparison, speculation.
    Meddling,
}

impl Surroundings {
    const ALL: [Surroundings; 4] = [
        Surroundings::Ideal,
        Surroundings::Slow,
        Surroundings::Failing,
        Surroundings::Meddling,
    ];
}

fn settings(surroundings: Surroundings, seed: u64) -> SimulationSettings {
    let mut settings = workloads::cluster(seed);
    settings.seed = seed;
    settings.progress_period = Some(Span::from_millis(2500));
    match surroundings {
        Surroundings::Ideal => {}
        Surroundings::Slow | Surroundings::Meddling => {
            let overheads = &mut settings.overheads;
            overheads.heartbeat = Span::from_secs(1);
            overheads.out_of_band = seed.is_multiple_of(2);
            overheads.order_latency = Span::from_millis(30);
            overheads.launch = Span::from_millis(700);
            overheads.suspend = Cost::fixed(Span::from_millis(200));
            overheads.resume = Cost::fixed(Span::from_millis(400));
            overheads.checkpoint_write = Cost {
                fixed: Span::from_millis(300),
                bandwidth: Some(1_000_000),
            };
            overheads.checkpoint_read = Cost::fixed(Span::from_millis(500));
            overheads.restore_elsewhere = Span::from_secs(1);
            overheads.checkpoint_loss = Span::from_secs(1);
            overheads.kill = Span::from_millis(250);
            let disk = Some(200_000);
            let network = Some(150_000);
            overheads.machine_bandwidth = seed
                .is_multiple_of(2)
                .then_some(MachineBandwidth { disk, network });
        }
        Surroundings::Failing => {
            let mean = Some(Span::from_secs(150));
            let back = Some(Span::from_secs(30));
            settings.failures = Failures {
                attempt: 0.03,
                machine_mean: mean,
                machine_return: back,
            };
        }
    }
    if surroundings == Surroundings::Meddling {
        let to = if seed.is_multiple_of(3) {
            Converted::Kill
        } else {
            Converted::Checkpoint
        };
        settings.engine.preemption.convert = Some(Conversion {
            after: Span::from_secs(2),
            to,
        });
        settings.engine.preemption.cost = Some(CostRule {
            measured: true,
            ..CostRule::default()
        });
        settings.engine.preemption.limits = PreemptionLimits {
            minimum_run: Span::from_secs(1),
            suspends_max: Some(3),
            preemptions_max: None,
        };
        settings.engine.speculation = Some(SpeculationSettings::default());
    }
    settings
}

fn simulation(subject: &Subject, settings: SimulationSettings, workload: Workload) -> Simulation {
    let policy = Watched::new(subject.policy(), subject.name);
    Simulation::new(Box::new(policy), settings, workload)
}

/// Runs to the end, checking all invariants after each instant.
fn run_checked(subject: &Subject, surroundings: Surroundings, seed: u64) -> Run {
    let about = format!("{} with seed {seed}, {surroundings:?}", subject.name);
    let log = Shared::default();
    let workload = Workload::of(workloads::jobs(seed));
    let mut simulation =
        simulation(subject, settings(surroundings, seed), workload).with_log(Box::new(log.clone()));
    let mut instants = 0_u64;
    while simulation
        .step()
        .unwrap_or_else(|error| panic!("{about}: {error}\n{}", log.end()))
    {
        instants += 1;
        assert!(
            instants < INSTANTS_MAX,
            "{about}: too many instants at {}",
            simulation.now()
        );
        if instants.is_multiple_of(7) {
            simulation
                .check()
                .unwrap_or_else(|wrong| panic!("{about}: {wrong}"));
        }
        if subject.work_conserving && surroundings == Surroundings::Ideal {
            assert_no_slot_idles(&simulation, &about);
        }
    }
    let open = simulation.view().requests().count();
    assert_eq!(open, 0, "{about}: open requests after every job has ended");
    simulation
        .run()
        .unwrap_or_else(|error| panic!("{about}: {error}"))
}

/// Asserts that no unreserved slot is free that a job could use.
fn assert_no_slot_idles(simulation: &Simulation, about: &str) {
    let view = simulation.view();
    for kind in TaskKind::ALL {
        for (worker, free) in view.free(kind) {
            let known = view.worker(worker).unwrap();
            if free > known.reserved(kind) {
                let idle = view.wanting(kind).find(|job| job.wants_on(kind, worker));
                let declined = known.declined(kind);
                let why = idle
                    .map(|job| format!("{} could use a free {kind} slot of {worker}", job.id()));
                assert_eq!(why, None, "{about}, at {}: {declined:?}", simulation.now());
            }
        }
    }
}

#[test]
fn every_job_ends_with_exact_work() {
    for subject in subjects() {
        for seed in 0..SEEDS {
            let jobs = workloads::jobs(seed);
            let work: u64 = jobs
                .iter()
                .map(|job| job.work(TaskKind::Map).0 + job.work(TaskKind::Reduce).0)
                .sum();
            for surroundings in Surroundings::ALL {
                let run = run_checked(&subject, surroundings, seed);
                let about = format!("{} with seed {seed}, {surroundings:?}", subject.name);
                assert_eq!(run.jobs.len(), jobs.len(), "{about}");
                let failed = run
                    .jobs
                    .iter()
                    .filter(|job| job.ending != Ending::Succeeded)
                    .count();
                if surroundings != Surroundings::Failing {
                    assert_eq!((failed, run.slot_time.useful), (0, work), "{about}");
                }
                assert_eq!(
                    (run.warnings, run.tally.illegal_reports),
                    (0, 0),
                    "{about}: {:?}",
                    run.last_warning
                );
            }
        }
        println!("{}: {SEEDS} workloads in each surroundings", subject.name);
    }
}

#[test]
fn equal_seeds_give_identical_logs() {
    for subject in subjects() {
        let logged = |seed| {
            let log = Shared::default();
            let workload = Workload::of(workloads::jobs(seed));
            let simulation = simulation(&subject, settings(Surroundings::Slow, seed), workload);
            simulation.with_log(Box::new(log.clone())).run().unwrap();
            log.text()
        };
        assert!(
            logged(3) == logged(3),
            "{}: two runs of seed 3 differ",
            subject.name
        );
    }
}

#[test]
fn work_conserving_policies_share_busy_periods() {
    // One-task jobs on one slot without kills: the order may differ, but not the end of a busy period.
    let mut ends = Vec::new();
    for subject in subjects()
        .into_iter()
        .filter(|subject| subject.work_conserving && !subject.kills)
    {
        for seed in 0..SEEDS {
            let settings = workloads::one_slot();
            let run = simulation(
                &subject,
                settings,
                Workload::of(workloads::single_tasks(seed)),
            )
            .run()
            .unwrap();
            ends.push((seed, run.slot_time.busy, run.ended, subject.name));
        }
    }
    for seed in 0..SEEDS {
        let of_seed: Vec<_> = ends.iter().filter(|(other, ..)| *other == seed).collect();
        for (_, busy, end, name) in &of_seed {
            let (_, first_busy, first_end, first) = of_seed[0];
            assert_eq!(
                (busy, end),
                (first_busy, first_end),
                "{name} and {first} with seed {seed}"
            );
        }
    }
}

#[test]
fn alternating_arrivals_do_not_cause_thrashing() {
    for subject in subjects() {
        for seed in 0..SEEDS {
            let jobs = workloads::alternating(seed);
            let count = jobs.len() as u64;
            let settings = workloads::cluster(seed);
            let tasks: usize = jobs
                .iter()
                .map(|job| job.maps.len() + job.reduces.len())
                .sum();
            let slots = u64::from(settings.machines)
                * u64::from(settings.slots.map + settings.slots.reduce);
            let run = simulation(&subject, settings, Workload::of(jobs))
                .run()
                .unwrap();
            let preempted: u64 = run
                .jobs
                .iter()
                .map(|job| {
                    job.preemptions.suspend + job.preemptions.checkpoint + job.preemptions.kill
                })
                .sum();
            // An arrival or end may turn over the whole cluster once; periodic policies preempt one slot per
            // second.
            let seconds = run.ended.0 / 1_000_000;
            let most = 2 * count * slots + if subject.periodic { seconds * slots } else { 0 };
            let about = format!("{} with seed {seed}", subject.name);
            assert!(
                preempted <= most,
                "{about}: {preempted} preemptions of {tasks} tasks, at most {most}"
            );
        }
    }
}
