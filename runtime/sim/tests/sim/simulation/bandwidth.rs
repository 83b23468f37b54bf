//! Bandwidth sharing on a machine: hand-computed cases and general bounds.

use super::*;
use napreduce_sim::{MachineBandwidth, SimulatedMap, SimulatedReduce};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

fn slots(map: u32, reduce: u32, disk: Option<u64>, network: Option<u64>) -> SimulationSettings {
    let mut settings = SimulationSettings::new(1, Slots { map, reduce });
    settings.overheads.machine_bandwidth = Some(MachineBandwidth { disk, network });
    settings
}

/// A job of one map that reads `bytes` in `work` seconds.
fn reader(name: &str, from: u64, work: u64, bytes: u64) -> SimulatedJob {
    let mut job = SimulatedJob::new(name, at(from));
    job.maps.push(SimulatedMap {
        work: seconds(work),
        bytes,
        ..SimulatedMap::default()
    });
    job
}

#[test]
fn two_tasks_on_one_disk_take_twice_as_long() {
    let run = fifo(
        slots(2, 0, Some(100), None),
        vec![reader("a", 0, 10, 1000), reader("b", 0, 10, 1000)],
    );
    assert_eq!((end(&run, "a"), end(&run, "b")), (20.0, 20.0));
    assert_eq!(
        (run.slot_time.useful, run.slot_time.sharing),
        (20_000_000, 20_000_000)
    );
}

#[test]
fn later_task_slows_earlier_one() {
    // Job a runs alone for 4 s. Both then run at half pace until a completes its other 6 s at 16 s; b has 4 s
    // left on its own.
    let run = fifo(
        slots(2, 0, Some(100), None),
        vec![reader("a", 0, 10, 1000), reader("b", 4, 10, 1000)],
    );
    assert_eq!((end(&run, "a"), end(&run, "b")), (16.0, 20.0));
}

#[test]
fn light_tasks_are_not_slowed() {
    // The light task wants 10 of 100 bytes per second, so the heavy one gets 90 of its 100 until 10 s.
    let run = fifo(
        slots(2, 0, Some(100), None),
        vec![reader("light", 0, 10, 100), reader("heavy", 0, 10, 1000)],
    );
    assert_eq!((end(&run, "light"), end(&run, "heavy")), (10.0, 11.0));
    let idle = fifo(
        slots(2, 0, Some(100), None),
        vec![reader("a", 0, 10, 0), reader("b", 0, 10, 1000)],
    );
    assert_eq!(
        (end(&idle, "a"), end(&idle, "b"), idle.slot_time.sharing),
        (10.0, 10.0, 0)
    );
}

#[test]
fn machines_have_separate_bandwidth() {
    let mut settings = slots(1, 0, Some(100), None);
    settings.machines = 2;
    let run = fifo(
        settings,
        vec![reader("a", 0, 10, 1000), reader("b", 0, 10, 1000)],
    );
    assert_eq!((end(&run, "a"), end(&run, "b")), (10.0, 10.0));
}

#[test]
fn reduces_share_network_then_disks() {
    let mut job = SimulatedJob::new("job", at(0)).with_maps(1, seconds(1));
    let reduce = SimulatedReduce {
        shuffle: seconds(5),
        reduce: seconds(10),
        bytes: 1000,
    };
    job.reduces = vec![reduce.clone(), reduce];
    // Two reduces at 200 bytes per second fetch over a network of 200 for 10 s, then read at 100 each from a
    // disk of 100 for 20 s.
    let run = fifo(slots(1, 2, Some(100), Some(200)), vec![job.clone()]);
    assert_eq!(end(&run, "job"), 1.0 + 10.0 + 20.0);
    let unlimited = fifo(slots(1, 2, None, None), vec![job]);
    assert_eq!(end(&unlimited, "job"), 1.0 + 5.0 + 10.0);
}

#[test]
fn sufficient_bandwidth_equals_no_limit() {
    let jobs = || {
        (0..4)
            .map(|number| reader(&format!("job-{number}"), number, 10, 1000))
            .collect::<Vec<_>>()
    };
    let limited = fifo(slots(3, 0, Some(300), None), jobs());
    let free = fifo(
        SimulationSettings::new(1, Slots { map: 3, reduce: 0 }),
        jobs(),
    );
    assert_eq!(limited.jobs, free.jobs);
    assert_eq!(limited.slot_time.sharing, 0);
}

#[test]
fn sharing_respects_bandwidth_and_loses_no_work() {
    for seed in 0..40 {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut jobs: Vec<SimulatedJob> = (0..12)
            .map(|number| {
                let from = random.random_range(0..60);
                reader(
                    &format!("job-{number}"),
                    from,
                    random.random_range(1..20),
                    random.random_range(1..5000),
                )
            })
            .collect();
        jobs.sort_by_key(|job| job.submit);
        let bytes: u64 = jobs.iter().map(|job| job.maps[0].bytes).sum();
        let work: u64 = jobs.iter().map(|job| job.maps[0].work.0).sum();
        let limit = random.random_range(20..400);
        let run = fifo(slots(4, 0, Some(limit), None), jobs.clone());
        let first = jobs.iter().map(|job| job.submit).min().unwrap();
        let most = u128::from(limit) * u128::from(run.ended.since(first).0) / 1_000_000;
        assert!(
            u128::from(bytes) <= most + 12,
            "seed {seed}: {bytes} bytes where {most} fit"
        );
        assert_eq!(run.slot_time.useful, work, "seed {seed}");
        // On a single slot there is no sharing, but a task above the bandwidth waits for its bytes. Paces are
        // rounded down.
        let single = fifo(slots(1, 0, Some(limit), None), jobs);
        assert!(
            run.ended.0 <= single.ended.0 + 1_000,
            "seed {seed}: {} and {}",
            run.ended,
            single.ended
        );
    }
}
