//! Random events by seed: workers that tell the truth, and workers and a policy that do not.
//!
//! Owns how many seeds are played. What is held against a run is the scenarios' own.

use napreduce_engine::scenarios::random::play;

/// The seeds to play: 2,000, or as many as `NAPREDUCE_SEEDS` says.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("NAPREDUCE_SEEDS").ok();
    0..asked.map_or(2_000, |count| count.parse().expect("NAPREDUCE_SEEDS is a number"))
}

#[test]
fn truthful_workers_that_fail_race_and_vanish() {
    seeds().for_each(|seed| drop(play(seed, false)));
}

#[test]
fn workers_that_lie_and_a_policy_that_asks_for_the_impossible() {
    seeds().for_each(|seed| drop(play(seed, true)));
}
