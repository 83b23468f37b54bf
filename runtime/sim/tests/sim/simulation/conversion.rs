//! A suspended task whose worker stays busy while another one falls idle: what conversion saves and what it
//! costs.
//!
//! Owns answers worked out by hand. Does not own when an attempt is converted: the engine's tests have that.

use napreduce_engine::{Conversion, Converted, Ratio, Slots, TaskKind};
use napreduce_schedulers::trigger::{Trigger, TriggerSettings};
use napreduce_sim::{Cost, ProgressMark, Run, SimulatedJob, Simulation, SimulationSettings, Workload};

use crate::simulation::{at, end, seconds};

/// `low` (20 s) is suspended on the first worker after 5 s, for `high` (30 s), while `other` holds the second
/// one until 12 s.
fn settings(convert: Option<Converted>) -> SimulationSettings {
    let mut settings = SimulationSettings::new(2, Slots { map: 1, reduce: 1 });
    settings.engine.preemption.convert = convert.map(|to| Conversion { after: seconds(4), to });
    let share = Ratio::new(1, 4);
    settings.marks = vec![ProgressMark { job: "low".into(), kind: TaskKind::Map, index: 0, share }];
    settings
}

fn run(settings: SimulationSettings) -> Run {
    let rules = "when progress(low) >= 1/4 do submit(high), suspend(low)\nwhen started(high) do release(low)";
    let policy = Trigger::new(&TriggerSettings { rules: rules.to_owned() }).unwrap();
    let low = SimulatedJob::new("low", at(0)).with_maps(1, seconds(20));
    let other = SimulatedJob::new("other", at(0)).with_maps(1, seconds(12));
    let high = SimulatedJob::new("high", at(0)).with_maps(1, seconds(30));
    let workload = Workload::of(vec![low, other]).with_triggered(high);
    Simulation::new(Box::new(policy), settings, workload).run().unwrap()
}

#[test]
fn without_conversion_it_waits_for_its_worker() {
    let run = run(settings(None));
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 50.0));
}

#[test]
fn converted_it_goes_on_where_a_slot_falls_free() {
    let run = run(settings(Some(Converted::Checkpoint)));
    // Worked for 5 s, goes on with the other 15 at 12.
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 27.0));
    assert_eq!((run.books.wasted, run.books.overhead()), (0, 0));
    let preemptions = &run.job("low").unwrap().preemptions;
    assert_eq!((preemptions.suspend, preemptions.checkpoint, preemptions.kill), (1, 1, 0));
}

#[test]
fn a_conversion_by_kill_begins_again() {
    let run = run(settings(Some(Converted::Kill)));
    assert_eq!((end(&run, "low"), run.books.wasted), (32.0, 5_000_000));
}

#[test]
fn waking_saving_and_fetching_again_take_their_time_and_no_slot() {
    let mut settings = settings(Some(Converted::Checkpoint));
    settings.overheads.resume = Cost::fixed(seconds(1));
    settings.overheads.checkpoint_write = Cost::fixed(seconds(2));
    settings.overheads.checkpoint_read = Cost::fixed(seconds(3));
    settings.overheads.restore_elsewhere = seconds(4);
    let run = run(settings);
    // Woken at 12, saved at 15, at work again at 22.
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 37.0));
    assert_eq!((run.books.checkpoint, run.books.launch), (0, 7_000_000));
}
