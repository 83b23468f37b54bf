//! Random failures of attempts and machines: their work is lost, the accounting holds, and all jobs end.

use crate::simulation::{at, fifo, machines, seconds};
use napreduce_engine::{Fifo, Slots, Span};
use napreduce_sim::{Ending, Failures, SimulatedJob, Simulation, SimulationSettings, Workload};

fn jobs(count: u64) -> Vec<SimulatedJob> {
    let job = |number: u64| {
        let mut job = SimulatedJob::new(format!("job{number}"), at(number * 3));
        job = job
            .with_maps(7, seconds(5 + number % 3))
            .with_reduces(3, seconds(2), seconds(4));
        job.slowstart_permille = 500;
        job.attempts_max = 50;
        job
    };
    (0..count).map(job).collect()
}

#[test]
fn failed_attempts_are_retried_and_wasted() {
    let mut settings = machines(4);
    settings.engine.exclusion = None;
    settings.failures = Failures {
        attempt: 0.3,
        ..Failures::default()
    };
    let run = fifo(settings, jobs(40));
    assert!(run.jobs.iter().all(|job| job.ending == Ending::Succeeded));
    let work: u64 = run.jobs.iter().map(|job| job.work.0).sum();
    assert_eq!(run.slot_time.useful, work);
    assert!(
        run.slot_time.wasted > work / 20,
        "{} of {work} wasted",
        run.slot_time.wasted
    );
}

#[test]
fn permanently_failing_task_fails_job() {
    let mut settings = machines(1);
    settings.failures = Failures {
        attempt: 1.0,
        ..Failures::default()
    };
    let run = fifo(
        settings,
        vec![SimulatedJob::new("doomed", at(0)).with_maps(2, seconds(5))],
    );
    assert_eq!(
        (run.jobs[0].ending, run.slot_time.useful),
        (Ending::Failed, 0)
    );
}

#[test]
fn identities_hold_with_machine_losses() {
    for seed in 0..20 {
        let mut settings = SimulationSettings::new(5, Slots { map: 2, reduce: 1 });
        settings.seed = seed;
        settings.overheads.launch = Span::from_millis(700);
        settings.failures = Failures {
            attempt: 0.05,
            machine_mean: Some(seconds(60)),
            machine_return: Some(seconds(20)),
        };
        let mut simulation =
            Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs(30)));
        while simulation.step().unwrap() {
            simulation
                .check()
                .unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
        let run = simulation
            .run()
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(run.machines_lost > 0, "seed {seed}: no machine was lost");
        assert_eq!(run.jobs.len(), 30, "seed {seed}");
    }
}
