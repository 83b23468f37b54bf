//! Random events by seed, with truthful workers, and with lying workers and a hostile policy.

use napreduce_engine::scenarios::random::play;

/// The seeds to play: `NAPREDUCE_SEEDS`, or 200; `.ci/run` plays 2,000.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("NAPREDUCE_SEEDS").ok();
    0..asked.map_or(200, |count| {
        count.parse().expect("NAPREDUCE_SEEDS is a number")
    })
}

#[test]
fn random_runs_with_truthful_workers_hold_invariants() {
    seeds().for_each(|seed| drop(play(seed, false)));
}

#[test]
fn random_runs_with_lying_workers_hold_invariants() {
    seeds().for_each(|seed| drop(play(seed, true)));
}
