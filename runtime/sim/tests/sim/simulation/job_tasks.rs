//! The setup and cleanup tasks of jobs: hand-computed cases.

use super::*;
use napreduce_sim::OverheadPreset;

#[test]
fn job_tasks_start_and_report_with_heartbeats() {
    let mut settings = machines(1);
    settings.overheads = OverheadPreset::Hadoop1.overheads();
    let job = SimulatedJob::new("job", at(1)).with_maps(1, seconds(5));
    let run = fifo(settings, vec![job]);
    // Setup runs from the heartbeat at 3 s and is reported at 6 s. The map then works until 13.63 s, reported
    // at 15 s. Cleanup runs until 17.63 s, reported at 18 s.
    assert_eq!(
        (end(&run, "job"), run.jobs[0].sojourn()),
        (18.0, seconds(17))
    );
    assert_eq!(run.slot_time.useful, 5_000_000);
}

#[test]
fn job_tasks_take_no_time_without_overheads() {
    let mut settings = machines(2);
    settings.overheads.job_tasks = true;
    let job = SimulatedJob::new("job", at(1)).with_maps(2, seconds(5));
    assert_eq!(end(&fifo(settings, vec![job]), "job"), 6.0);
}

#[test]
fn cut_off_run_counts_jobs_in_setup() {
    let mut settings = machines(1);
    settings.overheads = OverheadPreset::Hadoop1.overheads();
    settings.until = Some(at(4));
    let run = fifo(
        settings,
        vec![SimulatedJob::new("job", at(1)).with_maps(1, seconds(5))],
    );
    assert_eq!((run.unfinished, run.jobs.len()), (1, 0));
}
