//! Models of reported progress.

use super::*;
use napreduce_engine::TaskKind;
use napreduce_sim::ProgressModel;

/// Returns the progress known to the coordinator after `second` seconds, in percent, for each of `maps` maps
/// of 10 s.
fn known_after(second: u64, maps: u32, progress: ProgressModel) -> Vec<u32> {
    let mut settings = SimulationSettings::new(1, Slots { map: maps, reduce: 0 });
    (settings.progress, settings.progress_period) = (progress, Some(seconds(5)));
    let job = SimulatedJob::new("job", at(0)).with_maps(maps, seconds(10));
    let mut simulation = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]));
    while simulation.now() < at(second) {
        assert!(simulation.step().unwrap(), "the run ends before {second} s");
    }
    let view = simulation.view();
    let told =
        |attempt: &napreduce_engine::Attempt| attempt.progress_millionths().unwrap_or_default() / 10_000;
    view.attempts().filter(|attempt| attempt.id().task.kind == TaskKind::Map).map(told).collect()
}

#[test]
fn progress_is_exact_by_default() {
    assert_eq!(known_after(5, 2, ProgressModel::default()), [50, 50]);
}

#[test]
fn progress_exponent_lags_or_leads() {
    assert_eq!(known_after(5, 1, ProgressModel { exponent: 2.0, error: 0.0 }), [25]);
    assert_eq!(known_after(5, 1, ProgressModel { exponent: 0.5, error: 0.0 }), [70]);
}

#[test]
fn progress_error_differs_per_attempt() {
    let told = known_after(5, 40, ProgressModel { exponent: 1.0, error: 0.4 });
    assert!(told.iter().all(|told| (30..=70).contains(told)), "{told:?}");
    let (least, most) = (told.iter().min().unwrap(), told.iter().max().unwrap());
    assert!(*least < 40 && *most > 60, "{told:?}");
    assert_eq!(told, known_after(5, 40, ProgressModel { exponent: 1.0, error: 0.4 }));
}
