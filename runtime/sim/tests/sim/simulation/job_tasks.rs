//! The set-up and the clean-up task of a job.
//!
//! Owns answers worked out by hand, and bounds that hold for all. Does not own the form in files.

use super::*;
use napreduce_sim::OverheadPreset;

#[test]
fn they_start_with_a_heartbeat_and_are_heard_of_with_one() {
    let mut settings = machines(1);
    settings.overheads = OverheadPreset::Hadoop1.overheads();
    let job = SimulatedJob::new("job", at(1)).with_maps(1, seconds(5));
    let run = fifo(settings, vec![job]);
    // Set up from the heartbeat at 3 s on and heard of at 6 s; the map starts then and works until 13.63 s,
    // which is heard of at 15 s; cleaned up after by 17.63 s, heard of at 18 s.
    assert_eq!((end(&run, "job"), run.jobs[0].sojourn()), (18.0, seconds(17)));
    assert_eq!(run.books.useful, 5_000_000);
}

#[test]
fn without_overheads_they_take_no_time() {
    let mut settings = machines(2);
    settings.overheads.job_tasks = true;
    let job = SimulatedJob::new("job", at(1)).with_maps(2, seconds(5));
    assert_eq!(end(&fifo(settings, vec![job]), "job"), 6.0);
}

#[test]
fn a_run_that_is_cut_off_counts_jobs_that_are_being_set_up() {
    let mut settings = machines(1);
    settings.overheads = OverheadPreset::Hadoop1.overheads();
    settings.until = Some(at(4));
    let run = fifo(settings, vec![SimulatedJob::new("job", at(1)).with_maps(1, seconds(5))]);
    assert_eq!((run.unfinished, run.jobs.len()), (1, 0));
}
