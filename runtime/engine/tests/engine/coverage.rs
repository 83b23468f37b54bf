//! Coverage of the random runs: each listed behavior occurs.

use std::collections::BTreeMap;

use napreduce_engine::{Effect, Order, Record, Requester};

use napreduce_engine::scenarios::random::play;

#[test]
fn random_runs_cover_all_behaviors() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..600 {
        let run = play(seed, false);
        for effect in run.effects.iter().flatten() {
            let what = match effect {
                Effect::Send {
                    order: Order::Suspend { .. },
                    ..
                } => "suspend",
                Effect::Send {
                    order: Order::Resume { .. },
                    ..
                } => "resume",
                Effect::Send {
                    order: Order::Checkpoint { .. },
                    ..
                } => "checkpoint",
                Effect::Send {
                    order: Order::MoreInputs { .. },
                    ..
                } => "more inputs",
                Effect::Send {
                    order: Order::Kill { .. },
                    ..
                } => "kill",
                Effect::WorkerMayLeave { .. } => "leave",
                Effect::Record(Record::OutputMoved(_)) => "output moved",
                Effect::Record(Record::AttemptLaunched {
                    duplicate_of: Some(_),
                    ..
                }) => "duplicate",
                Effect::Record(Record::WorkerExcluded { .. }) => "excluded",
                Effect::Record(Record::WorkerShort { lacks: Some(_), .. }) => "short",
                Effect::Record(Record::WorkerShort { .. }) => "short no more",
                Effect::Record(Record::TaskIsolated { .. }) => "isolated",
                Effect::Record(Record::SuspendRefused { reason, .. })
                    if reason.contains("suspended-max") =>
                {
                    "refused when ordered"
                }
                Effect::Record(Record::SuspendRefused { .. }) => "refused",
                Effect::Record(Record::Converted {
                    by: Requester::Engine,
                    ..
                }) => "given up",
                Effect::Record(Record::Converted {
                    by: Requester::Operator,
                    ..
                }) => "given up by hand",
                Effect::Record(Record::AttemptHeld { .. }) => "held",
                Effect::Record(Record::AttemptReleased { .. }) => "released",
                Effect::Record(Record::JobHeld { .. }) => "paused",
                Effect::Record(Record::JobReleased { .. }) => "goes on",
                _ => continue,
            };
            *seen.entry(what).or_default() += 1;
        }
        let tally = run.tally();
        for (what, count) in [
            ("stale", tally.stale_reports),
            ("declined", tally.slots_declined),
            ("satisfied", tally.requests_satisfied),
            ("forced", tally.requests_forced),
            ("cancelled", tally.requests_cancelled),
        ] {
            *seen.entry(what).or_default() += count as u32;
        }
    }
    assert_eq!(seen.len(), 25, "{seen:?}");
    // Behaviors that need a combination of rare events are rare.
    let least = |what: &str| {
        if what.starts_with("given up") || what == "isolated" || what == "refused when ordered" {
            1
        } else {
            15
        }
    };
    assert!(
        seen.iter().all(|(what, &count)| count >= least(what)),
        "{seen:?}"
    );
}
