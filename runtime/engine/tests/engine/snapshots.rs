//! Snapshots that cannot be restored: of another version, of another policy, or damaged. `random` tests valid
//! snapshots.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use napreduce_engine::scenarios::{InOrder, spec};
use napreduce_engine::{
    Effect, Engine, EngineSettings, EngineSnapshot, Event, JobId, Slots, SnapshotError, Time,
    WorkerId,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use serde_json::Value;

use napreduce_engine::scenarios::random::RandomPolicy;
use napreduce_engine::scenarios::random::play_until;

fn restore(image: Value, seed: u64) -> Result<Engine, String> {
    let snapshot: EngineSnapshot =
        serde_json::from_value(image).map_err(|error| error.to_string())?;
    let policy = RandomPolicy::new(seed, false, Arc::new(AtomicBool::new(true)));
    Engine::restore(snapshot, Box::new(policy), EngineSettings::default())
        .map_err(|error| error.to_string())
}

fn image(seed: u64, events: u32) -> Value {
    serde_json::to_value(play_until(seed, events).snapshot()).expect("a snapshot is plain data")
}

#[test]
fn snapshot_of_other_version_is_refused() {
    let mut image = image(1, 10);
    image["version"] = 77.into();
    assert_eq!(
        restore(image, 1).err().as_deref(),
        Some(
            "the snapshot has version 77, but this program reads version 5; use the program that wrote it"
        )
    );
}

#[test]
fn state_of_other_policy_is_refused() {
    let snapshot: EngineSnapshot = serde_json::from_value(image(1, 10)).expect("just written");
    let refused = Engine::restore(
        snapshot.clone(),
        Box::new(InOrder),
        EngineSettings::default(),
    );
    assert!(matches!(refused.err(), Some(SnapshotError::Policy { .. })));
    let calm = Arc::new(AtomicBool::new(true));
    let fresh = Engine::new(Box::new(InOrder), EngineSettings::default()).snapshot();
    let refused = Engine::restore(
        fresh,
        Box::new(RandomPolicy::new(1, false, calm)),
        EngineSettings::default(),
    );
    let text = refused.err().map(|error| error.to_string());
    assert!(
        text.as_deref()
            .is_some_and(|text| text.contains("no saved number of calls")),
        "{text:?}"
    );
}

#[test]
fn attempt_on_unknown_worker_is_reported() {
    let mut image = image(3, 0);
    image["cluster"]["workers"] = Value::Array(Vec::new());
    let refused = restore(image, 3).err();
    assert!(
        refused
            .as_deref()
            .is_some_and(|text| text.contains(" runs on the unknown worker worker_")),
        "{refused:?}"
    );
}

/// A thousand workers join and are lost or leave, and as many jobs end. The engine keeps only the fact that
/// they existed.
#[test]
fn ended_jobs_and_workers_take_no_space() {
    let mut engine = Engine::new(Box::new(InOrder), EngineSettings::default());
    let slots = Slots { map: 1, reduce: 0 };
    let size = |engine: &Engine| {
        serde_json::to_string(&engine.snapshot())
            .expect("plain data")
            .len()
    };
    let mut sizes = Vec::new();
    let mut at = 0;
    for number in 1..=1_000 {
        let worker = WorkerId(number);
        let job = JobId(number);
        at += 1;
        let host = "host".to_owned();
        let rack = format!("/rack-{number}");
        let mut gone = vec![
            Event::WorkerJoined {
                worker,
                slots,
                host,
                rack,
            },
            Event::JobSubmitted {
                job,
                spec: spec(1, 0),
            },
        ];
        gone.push(Event::JobKillRequested {
            job,
            reason: "enough".to_owned(),
        });
        if number > 500 {
            gone.push(Event::WorkerDrainRequested {
                worker,
                hand_back: true,
                grace: None,
            });
        }
        gone.push(Event::WorkerLost {
            worker,
            crashed: false,
        });
        engine.handle_batch(Time(at), &gone);
        sizes.push(size(&engine));
    }
    assert!(
        sizes[999] < sizes[10] + 64,
        "{} bytes after 10, {} after 1,000",
        sizes[10],
        sizes[999]
    );
    let image = serde_json::to_value(engine.snapshot()).expect("plain data");
    let snapshot = serde_json::from_value(image).expect("as it was written");
    let mut engine =
        Engine::restore(snapshot, Box::new(InOrder), EngineSettings::default()).expect("its own");
    for event in [
        Event::WorkerJoined {
            worker: WorkerId(500),
            slots,
            host: "host".to_owned(),
            rack: String::new(),
        },
        Event::JobSubmitted {
            job: JobId(500),
            spec: spec(1, 0),
        },
    ] {
        let effects = engine.handle_batch(Time(at), &[event]);
        assert!(
            matches!(effects.as_slice(), [Effect::Warn { .. }]),
            "{effects:?}"
        );
    }
}

/// Returns every value inside a JSON value, in order.
fn places(value: &mut Value) -> Vec<&mut Value> {
    if !value.is_array() && !value.is_object() {
        return vec![value];
    }
    match value {
        Value::Array(all) => all.iter_mut().flat_map(places).collect(),
        Value::Object(all) => all.values_mut().flat_map(places).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn damaged_snapshot_is_refused_or_harmless() {
    let mut refused = 0;
    let mut accepted = 0;
    for seed in 0..100 {
        let whole = image(seed, 60);
        for round in 0..20 {
            let mut rng = Pcg32::seed_from_u64(seed << 8 | round);
            let mut damaged = whole.clone();
            let mut places = places(&mut damaged);
            let chosen = rng.random_range(0..places.len());
            let place = &mut places[chosen];
            **place = match place.as_u64() {
                Some(number) => [number + 1, number.saturating_sub(1), 0, 4_000_000_000]
                    [rng.random_range(0..4)]
                .into(),
                None => [
                    Value::Null,
                    true.into(),
                    "Draining".into(),
                    "Killing".into(),
                ][rng.random_range(0..4)]
                .clone(),
            };
            match restore(damaged, seed) {
                Err(_) => refused += 1,
                Ok(mut engine) => {
                    accepted += 1;
                    engine.handle(Time(1 << 40), Event::Woken);
                    engine.check().expect("what was accepted holds together");
                }
            }
        }
    }
    assert!(
        refused > 100 && accepted > 100,
        "{refused} refused, {accepted} accepted"
    );
}

/// Fields that were added within this snapshot version.
const ADDED: [&str; 12] = [
    "rack",
    "memory",
    "kill",
    "checkpoint_by_bytes",
    "restore_by_bytes",
    "tried",
    "launch",
    "shared",
    "estimate",
    "judged",
    "in_vain",
    "short",
];

fn without_added(value: Value) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(without_added).collect(),
        Value::Object(all) => {
            let kept = all
                .into_iter()
                .filter(|(name, _)| !ADDED.contains(&name.as_str()));
            kept.map(|(name, value)| (name, without_added(value)))
                .collect()
        }
        value => value,
    }
}

#[test]
fn snapshot_without_newer_fields_is_read() {
    let mut read = 0;
    for seed in 0..50 {
        let whole = image(seed, 60);
        // Deadlines follow from the settings, which differ for some seeds.
        if restore(whole.clone(), seed).is_err() {
            continue;
        }
        let mut engine = restore(without_added(whole), seed).expect("an older snapshot");
        engine.handle(Time(1 << 40), Event::Woken);
        engine.check().expect("what was accepted holds together");
        read += 1;
    }
    assert!(read > 25, "{read} snapshots were read");
}
