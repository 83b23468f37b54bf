//! Reduces: they wait for maps while holding their slots, and never end before the last map. Hand-computed
//! cases.

use crate::simulation::{at, end, fifo, machines, seconds};
use napreduce_sim::SimulatedJob;

/// Four maps of 10 s on one slot, and a reduce that fetches for 8 s and works for 4 s.
fn job(slowstart_permille: u32) -> SimulatedJob {
    let mut job = SimulatedJob::new("job", at(0))
        .with_maps(4, seconds(10))
        .with_reduces(1, seconds(8), seconds(4));
    job.slowstart_permille = slowstart_permille;
    job
}

#[test]
fn reduce_without_slowstart_follows_maps() {
    let run = fifo(machines(1), vec![job(1000)]);
    assert_eq!(end(&run, "job"), 40.0 + 12.0);
    assert_eq!(
        (run.slot_time.waiting, run.slot_time.busy),
        (0, [40_000_000, 12_000_000])
    );
}

#[test]
fn reduce_with_slowstart_holds_slot_and_waits() {
    let run = fifo(machines(1), vec![job(250)]);
    // It starts at 10 s, fetches 2 s per map, and has one map left to fetch at 40 s.
    assert_eq!(end(&run, "job"), 40.0 + 2.0 + 4.0);
    assert_eq!(
        (
            run.slot_time.busy[1],
            run.slot_time.waiting,
            run.slot_time.useful
        ),
        (36_000_000, 24_000_000, 52_000_000)
    );
}

#[test]
fn slow_reduce_never_waits() {
    let mut job = SimulatedJob::new("job", at(0))
        .with_maps(4, seconds(1))
        .with_reduces(1, seconds(20), seconds(1));
    job.slowstart_permille = 250;
    let run = fifo(machines(1), vec![job]);
    assert_eq!((end(&run, "job"), run.slot_time.waiting), (22.0, 0));
}

#[test]
fn reduce_wait_counts_from_last_map() {
    let jobs = vec![
        SimulatedJob::new("first", at(0))
            .with_maps(1, seconds(1))
            .with_reduces(1, seconds(0), seconds(9)),
        SimulatedJob::new("second", at(0))
            .with_maps(1, seconds(1))
            .with_reduces(1, seconds(0), seconds(1)),
    ];
    let run = fifo(machines(1), jobs);
    assert_eq!(run.job("first").unwrap().reduce_wait, seconds(0));
    assert_eq!(run.job("second").unwrap().reduce_wait, seconds(8));
    assert_eq!(run.job("first").unwrap().reduces_waited, seconds(0));
    assert_eq!(run.job("second").unwrap().reduces_waited, seconds(8));
}

#[test]
fn reduces_waited_counts_each_reduce() {
    let job = SimulatedJob::new("job", at(0))
        .with_maps(1, seconds(1))
        .with_reduces(3, seconds(2), seconds(3));
    let run = fifo(machines(1), vec![job]);
    let job = run.job("job").unwrap();
    assert_eq!(
        (job.reduces_waited, job.reduces_held),
        (seconds(5 + 10), seconds(15))
    );
    let mut early = SimulatedJob::new("early", at(0))
        .with_maps(2, seconds(6))
        .with_reduces(1, seconds(2), seconds(3));
    early.slowstart_permille = 500;
    let run = fifo(machines(1), vec![early]);
    let early = run.job("early").unwrap();
    // It has half of its input after 7 s, and waits for the other half until the last map ends at 12 s.
    assert_eq!(
        (early.reduces_waited, early.reduces_held, early.reduces_idle),
        (seconds(0), seconds(10), seconds(5))
    );
}
