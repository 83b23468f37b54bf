//! The engine and exactly-once delivery in a model of a cluster with every kind of fault.
//!
//! `world` drives the model, `network` loses and repeats messages, `links` and `faults` deliver messages and
//! inject faults, `coordinator` is the engine with its journal, `worker` and `process` run tasks, `books`
//! checks the guarantees. `NAPREDUCE_SEEDS=N` runs N seeds instead of the default number.

mod books;
mod coordinator;
mod faults;
mod links;
mod network;
mod process;
mod worker;
mod world;

use std::collections::BTreeMap;

use world::World;

/// Plays a seed; prints the seed on stderr if it panics.
fn play(seed: u64) -> World {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was seed {}", self.0);
            }
        }
    }
    let _printed_on_panic = Seed(seed);
    let mut world = World::new(seed);
    world.play();
    world
}

fn seeds() -> u64 {
    let asked = std::env::var("NAPREDUCE_SEEDS").ok();
    asked.map_or(200, |count| {
        count.parse().expect("NAPREDUCE_SEEDS is a number")
    })
}

#[test]
fn every_job_ends_over_unreliable_network() {
    let mut happened: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..seeds() {
        for (what, count) in play(seed).happened() {
            *happened.entry(what).or_default() += count;
        }
    }
    // Each kind of fault occurred, and so did its consequence.
    let expected = [
        "message lost",
        "message repeated",
        "message overtaken",
        "link cut",
        "worker crashed",
        "worker declared lost",
        "worker superseded",
        "registration lost",
        "worker left",
        "coordinator crashed",
        "coordinator crashed before it acted",
        "snapshot taken",
        "recovered from a snapshot",
        "duplicate dropped",
        "gap refused",
        "attempt failed",
        "input missed",
        "attempt killed by an operator",
        "attempt duplicated",
        "attempt superseded",
        "worker excluded",
        "part that does not count",
        "job succeeded",
        "job failed",
        "job killed",
        "work saved",
        "output moved",
        "moved output read",
    ];
    for what in expected {
        let count = happened.remove(what).unwrap_or_default();
        assert!(
            count * 50 > seeds(),
            "{what}: only {count} times in {} seeds",
            seeds()
        );
    }
    assert!(happened.is_empty(), "not expected: {happened:?}");
}

#[test]
fn seed_determines_run() {
    for seed in 0..20 {
        assert_eq!(
            play(seed).journal_digest(),
            play(seed).journal_digest(),
            "seed {seed}"
        );
    }
}
