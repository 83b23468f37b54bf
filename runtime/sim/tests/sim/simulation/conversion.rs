//! Conversion of a suspended task whose worker stays busy while another one becomes idle: benefit and cost,
//! in hand-computed cases.

use napreduce_engine::{Conversion, Converted, Ratio, Slots, TaskKind};
use napreduce_schedulers::trigger::{Trigger, TriggerSettings};
use napreduce_sim::{
    Cost, ProgressMark, Run, SimulatedJob, Simulation, SimulationSettings, Workload,
};

use crate::simulation::{at, end, seconds};

/// `low` (20 s) is suspended on the first worker after 5 s for `high` (30 s), while `other` holds the second
/// worker until 12 s.
fn settings(convert: Option<Converted>) -> SimulationSettings {
    let mut settings = SimulationSettings::new(2, Slots { map: 1, reduce: 1 });
    settings.engine.preemption.convert = convert.map(|to| Conversion {
        after: seconds(4),
        to,
    });
    let share = Ratio::new(1, 4);
    settings.marks = vec![ProgressMark {
        job: "low".into(),
        kind: TaskKind::Map,
        index: 0,
        share,
    }];
    settings
}

fn run(settings: SimulationSettings) -> Run {
    let rules = "when progress(low) >= 1/4 do submit(high), suspend(low)\nwhen started(high) do release(low)";
    let policy = Trigger::new(&TriggerSettings {
        rules: rules.to_owned(),
    })
    .unwrap();
    let low = SimulatedJob::new("low", at(0)).with_maps(1, seconds(20));
    let other = SimulatedJob::new("other", at(0)).with_maps(1, seconds(12));
    let high = SimulatedJob::new("high", at(0)).with_maps(1, seconds(30));
    let workload = Workload::of(vec![low, other]).with_triggered(high);
    Simulation::new(Box::new(policy), settings, workload)
        .run()
        .unwrap()
}

#[test]
fn suspended_task_waits_without_conversion() {
    let run = run(settings(None));
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 50.0));
}

#[test]
fn converted_task_continues_on_free_worker() {
    let run = run(settings(Some(Converted::Checkpoint)));
    // After 5 s of work, the other 15 s start at 12 s.
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 27.0));
    assert_eq!((run.slot_time.wasted, run.slot_time.overhead()), (0, 0));
    let preemptions = &run.job("low").unwrap().preemptions;
    assert_eq!(
        (
            preemptions.suspend,
            preemptions.checkpoint,
            preemptions.kill
        ),
        (1, 1, 0)
    );
}

#[test]
fn conversion_by_kill_restarts() {
    let run = run(settings(Some(Converted::Kill)));
    assert_eq!((end(&run, "low"), run.slot_time.wasted), (32.0, 5_000_000));
}

#[test]
fn conversion_takes_time_but_no_slot() {
    let mut settings = settings(Some(Converted::Checkpoint));
    settings.overheads.resume = Cost::fixed(seconds(1));
    settings.overheads.checkpoint_write = Cost::fixed(seconds(2));
    settings.overheads.checkpoint_read = Cost::fixed(seconds(3));
    settings.overheads.restore_elsewhere = seconds(4);
    let run = run(settings);
    // Woken at 12 s, saved at 15 s, running at 22 s.
    assert_eq!((end(&run, "high"), end(&run, "low")), (35.0, 37.0));
    assert_eq!(
        (run.slot_time.checkpoint, run.slot_time.launch),
        (0, 7_000_000)
    );
}
