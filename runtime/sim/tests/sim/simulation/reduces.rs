//! Reduces: that they wait for maps, hold their slots meanwhile, and never end before the last of them.
//!
//! Owns answers worked out by hand. Does not own the maps.

use crate::simulation::{at, end, fifo, machines, seconds};
use napreduce_sim::SimulatedJob;

/// Four maps of 10 s on one slot, and a reduce that fetches for 8 s and works for 4 s.
fn job(slowstart_permille: u32) -> SimulatedJob {
    let mut job =
        SimulatedJob::new("job", at(0)).with_maps(4, seconds(10)).with_reduces(1, seconds(8), seconds(4));
    job.slowstart_permille = slowstart_permille;
    job
}

#[test]
fn without_slow_start_the_reduce_comes_after_the_maps() {
    let run = fifo(machines(1), vec![job(1000)]);
    assert_eq!(end(&run, "job"), 40.0 + 12.0);
    assert_eq!((run.books.waiting, run.books.busy), (0, [40_000_000, 12_000_000]));
}

#[test]
fn with_slow_start_it_holds_its_slot_and_waits_for_outputs() {
    let run = fifo(machines(1), vec![job(250)]);
    // It starts at 10, fetches 2 s of every map, and has one map to fetch at 40.
    assert_eq!(end(&run, "job"), 40.0 + 2.0 + 4.0);
    assert_eq!(
        (run.books.busy[1], run.books.waiting, run.books.useful),
        (36_000_000, 24_000_000, 52_000_000)
    );
}

#[test]
fn a_reduce_that_fetches_slowly_never_waits() {
    let mut job =
        SimulatedJob::new("job", at(0)).with_maps(4, seconds(1)).with_reduces(1, seconds(20), seconds(1));
    job.slowstart_permille = 250;
    let run = fifo(machines(1), vec![job]);
    assert_eq!((end(&run, "job"), run.books.waiting), (22.0, 0));
}

#[test]
fn waiting_for_a_reduce_slot_counts_from_the_last_map() {
    let jobs = vec![
        SimulatedJob::new("first", at(0)).with_maps(1, seconds(1)).with_reduces(1, seconds(0), seconds(9)),
        SimulatedJob::new("second", at(0)).with_maps(1, seconds(1)).with_reduces(1, seconds(0), seconds(1)),
    ];
    let run = fifo(machines(1), jobs);
    assert_eq!(run.job("first").unwrap().reduce_wait, seconds(0));
    assert_eq!(run.job("second").unwrap().reduce_wait, seconds(8));
    assert_eq!(run.job("first").unwrap().reduces_waited, seconds(0));
    assert_eq!(run.job("second").unwrap().reduces_waited, seconds(8));
}

#[test]
fn every_reduce_waits_for_its_own_slot() {
    let job =
        SimulatedJob::new("job", at(0)).with_maps(1, seconds(1)).with_reduces(3, seconds(2), seconds(3));
    let run = fifo(machines(1), vec![job]);
    let job = run.job("job").unwrap();
    assert_eq!((job.reduces_waited, job.reduces_held), (seconds(5 + 10), seconds(15)));
    let mut early =
        SimulatedJob::new("early", at(0)).with_maps(2, seconds(6)).with_reduces(1, seconds(2), seconds(3));
    early.slowstart_permille = 500;
    let run = fifo(machines(1), vec![early]);
    let early = run.job("early").unwrap();
    // It has half of its input after 7 s, and waits for the other half until the last map is done after 12.
    assert_eq!(
        (early.reduces_waited, early.reduces_held, early.reduces_idle),
        (seconds(0), seconds(10), seconds(5))
    );
}
