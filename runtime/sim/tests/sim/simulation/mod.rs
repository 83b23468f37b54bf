//! The simulation against answers worked out by hand, and the identities of its books.
//!
//! Owns the vocabulary: short jobs in seconds, and one call that runs them. Does not own the numeric cases of
//! others.

mod admission;
mod bandwidth;
mod chains;
mod checkpoints;
mod containers;
mod conversion;
mod failures;
mod job_tasks;
mod log;
mod overheads;
mod racks;
mod recording;
mod reduces;
mod telling;

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
    Simulation::new(Box::new(Fifo::default()), settings, Workload::of(jobs)).run().unwrap()
}

/// When a job ended, in seconds.
fn end(run: &Run, name: &str) -> f64 {
    run.job(name).unwrap().ended.0 as f64 / 1e6
}

#[test]
fn a_job_that_ends_when_another_comes_leaves_its_slot_to_it() {
    let first = SimulatedJob::new("first", at(0)).with_maps(1, seconds(10));
    let second = SimulatedJob::new("second", at(10)).with_maps(1, seconds(5));
    let run = fifo(machines(1), vec![first, second]);
    assert_eq!((end(&run, "first"), end(&run, "second")), (10.0, 15.0));
    assert_eq!((run.books.busy, run.books.useful), ([15_000_000, 0], 15_000_000));
    assert_eq!(run.books.overhead() + run.books.wasted + run.books.waiting, 0);
}

#[test]
fn an_empty_workload_ends_at_once() {
    let run = fifo(machines(1), Vec::new());
    assert_eq!((run.jobs.len(), run.ended), (0, at(0)));
}

#[test]
fn a_job_without_tasks_ends_when_it_comes() {
    let run = fifo(machines(1), vec![SimulatedJob::new("nothing", at(7))]);
    assert_eq!(end(&run, "nothing"), 7.0);
    assert_eq!(run.jobs[0].slowdown(), 1.0);
}

#[test]
fn tasks_that_take_no_time_end_when_they_start() {
    let job = SimulatedJob::new("quick", at(3)).with_maps(5, seconds(0));
    let both =
        SimulatedJob::new("both", at(3)).with_maps(2, seconds(0)).with_reduces(2, seconds(0), seconds(0));
    let run = fifo(machines(1), vec![job, both]);
    assert_eq!((end(&run, "quick"), end(&run, "both")), (3.0, 3.0));
}

#[test]
fn work_without_slots_is_an_error_and_no_endless_run() {
    let settings = SimulationSettings::new(1, Slots { map: 1, reduce: 0 });
    let job =
        SimulatedJob::new("stuck", at(0)).with_maps(1, seconds(1)).with_reduces(1, seconds(0), seconds(1));
    let stuck = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job])).run();
    let text = stuck.expect_err("there is no reduce slot").to_string();
    assert!(text.starts_with("nothing happens after 1.000000s, but 1 jobs have not ended"), "{text}");
}

#[test]
fn a_stream_that_goes_back_in_time_is_refused() {
    let jobs = [SimulatedJob::new("b", at(9)), SimulatedJob::new("a", at(3))];
    let workload = Workload::stream(jobs.into_iter());
    let refused = Simulation::new(Box::new(Fifo::default()), machines(1), workload).run();
    let text = refused.expect_err("it is out of order").to_string();
    assert_eq!(
        text,
        "a job is to be submitted at 3.000000s, after one at 9.000000s; sort the workload by submit time"
    );
}

#[test]
fn a_run_that_is_cut_off_accounts_for_what_is_unfinished() {
    let mut settings = machines(1);
    settings.until = Some(at(4));
    let run = fifo(settings, vec![SimulatedJob::new("long", at(1)).with_maps(1, seconds(10))]);
    assert_eq!((run.unfinished, run.ended, run.books.unfinished), (1, at(4), 3_000_000));
}

#[test]
fn slots_held_are_kept_as_steps_when_asked_for() {
    let mut settings = machines(2);
    settings.record_allocation = true;
    let mut jobs = vec![SimulatedJob::new("wide", at(0)).with_maps(3, seconds(4))];
    jobs.push(SimulatedJob::new("next", at(1)).with_maps(1, seconds(2)));
    let run = fifo(settings, jobs);
    let job = run.job("wide").unwrap().job;
    let levels = run.allocation.levels(job, napreduce_engine::TaskKind::Map);
    assert_eq!(levels, [(at(0), 2), (at(4), 1), (at(8), 0)]);
}
