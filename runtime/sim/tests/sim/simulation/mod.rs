//! The simulation against hand-computed cases, and its accounting identities. Also the shared constructors of
//! these tests.

mod admission;
mod bandwidth;
mod chains;
mod checkpoints;
mod containers;
mod conversion;
mod estimates;
mod failures;
mod job_tasks;
mod log;
mod overheads;
mod progress;
mod racks;
mod recording;
mod reduces;

use napreduce_engine::{Fifo, Slots, Span, Time};
use napreduce_sim::{Run, SimulatedJob, Simulation, SimulationSettings, Workload};

fn seconds(number: u64) -> Span {
    Span::from_secs(number)
}

fn at(second: u64) -> Time {
    Time(second * 1_000_000)
}

/// Machines with one map and one reduce slot each.
fn machines(count: u32) -> SimulationSettings {
    SimulationSettings::new(count, Slots { map: 1, reduce: 1 })
}

fn fifo(settings: SimulationSettings, jobs: Vec<SimulatedJob>) -> Run {
    Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs))
        .run()
        .unwrap()
}

/// Returns the end of a job in seconds.
fn end(run: &Run, name: &str) -> f64 {
    run.job(name).unwrap().ended.0 as f64 / 1e6
}

#[test]
fn ended_job_frees_slot_for_simultaneous_arrival() {
    let first = SimulatedJob::new("first", at(0)).with_maps(1, seconds(10));
    let second = SimulatedJob::new("second", at(10)).with_maps(1, seconds(5));
    let run = fifo(machines(1), vec![first, second]);
    assert_eq!((end(&run, "first"), end(&run, "second")), (10.0, 15.0));
    assert_eq!(
        (run.slot_time.busy, run.slot_time.useful),
        ([15_000_000, 0], 15_000_000)
    );
    assert_eq!(
        run.slot_time.overhead() + run.slot_time.wasted + run.slot_time.waiting,
        0
    );
}

#[test]
fn empty_workload_ends_immediately() {
    let run = fifo(machines(1), Vec::new());
    assert_eq!((run.jobs.len(), run.ended), (0, at(0)));
}

#[test]
fn job_without_tasks_ends_on_arrival() {
    let run = fifo(machines(1), vec![SimulatedJob::new("nothing", at(7))]);
    assert_eq!(end(&run, "nothing"), 7.0);
    assert_eq!(run.jobs[0].slowdown(), None);
}

#[test]
fn zero_length_tasks_end_at_start() {
    let job = SimulatedJob::new("quick", at(3)).with_maps(5, seconds(0));
    let both = SimulatedJob::new("both", at(3))
        .with_maps(2, seconds(0))
        .with_reduces(2, seconds(0), seconds(0));
    let run = fifo(machines(1), vec![job, both]);
    assert_eq!((end(&run, "quick"), end(&run, "both")), (3.0, 3.0));
}

#[test]
fn unsorted_stream_is_rejected() {
    let jobs = [SimulatedJob::new("b", at(9)), SimulatedJob::new("a", at(3))];
    let workload = Workload::stream(jobs.into_iter());
    let refused = Simulation::new(Box::new(Fifo::default()), machines(1), workload).run();
    let text = refused.expect_err("the workload is unsorted").to_string();
    assert_eq!(
        text,
        "a job at 3.000000s follows one at 9.000000s; sort the workload by submit time"
    );
}

#[test]
fn cut_off_run_accounts_for_unfinished_work() {
    let mut settings = machines(1);
    settings.until = Some(at(4));
    let run = fifo(
        settings,
        vec![SimulatedJob::new("long", at(1)).with_maps(1, seconds(10))],
    );
    assert_eq!(
        (run.unfinished, run.ended, run.slot_time.unfinished),
        (1, at(4), 3_000_000)
    );
}

#[test]
fn allocation_is_recorded_as_steps() {
    let mut settings = machines(2);
    settings.record_allocation = true;
    let mut jobs = vec![SimulatedJob::new("wide", at(0)).with_maps(3, seconds(4))];
    jobs.push(SimulatedJob::new("next", at(1)).with_maps(1, seconds(2)));
    let run = fifo(settings, jobs);
    let job = run.job("wide").unwrap().job;
    let levels = run.allocation.levels(job, napreduce_engine::TaskKind::Map);
    assert_eq!(levels, [(at(0), 2), (at(4), 1), (at(8), 0)]);
}

#[test]
fn cluster_without_slots_of_a_needed_kind_is_named() {
    let job = || {
        SimulatedJob::new("a", at(0))
            .with_maps(1, seconds(10))
            .with_reduces(1, seconds(0), seconds(5))
    };
    for (slots, kind) in [
        (Slots { map: 1, reduce: 0 }, "reduce"),
        (Slots { map: 0, reduce: 1 }, "map"),
    ] {
        let settings = SimulationSettings::new(2, slots);
        let run = Simulation::new(
            Box::new(Fifo::default()),
            settings,
            Workload::of(vec![job()]),
        )
        .run();
        let error = run.expect_err("it cannot end").to_string();
        let expected = format!("job_0001 has {kind}s to run at");
        assert!(error.starts_with(&expected), "{error}");
        assert!(
            error.contains(&format!("no {kind} slots"))
                && error.contains(&format!("--{kind}-slots")),
            "{error}"
        );
    }
}
