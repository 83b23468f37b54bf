//! Moving checkpoint files into place: on the same or another file system, durably, or with a named failure.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::support::{MIB, Pair, Place, Shape, groups, numbered, read};
use napreduce_data::{
    Collector, CollectorSettings, ReduceError, ReduceInput, ReduceSettings, SavePlace,
};

fn pairs() -> Vec<Pair> {
    numbered(
        (0..60_000u32)
            .map(|number| format!("key {}", number % 5_000).into_bytes())
            .collect(),
    )
}

/// A collector with several runs in scratch space and an open arena.
fn collector(place: &Place) -> Collector<()> {
    let mut collector = Collector::plain(place.settings("map", Shape::default())).unwrap();
    for (key, value) in &pairs() {
        collector.emit_bytes(key, value);
    }
    collector.check().unwrap();
    collector
}

/// A reduce input with several intermediate merges.
fn input(place: &Place) -> ReduceInput {
    for map in 0..6 {
        place.collect(&format!("map-{map}"), Shape::default(), &pairs()[..100]);
    }
    let names = ["map-0", "map-1", "map-2", "map-3", "map-4", "map-5"];
    ReduceInput::open(ReduceSettings {
        fan_in: 3,
        ..place.reduce_settings(&names, 0)
    })
    .unwrap()
}

/// Saves a collector and a reduce input, resumes them, and compares the results.
fn check_saved_to(saves: &SavePlace) {
    let place = Place::new();
    place.collect("undisturbed", Shape::default(), &pairs());
    let saved = collector(&place).save(saves).unwrap();
    assert!(saved.files().len() > 2);
    assert_eq!(
        place.names(),
        ["undisturbed"],
        "runs were moved, not copied"
    );
    let resume = Some((saved, saves.base.clone()));
    let settings = CollectorSettings {
        resume,
        ..place.settings("map", Shape::default())
    };
    Collector::<()>::plain(settings).unwrap().finish().unwrap();
    assert!(read(&place.path("map")).unwrap() == read(&place.path("undisturbed")).unwrap());

    let place = Place::new();
    let mut begun = input(&place);
    let saved = begun.save(saves).unwrap();
    assert!(saved.files().count() > 0);
    let expected = groups(&mut begun);
    drop(begun);
    assert_eq!(
        place.names(),
        ["map-0", "map-1", "map-2", "map-3", "map-4", "map-5"]
    );
    let names = place.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let resume = Some((saved, saves.base.clone()));
    let settings = ReduceSettings {
        resume,
        ..place.reduce_settings(&names, 0)
    };
    assert!(groups(&mut ReduceInput::open(settings).unwrap()) == expected);
}

#[test]
fn durable_save_resumes() {
    let place = Place::new();
    check_saved_to(&SavePlace {
        durable: true,
        ..place.save_place("attempt")
    });
}

#[test]
fn save_to_another_file_system_resumes() {
    let memory_files = Path::new("/dev/shm");
    let here = Place::new();
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    if device(memory_files).is_none_or(|other| Some(other) == device(&here.path(""))) {
        eprintln!("skipped: no second file system");
        return;
    }
    let there = tempfile::tempdir_in(memory_files).unwrap();
    for durable in [false, true] {
        let folder = format!("attempt-{durable}");
        fs::create_dir(there.path().join(&folder)).unwrap();
        check_saved_to(&SavePlace {
            base: there.path().to_owned(),
            folder: folder.into(),
            durable,
        });
    }
}

#[test]
fn full_disk_under_a_checkpoint_is_named() {
    let place = Place::new();
    let saves = place.save_place("attempt");
    let collector = collector(&place);
    let full = place.path("checkpoints/attempt");
    for number in 0..40 {
        symlink("/dev/full", full.join(format!("run-{number:05}.partial"))).unwrap();
    }
    let error = collector.save(&saves).unwrap_err();
    for part in [
        "checkpoints/attempt/run-",
        "No space left on device",
        "free space",
    ] {
        assert!(
            error.to_string().contains(part),
            "{part:?} is missing in {error}"
        );
    }
    assert!(!error.blames_checkpoint());
    assert_eq!(place.names(), ["checkpoints"], "runs remain");
}

#[test]
fn failed_save_names_the_merge_and_keeps_the_input_usable() {
    let place = Place::new();
    let mut begun = input(&place);
    let missing = SavePlace {
        base: place.path("nowhere"),
        folder: "attempt".into(),
        durable: false,
    };
    let error = begun.save(&missing).unwrap_err();
    assert!(
        matches!(error, ReduceError::Write(_)) && error.to_string().contains("merge-"),
        "{error}"
    );
    let saved = begun.save(&place.save_place("attempt")).unwrap();
    let expected = groups(&mut begun);
    drop(begun);
    let names: Vec<String> = (0..6).map(|map| format!("map-{map}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let resume = Some((saved, place.path("checkpoints")));
    let settings = ReduceSettings {
        resume,
        ..place.reduce_settings(&names, 0)
    };
    assert!(groups(&mut ReduceInput::open(settings).unwrap()) == expected);
}

#[test]
fn failed_input_is_not_saved() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..40u8)
        .map(|number| (vec![number], vec![number; 20_000]))
        .collect();
    place.collect("map", Shape::default(), &pairs);
    let mut bytes = fs::read(place.path("map")).unwrap();
    bytes[MIB / 2] ^= 1;
    fs::write(place.path("damaged"), bytes).unwrap();
    let mut input = ReduceInput::open(place.reduce_settings(&["damaged"], 0)).unwrap();
    let error = loop {
        match input.next_group() {
            Ok(more) => assert!(more, "damage was not detected"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.lost_input(), Some(0));
    let error = input.save(&place.save_place("attempt")).unwrap_err();
    assert!(error.to_string().contains("failed"), "{error}");
}
