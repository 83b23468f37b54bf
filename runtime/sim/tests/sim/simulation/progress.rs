//! Models of reported progress.

use super::*;
use napreduce_engine::TaskKind;
use napreduce_sim::ProgressModel;

/// Returns the progress known to the coordinator after `second` seconds, in percent, for each of `maps` maps
/// of 10 s.
fn known_after(second: u64, maps: u32, progress: ProgressModel) -> Vec<u32> {
    let mut settings = SimulationSettings::new(
        1,
        Slots {
            map: maps,
            reduce: 0,
        },
    );
    (settings.progress, settings.progress_period) = (progress, Some(seconds(5)));
    let job = SimulatedJob::new("job", at(0)).with_maps(maps, seconds(10));
    let mut simulation =
        Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]));
    while simulation.now() < at(second) {
        assert!(simulation.step().unwrap(), "the run ends before {second} s");
    }
    let view = simulation.view();
    let told = |attempt: &napreduce_engine::Attempt| {
        attempt.progress_millionths().unwrap_or_default() / 10_000
    };
    view.attempts()
        .filter(|attempt| attempt.id().task.kind == TaskKind::Map)
        .map(told)
        .collect()
}

#[test]
fn progress_is_exact_by_default() {
    assert_eq!(known_after(5, 2, ProgressModel::default()), [50, 50]);
}

#[test]
fn progress_exponent_lags_or_leads() {
    assert_eq!(
        known_after(
            5,
            1,
            ProgressModel {
                exponent: 2.0,
                error: 0.0
            }
        ),
        [25]
    );
    assert_eq!(
        known_after(
            5,
            1,
            ProgressModel {
                exponent: 0.5,
                error: 0.0
            }
        ),
        [70]
    );
}

#[test]
fn progress_error_differs_per_attempt() {
    let told = known_after(
        5,
        40,
        ProgressModel {
            exponent: 1.0,
            error: 0.4,
        },
    );
    assert!(told.iter().all(|told| (30..=70).contains(told)), "{told:?}");
    let least = told.iter().min().unwrap();
    let most = told.iter().max().unwrap();
    assert!(*least < 40 && *most > 60, "{told:?}");
    assert_eq!(
        told,
        known_after(
            5,
            40,
            ProgressModel {
                exponent: 1.0,
                error: 0.4
            }
        )
    );
}

/// Returns the events and the instants of a run that reports progress every second.
fn events_and_instants(job: SimulatedJob) -> (u64, u64) {
    let mut settings = SimulationSettings::new(1, Slots { map: 1, reduce: 1 });
    settings.progress_period = Some(seconds(1));
    let mut simulation =
        Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]));
    let mut instants = 0;
    while simulation.step().unwrap() {
        instants += 1;
    }
    (simulation.so_far().events, instants)
}

const DAY: u64 = 86_400;

#[test]
fn day_long_task_reports_a_thousand_times() {
    let (events, instants) =
        events_and_instants(SimulatedJob::new("day", at(0)).with_maps(1, seconds(DAY)));
    assert!(
        (980..1_010).contains(&events) && instants < 1_010,
        "{events} events in {instants} instants"
    );
    let (events, _) =
        events_and_instants(SimulatedJob::new("minute", at(0)).with_maps(1, seconds(60)));
    assert!(
        (60..80).contains(&events),
        "short tasks report every second: {events}"
    );
}

#[test]
fn reduce_that_waits_for_a_day_reports_less_and_less() {
    let mut job = SimulatedJob::new("day", at(0))
        .with_maps(1, seconds(DAY))
        .with_reduces(1, seconds(10), seconds(10));
    job.slowstart_permille = 0;
    let (events, instants) = events_and_instants(job);
    assert!(
        events < 8_000 && instants < 8_000,
        "{events} events in {instants} instants"
    );
}

#[test]
fn long_run_with_reports_only_is_not_taken_for_a_stall() {
    // Tasks of different lengths report at different instants, and none of them ends for a day.
    let mut job = SimulatedJob::new("days", at(0)).with_maps(400, seconds(DAY));
    for (number, map) in (0..).zip(&mut job.maps) {
        map.work = seconds(DAY + 97 * number);
    }
    let mut settings = SimulationSettings::new(
        1,
        Slots {
            map: 400,
            reduce: 0,
        },
    );
    settings.progress_period = Some(Span::from_millis(100));
    let run = Simulation::new(Box::new(Fifo::default()), settings, Workload::of(vec![job]))
        .run()
        .unwrap();
    assert_eq!(run.jobs.len(), 1);
}
