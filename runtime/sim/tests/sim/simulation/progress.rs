//! What attempts tell of their progress.
//!
//! Owns answers worked out by hand, and bounds that hold for all. Does not own the form in files.

use super::*;
use napreduce_engine::TaskKind;
use napreduce_sim::ToldProgress;

/// What the coordinator knows after so many seconds of the progress of each of a job's maps of 10 s,
/// in hundredths.
fn known_after(second: u64, maps: u32, progress: ToldProgress) -> Vec<u32> {
    let mut settings = SimulationSettings::new(1, Slots { map: maps, reduce: 0 });
    (settings.progress, settings.progress_period) = (progress, Some(seconds(5)));
    let job = SimulatedJob::new("job", at(0)).with_maps(maps, seconds(10));
    let mut simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]));
    while simulation.now() < at(second) {
        assert!(simulation.step().unwrap(), "it ends before {second} s");
    }
    let view = simulation.view();
    let told =
        |attempt: &napreduce_engine::Attempt| attempt.progress_millionths().unwrap_or_default() / 10_000;
    view.attempts().filter(|attempt| attempt.id().task.kind == TaskKind::Map).map(told).collect()
}

#[test]
fn it_is_the_truth_unless_something_else_is_asked_for() {
    assert_eq!(known_after(5, 2, ToldProgress::default()), [50, 50]);
}

#[test]
fn it_may_lag_behind_or_run_ahead() {
    assert_eq!(known_after(5, 1, ToldProgress { exponent: 2.0, error: 0.0 }), [25]);
    assert_eq!(known_after(5, 1, ToldProgress { exponent: 0.5, error: 0.0 }), [70]);
}

#[test]
fn each_attempt_has_an_error_of_its_own() {
    let told = known_after(5, 40, ToldProgress { exponent: 1.0, error: 0.4 });
    assert!(told.iter().all(|told| (30..=70).contains(told)), "{told:?}");
    let (least, most) = (told.iter().min().unwrap(), told.iter().max().unwrap());
    assert!(*least < 40 && *most > 60, "{told:?}");
    assert_eq!(told, known_after(5, 40, ToldProgress { exponent: 1.0, error: 0.4 }));
}
