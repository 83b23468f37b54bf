//! Damage to saved files and descriptions: the error blames the checkpoint, and no wrong record is read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Pair, Place, Shape, in_words, numbered, read, sorted};
use napreduce_data::{
    CollectError, Collector, CollectorSettings, ReduceError, ReduceInput, ReduceSettings,
    SavedCollection, SavedReduceInput,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A saved file, and an attempt that reads it.
struct Case<'a> {
    file: PathBuf,
    /// Reads everything from the checkpoint; the error has its text and whether it blames the checkpoint.
    restored: Box<dyn Fn() -> Result<(), (String, bool)> + 'a>,
}

impl Case<'_> {
    #[track_caller]
    fn check_rejected(&self, what: &str) {
        let (error, blames_checkpoint) = (self.restored)().expect_err(what);
        assert!(blames_checkpoint, "{what}: {error}");
        assert!(
            error.contains(self.file.to_str().unwrap()),
            "{what}: {error}"
        );
        assert!(error.contains("from scratch"), "{what}: {error}");
    }

    /// Damages the file in every way, and restores it.
    fn check(&self) {
        let whole = fs::read(&self.file).unwrap();
        (self.restored)().unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            replace(&self.file, &bytes);
            self.check_rejected(&format!("bit {} of byte {at} of {}", at % 8, whole.len()));
        }
        for len in (0..whole.len()).step_by(7) {
            replace(&self.file, &whole[..len]);
            self.check_rejected(&format!("cut at {len} of {}", whole.len()));
        }
        fs::remove_file(&self.file).unwrap();
        self.check_rejected("missing");
        replace(&self.file, &whole);
        (self.restored)().unwrap();
    }
}

/// Replaces a file, because a mapped file must not change.
fn replace(path: &Path, bytes: &[u8]) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

fn pairs() -> Vec<Pair> {
    numbered(
        (0..30u32)
            .map(|number| format!("key {}", number % 7).into_bytes())
            .collect(),
    )
}

/// Saves two runs with two partitions each.
fn saved_collection(place: &Place) -> SavedCollection {
    let mut saved = None;
    for (attempt, part) in pairs().chunks(15).enumerate() {
        let mut collector = resume(place, saved).unwrap();
        for (key, value) in part {
            collector.emit_bytes(key, value);
        }
        saved = Some(
            collector
                .save(&place.save_place(&format!("attempt-{attempt}")))
                .unwrap(),
        );
    }
    saved.unwrap()
}

fn resume(place: &Place, saved: Option<SavedCollection>) -> Result<Collector<()>, CollectError> {
    let resume = saved.map(|saved| (saved, place.path("checkpoints")));
    Collector::plain(CollectorSettings {
        resume,
        ..place.settings("map", Shape::default().partitions(2))
    })
}

fn finish(place: &Place, saved: SavedCollection) -> Result<(), CollectError> {
    let collector = resume(place, Some(saved))?;
    collector.finish()?;
    assert!(
        read(&place.path("map")).unwrap() == sorted(&pairs(), 2),
        "wrong output"
    );
    Ok(())
}

#[test]
fn damaged_run_blames_the_checkpoint() {
    let place = Place::new();
    let saved = saved_collection(&place);
    for file in saved.files() {
        let restored =
            || finish(&place, saved.clone()).map_err(|e| (e.to_string(), e.blames_checkpoint()));
        Case {
            file: place.path("checkpoints").join(&file.file),
            restored: Box::new(restored),
        }
        .check();
    }
}

#[test]
fn swapped_run_is_rejected() {
    let place = Place::new();
    let saved = saved_collection(&place);
    let file = |number: usize| place.path("checkpoints").join(&saved.files()[number].file);
    replace(&file(0), &fs::read(file(1)).unwrap());
    let error = finish(&place, saved.clone()).unwrap_err();
    assert!(
        error.blames_checkpoint() && error.to_string().contains("changed since it was saved"),
        "{error}"
    );
}

#[test]
fn runs_with_other_settings_are_rejected() {
    let place = Place::new();
    let saved = saved_collection(&place);
    for shape in [
        Shape::default().partitions(3),
        Shape::default().partitions(2).fixed(5, 8),
    ] {
        let resume = Some((saved.clone(), place.path("checkpoints")));
        let settings = CollectorSettings {
            resume,
            ..place.settings("map", shape)
        };
        let error = Collector::<()>::plain(settings).err().unwrap();
        assert!(
            error.blames_checkpoint() && error.to_string().contains("2 partitions"),
            "{error}"
        );
    }
}

#[test]
fn names_outside_the_directory_are_rejected() {
    let place = Place::new();
    let saved = saved_collection(&place);
    let outside = place.path("checkpoints").join(&saved.files()[0].file);
    for name in [
        "",
        "/etc/passwd",
        "../checkpoints/attempt-0/run-00000",
        ".",
        outside.to_str().unwrap(),
    ] {
        let mut words = serde_json::to_value(&saved).unwrap();
        words["runs"][0]["file"] = json!(name);
        let error = finish(&place, serde_json::from_value(words).unwrap()).unwrap_err();
        assert!(
            error.blames_checkpoint() && error.to_string().contains("inside"),
            "{name}: {error}"
        );
    }
}

/// Saves the input of six small maps: two read directly, the others through two intermediate merges.
fn saved_input(place: &Place) -> SavedReduceInput {
    for map in 0..6 {
        place.collect(
            &format!("map-{map}"),
            Shape::default().partitions(2),
            &pairs()[map..],
        );
    }
    let mut input = ReduceInput::open(reduce_settings(place)).unwrap();
    for _ in 0..2 {
        assert!(input.next_group().unwrap());
    }
    assert!(input.next_value().unwrap().is_some());
    in_words(&input.save(&place.save_place("attempt")).unwrap())
}

fn reduce_settings(place: &Place) -> ReduceSettings {
    let names = ["map-0", "map-1", "map-2", "map-3", "map-4", "map-5"];
    ReduceSettings {
        fan_in: 3,
        ..place.reduce_settings(&names, 1)
    }
}

/// Returns the remaining records of the restored input.
fn rest(place: &Place, saved: &SavedReduceInput) -> Result<Vec<Pair>, ReduceError> {
    let resume = Some((saved.clone(), place.path("checkpoints")));
    let mut input = ReduceInput::open(ReduceSettings {
        resume,
        ..reduce_settings(place)
    })?;
    let mut rest = Vec::new();
    loop {
        while let Some((key, value)) = input.next_value()? {
            rest.push((key.to_vec(), value.to_vec()));
        }
        if !input.next_group()? {
            return Ok(rest);
        }
    }
}

#[test]
fn damaged_intermediate_merge_blames_the_checkpoint() {
    let place = Place::new();
    let saved = saved_input(&place);
    assert!(saved.files().count() > 1);
    let expected = rest(&place, &saved).unwrap();
    for file in saved.files() {
        let restored = || {
            let found = rest(&place, &saved)
                .map_err(|error| (error.to_string(), error.blames_checkpoint()))?;
            assert!(found == expected, "wrong records");
            Ok(())
        };
        Case {
            file: place.path("checkpoints").join(&file.file),
            restored: Box::new(restored),
        }
        .check();
    }
}

#[test]
fn damaged_map_output_blames_the_map() {
    let place = Place::new();
    let saved = saved_input(&place);
    let (input, _) = saved.blocks_needed().next().unwrap();
    let path = reduce_settings(&place).segments[input].clone();
    let whole = fs::read(&path).unwrap();
    replace(&path, &whole[..whole.len() - 1]);
    let error = rest(&place, &saved).unwrap_err();
    assert_eq!(
        (error.lost_input(), error.blames_checkpoint()),
        (Some(input), false),
        "{error}"
    );
    fs::remove_file(&path).unwrap();
    let error = rest(&place, &saved).unwrap_err();
    assert_eq!(
        (error.lost_input(), error.blames_checkpoint()),
        (Some(input), false),
        "{error}"
    );
}

#[test]
fn inputs_no_longer_needed_may_be_missing() {
    let place = Place::new();
    let saved = saved_input(&place);
    let expected = rest(&place, &saved).unwrap();
    let needed: Vec<usize> = saved.blocks_needed().map(|(input, _)| input).collect();
    assert!(!needed.is_empty() && needed.len() < 6, "{needed:?}");
    for map in (0..6).filter(|map| !needed.contains(map)) {
        fs::remove_file(place.path(&format!("map-{map}"))).unwrap();
    }
    assert!(rest(&place, &saved).unwrap() == expected);
}

#[test]
fn output_of_another_map_attempt_is_rejected() {
    let place = Place::new();
    let saved = saved_input(&place);
    let (input, _) = saved.blocks_needed().next().unwrap();
    let name = format!("map-{input}");
    let again = |label: &str, pairs: &[Pair]| {
        let settings = place.settings(&name, Shape::default().partitions(2));
        let mut collector = Collector::<()>::plain(CollectorSettings {
            label: label.into(),
            ..settings
        })
        .unwrap();
        for (key, value) in pairs {
            collector.emit_bytes(key, value);
        }
        collector.finish().unwrap();
        rest(&place, &saved)
    };
    let label = format!("attempt of {name}");
    again(&label, &pairs()[input..]).unwrap();
    for (label, from) in [("another attempt", input), (&label, input + 3)] {
        let error = again(label, &pairs()[from..]).unwrap_err();
        assert!(
            matches!(&error, ReduceError::Unfit(what) if what.contains(label)),
            "{error}"
        );
        assert!(error.blames_checkpoint() && error.lost_input().is_none());
    }
}

#[test]
fn description_of_another_task_is_rejected() {
    let place = Place::new();
    let saved = saved_input(&place);
    let resume = Some((saved, place.path("checkpoints")));
    let settings = ReduceSettings {
        resume,
        ..reduce_settings(&place)
    };
    let fewer = ReduceSettings {
        segments: settings.segments[1..].to_vec(),
        ..settings.clone()
    };
    for settings in [
        fewer,
        ReduceSettings {
            partition: 0,
            ..settings
        },
    ] {
        let error = ReduceInput::open(settings).err().unwrap();
        assert!(
            matches!(error, ReduceError::Unfit(_)) && error.blames_checkpoint(),
            "{error}"
        );
    }
}

/// Collects all numbers of a description.
fn numbers<'a>(words: &'a mut Value, into: &mut Vec<&'a mut Value>) {
    match words {
        Value::Number(_) => into.push(words),
        Value::Array(parts) => {
            for part in parts {
                numbers(part, into);
            }
        }
        Value::Object(parts) => {
            for part in parts.values_mut() {
                numbers(part, into);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn hostile_positions_cause_only_errors(
        at in any::<prop::sample::Index>(),
        number in prop_oneof![0u64..40, Just(u64::from(u32::MAX)), Just(u64::MAX), any::<u64>()],
    ) {
        let place = Place::new();
        let saved = saved_input(&place);
        let expected = rest(&place, &saved).unwrap();
        let mut words = serde_json::to_value(&saved).unwrap();
        let mut places = Vec::new();
        numbers(&mut words["sources"], &mut places);
        let at = at.index(places.len());
        *places[at] = json!(number);
        // The deserializer may reject the number.
        if let Ok(changed) = serde_json::from_value::<SavedReduceInput>(words) {
            match rest(&place, &changed) {
                // A valid position of another record passes here; the caller's checksum detects it.
                Ok(found) => prop_assert!(changed != saved || found == expected),
                Err(error) => prop_assert!(error.blames_checkpoint(), "{}", error),
            }
        }
    }
}
