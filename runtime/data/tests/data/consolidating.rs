//! Consolidated files: a reduce reads the same with such a file, without it, and when it is damaged.

use std::fs;
use std::path::PathBuf;

use crate::support::{MIB, Pair, Place, Shape, groups};
use napreduce_data::{READ_MAX, ReduceInput, ReduceSettings, consolidate};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

type Groups = Vec<(Vec<u8>, Vec<Vec<u8>>)>;

struct Maps {
    place: Place,
    names: Vec<String>,
    partitions: u32,
}

impl Maps {
    /// Collects `count` maps with few records each, some with none.
    fn new(shape: Shape, count: usize, partitions: u32, seed: u64) -> Maps {
        let place = Place::new();
        let mut random = Pcg64::seed_from_u64(seed);
        let names: Vec<String> = (0..count)
            .map(|number| format!("map-{number:03}"))
            .collect();
        for name in &names {
            let record = |random: &mut Pcg64| -> Pair {
                let key = format!("key {}", random.random_range(0..50)).into_bytes();
                (key, vec![random.random(); random.random_range(0..30)])
            };
            let length = random.random_range(0..40);
            let pairs: Vec<Pair> = (0..length).map(|_| record(&mut random)).collect();
            place.collect(name, shape.partitions(partitions), &pairs);
        }
        Maps {
            place,
            names,
            partitions,
        }
    }

    fn paths(&self, range: std::ops::Range<usize>) -> Vec<PathBuf> {
        self.names[range]
            .iter()
            .map(|name| self.place.path(name))
            .collect()
    }

    fn settings(&self, partition: u32, consolidated: &[&str]) -> ReduceSettings {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        ReduceSettings {
            memory: 8 * MIB,
            read_max: READ_MAX,
            consolidated: consolidated
                .iter()
                .map(|name| self.place.path(name))
                .collect(),
            ..self.place.reduce_settings(&names, partition)
        }
    }

    /// Returns the groups of each partition, and the warnings.
    fn read(&self, consolidated: &[&str]) -> (Vec<Groups>, Vec<String>) {
        let mut remarks = Vec::new();
        let read = (0..self.partitions).map(|partition| {
            let mut input = ReduceInput::open(self.settings(partition, consolidated)).unwrap();
            remarks.extend(input.remarks().iter().cloned());
            groups(&mut input)
        });
        (read.collect(), remarks)
    }
}

#[test]
fn consolidated_files_replace_their_segments() {
    for (seed, shape) in [(1, Shape::default()), (2, Shape::default().lz4())] {
        let maps = Maps::new(shape, 40, 7, seed);
        let (alone, _) = maps.read(&[]);
        consolidate(&maps.paths(0..20), &maps.place.path("first")).unwrap();
        let bytes = consolidate(&maps.paths(20..33), &maps.place.path("second")).unwrap();
        assert_eq!(
            bytes,
            fs::metadata(maps.place.path("second")).unwrap().len()
        );
        assert_eq!(
            maps.read(&["first", "second"]),
            (alone.clone(), Vec::new()),
            "seed {seed}"
        );
        assert!(
            !maps
                .place
                .names()
                .iter()
                .any(|name| name.ends_with(".partial"))
        );
        for path in maps.paths(0..33) {
            fs::write(path, b"must not be read").unwrap();
        }
        assert_eq!(
            maps.read(&["second", "first"]),
            (alone, Vec::new()),
            "seed {seed}"
        );
    }
}

#[test]
fn resume_works_with_and_without_consolidated_files() {
    let maps = Maps::new(Shape::default(), 12, 1, 5);
    consolidate(&maps.paths(0..9), &maps.place.path("some")).unwrap();
    let whole = &maps.read(&[]).0[0];
    for (before, after) in [
        (vec![], vec!["some"]),
        (vec!["some"], vec![]),
        (vec!["some"], vec!["some"]),
    ] {
        for steps in [0, 1, 7] {
            let mut input = ReduceInput::open(maps.settings(0, &before)).unwrap();
            for _ in 0..steps {
                assert!(input.next_group().unwrap());
            }
            let saved = input.save(&maps.place.save_place("saved")).unwrap();
            let resume = Some((saved, maps.place.path("checkpoints")));
            let mut resumed = ReduceInput::open(ReduceSettings {
                resume,
                ..maps.settings(0, &after)
            })
            .unwrap();
            let rest = groups(&mut resumed);
            assert_eq!(
                rest,
                whole[steps..],
                "{before:?}, {steps} groups, {after:?}"
            );
        }
    }
}

#[test]
fn damaged_consolidated_file_is_ignored() {
    let maps = Maps::new(Shape::default(), 3, 2, 9);
    let path = maps.place.path("all");
    consolidate(&maps.paths(0..3), &path).unwrap();
    let (alone, _) = maps.read(&[]);
    let whole = fs::read(&path).unwrap();
    let mut remarked = 0;
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        for damaged in [&whole[..at], &flipped] {
            fs::write(&path, damaged).unwrap();
            let (read, remarks) = maps.read(&["all"]);
            assert_eq!(read, alone, "byte {at}");
            assert!(
                !remarks.is_empty(),
                "byte {at} of {} is not covered by a check",
                whole.len()
            );
            assert!(
                remarks[0]
                    .contains("all: unusable consolidated file, reading its segments one by one: ")
            );
            remarked += 1;
        }
    }
    assert_eq!(remarked, 2 * whole.len());
    fs::remove_file(&path).unwrap();
    let (read, remarks) = maps.read(&["all"]);
    assert_eq!(
        (read, remarks.len()),
        (alone, 2),
        "one warning per partition"
    );
}

#[test]
fn segments_above_the_memory_limit_are_read_one_by_one() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..400u32)
        .map(|n| (n.to_be_bytes().to_vec(), vec![7; 100]))
        .collect();
    let names: Vec<String> = (0..20).map(|number| format!("map-{number}")).collect();
    for name in &names {
        place.collect(name, Shape::default(), &pairs);
    }
    let paths: Vec<PathBuf> = names.iter().map(|name| place.path(name)).collect();
    consolidate(&paths, &place.path("all")).unwrap();
    let maps = Maps {
        place,
        names,
        partitions: 1,
    };
    let settings = ReduceSettings {
        memory: MIB,
        ..maps.settings(0, &["all"])
    };
    let mut input = ReduceInput::open(settings).unwrap();
    assert!(
        input.statistics().memory_peak <= MIB,
        "{}",
        input.statistics().memory_peak
    );
    assert_eq!(input.remarks(), [""; 0]);
    assert_eq!(groups(&mut input), maps.read(&[]).0[0]);
    // An explicitly narrow merge stays narrow.
    let narrow = ReduceSettings {
        read_max: 0,
        fan_in: 2,
        ..maps.settings(0, &["all"])
    };
    let mut input = ReduceInput::open(narrow).unwrap();
    assert!(input.statistics().intermediate_merges > 0);
    assert_eq!(groups(&mut input), maps.read(&[]).0[0]);
}

#[test]
fn consolidate_rejects_mismatched_segments() {
    let maps = Maps::new(Shape::default(), 2, 2, 3);
    let target = maps.place.path("all");
    let refused = |paths: &[PathBuf]| {
        let error = consolidate(paths, &target).unwrap_err().to_string();
        assert!(!target.exists(), "{error}");
        error
    };
    maps.place
        .collect("other", Shape::default().partitions(3), &[]);
    let mut paths = maps.paths(0..2);
    paths.push(maps.place.path("other"));
    assert!(refused(&paths).ends_with("other: has different partitions than the other segments"));
    paths[2] = maps.place.path("missing");
    assert!(refused(&paths).contains("missing"));
    fs::create_dir(maps.place.path("folder")).unwrap();
    paths[2] = maps.place.path("folder/map");
    fs::copy(&paths[0], &paths[2]).unwrap();
    assert!(refused(&paths).ends_with("map: is in another directory"));
    fs::create_dir(maps.place.path("all.partial")).unwrap();
    assert!(refused(&paths[..2]).contains("all.partial"));
}
