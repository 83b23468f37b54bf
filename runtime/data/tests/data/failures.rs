//! Full disks, missing folders and invalid settings are reported with a remedy, and leave no files.

use std::os::unix::fs::symlink;

use crate::support::{MIB, Place, Shape, Sum, numbered};
use napreduce_data::{
    CollectError, Collector, CollectorSettings, RecordEncoding, ReduceError, ReduceInput,
    ReduceSettings,
};

/// Redirects a file name to a device that is always full.
fn fill_up(place: &Place, name: &str) {
    symlink("/dev/full", place.path(name)).unwrap();
}

fn emit(collector: &mut Collector<()>, count: u32) {
    for number in 0..count {
        collector.emit_bytes(&number.to_be_bytes(), &[0; 96]);
    }
}

#[track_caller]
fn check_full_disk(error: &str, file: &str) {
    for part in [file, "No space left on device", "free space"] {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
}

#[test]
fn full_disk_while_spilling_fails_for_good() {
    let place = Place::new();
    fill_up(&place, "run-00000.partial");
    let mut collector: Collector<()> =
        Collector::plain(place.settings("out", Shape::default())).unwrap();
    emit(&mut collector, 50_000);
    check_full_disk(
        &collector.check().unwrap_err().to_string(),
        "run-00000.partial",
    );
    emit(&mut collector, 50_000);
    collector.check().unwrap();
    assert!(
        matches!(collector.finish(), Err(CollectError::AlreadyFailed)),
        "lost records stay lost"
    );
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn full_disk_while_sealing_or_merging_is_named() {
    for (name, count) in [
        ("out.partial", 100),
        ("out.partial", 50_000),
        ("run-00003.partial", 50_000),
    ] {
        let place = Place::new();
        fill_up(&place, name);
        let mut collector: Collector<()> =
            Collector::plain(place.settings("out", Shape::default())).unwrap();
        emit(&mut collector, count);
        check_full_disk(&collector.finish().unwrap_err().to_string(), name);
        assert!(place.names().is_empty(), "{:?}", place.names());
    }
}

#[test]
fn full_disk_in_intermediate_merge_is_named() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.collect(
            name,
            Shape::default(),
            &numbered(vec![b"key".to_vec(); 20_000]),
        );
    }
    fill_up(&place, "merge-00000.partial");
    let settings = ReduceSettings {
        fan_in: 2,
        ..place.reduce_settings(&["a", "b", "c"], 0)
    };
    let Err(error) = ReduceInput::open(settings) else {
        panic!("not detected")
    };
    assert!(matches!(error, ReduceError::Write(_)) && error.lost_input().is_none());
    check_full_disk(&error.to_string(), "merge-00000.partial");
    assert_eq!(place.names(), ["a", "b", "c"]);
}

#[test]
fn missing_directory_is_named() {
    let place = Place::new();
    let settings = place.settings("no/such/out", Shape::default());
    let mut collector: Collector<()> = Collector::plain(settings).unwrap();
    emit(&mut collector, 1);
    let error = collector.finish().unwrap_err().to_string();
    assert!(
        error.contains("no/such/out") && error.contains("directory must exist"),
        "{error}"
    );
}

#[test]
fn fixed_job_rejects_other_lengths() {
    for (key, value) in [(&b"12345"[..], &b"12"[..]), (b"1234", b"123"), (b"", b"")] {
        let place = Place::new();
        let settings = place.settings("out", Shape::default().fixed(4, 2));
        let mut collector: Collector<()> = Collector::plain(settings).unwrap();
        collector.emit_bytes(b"good", b"ok");
        collector.emit_bytes(key, value);
        let error = collector.finish().unwrap_err().to_string();
        let expected = format!(
            "a key of {} bytes and a value of {} bytes",
            key.len(),
            value.len()
        );
        assert!(
            error.contains(&expected) && error.contains("4 + 2"),
            "{error}"
        );
    }
}

#[test]
fn emit_rejects_the_wrong_mode() {
    let place = Place::new();
    let mut plain: Collector<u64> =
        Collector::plain(place.settings("out", Shape::default())).unwrap();
    assert!(!plain.combines());
    plain.emit_value(b"key", 1, 0);
    assert!(matches!(
        plain.check(),
        Err(CollectError::WrongMode {
            called: "emit_value",
            ..
        })
    ));
    let mut combining = Collector::combining(place.settings("out", Shape::default()), Sum).unwrap();
    assert!(combining.combines());
    combining.emit_bytes(b"key", b"value");
    assert!(matches!(
        combining.finish(),
        Err(CollectError::WrongMode {
            called: "emit_bytes",
            ..
        })
    ));
}

#[test]
fn collector_rejects_invalid_settings() {
    let place = Place::new();
    let refused = |settings: CollectorSettings| match Collector::<()>::plain(settings) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    let settings = place.settings("out", Shape::default());
    let empty = RecordEncoding::Fixed { key: 0, value: 0 };
    assert!(
        refused(CollectorSettings {
            encoding: empty,
            ..settings
        })
        .contains("RecordEncoding::Variable")
    );
    let settings = place.settings("out", Shape::default());
    assert!(
        refused(CollectorSettings {
            label: "x".repeat(MIB),
            ..settings
        })
        .contains("4096")
    );
}

#[test]
fn dropped_collector_leaves_no_file() {
    let place = Place::new();
    let mut collector: Collector<()> =
        Collector::plain(place.settings("out", Shape::default())).unwrap();
    emit(&mut collector, 100_000);
    assert!(!place.names().is_empty(), "it has spilled");
    drop(collector);
    assert!(place.names().is_empty(), "{:?}", place.names());
}
