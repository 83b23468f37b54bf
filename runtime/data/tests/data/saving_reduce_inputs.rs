//! Saved and resumed reduce inputs give the same groups as undisturbed ones and read nothing twice, wherever
//! and however often they are saved.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::support::{MIB, Pair, Place, Shape, Sum, bytes, excerpt, in_words, numbered, random};
use napreduce_data::{
    Grouping, READ_MAX, ReduceError, ReduceInput, ReduceSettings, ReduceStatistics,
    SavedReduceInput,
};
use proptest::prelude::*;
use rand::Rng;

/// A group's key and its records.
type Group = (Vec<u8>, Vec<Pair>);

/// How an input is read and interrupted.
#[derive(Clone, Copy)]
struct Reading<'a> {
    place: &'a Place,
    segments: &'a [String],
    fan_in: usize,
    grouping: Option<Grouping>,
    combine: bool,
    /// Whether each attempt fetches only the blocks it needs into files of its own.
    refetch: bool,
    /// Number of values read per group; the rest is skipped.
    values: usize,
}

impl<'a> Reading<'a> {
    fn new(place: &'a Place, segments: &'a [String]) -> Reading<'a> {
        Reading {
            place,
            segments,
            fan_in: 64,
            grouping: None,
            combine: false,
            refetch: false,
            values: usize::MAX,
        }
    }

    fn settings(&self, attempt: usize) -> ReduceSettings {
        let scratch = self.place.path(&format!("scratch {attempt}"));
        fs::create_dir_all(&scratch).unwrap();
        let names: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let fan_in = self.fan_in;
        let grouping = self.grouping;
        // The memory suffices to decompress a block of every input. Attempts alternate between mapping and
        // reading.
        let read_max = if attempt.is_multiple_of(2) {
            0
        } else {
            READ_MAX
        };
        ReduceSettings {
            memory: 4 * MIB,
            scratch,
            fan_in,
            read_max,
            grouping,
            ..self.place.reduce_settings(&names, 0)
        }
    }

    fn open(&self) -> ReduceInput {
        self.open_with(self.settings(0))
    }

    fn open_with(&self, settings: ReduceSettings) -> ReduceInput {
        if self.combine {
            ReduceInput::open_combining(settings, &Sum).unwrap()
        } else {
            ReduceInput::open(settings).unwrap()
        }
    }

    fn open_at(&self, saved: &SavedReduceInput, attempt: usize) -> ReduceInput {
        let mut settings = self.settings(attempt);
        if self.refetch {
            let mut fetched: Vec<PathBuf> =
                vec![self.place.path("nowhere"); settings.segments.len()];
            for (input, block) in saved.blocks_needed() {
                fetched[input] = self
                    .place
                    .path(&format!("scratch {attempt}"))
                    .join(&self.segments[input]);
                excerpt(&settings.segments[input], &fetched[input], 0, block);
            }
            settings.segments = fetched;
        }
        settings.resume = Some((saved.clone(), self.place.path("checkpoints")));
        self.open_with(settings)
    }

    /// Reads all groups, saving and reopening the input at the given boundaries; also returns the number of
    /// boundaries.
    fn read(&self, cuts: &BTreeSet<usize>) -> (Vec<Group>, ReduceStatistics, usize) {
        let mut walk = Walk {
            reading: *self,
            input: Some(self.open()),
            boundary: 0,
            attempt: 0,
            cuts,
        };
        let mut groups = Vec::new();
        walk.boundary();
        while walk.input().next_group().unwrap() {
            let mut records = Vec::new();
            walk.boundary();
            while records.len() < self.values {
                let Some((key, value)) = walk.input().next_value().unwrap() else {
                    break;
                };
                records.push((key.to_vec(), value.to_vec()));
                walk.boundary();
            }
            walk.boundary();
            groups.push((walk.input().group_key().to_vec(), records));
        }
        walk.boundary();
        let statistics = walk.input().statistics();
        (groups, statistics, walk.boundary)
    }
}

struct Walk<'a> {
    reading: Reading<'a>,
    input: Option<ReduceInput>,
    /// Boundaries passed.
    boundary: usize,
    attempt: usize,
    cuts: &'a BTreeSet<usize>,
}

impl Walk<'_> {
    fn input(&mut self) -> &mut ReduceInput {
        self.input.as_mut().unwrap()
    }

    fn boundary(&mut self) {
        if self.cuts.contains(&self.boundary) {
            let place = self
                .reading
                .place
                .save_place(&format!("attempt-{}", self.attempt));
            let group = self.input().group_key().to_vec();
            let saved = in_words(&self.input().save(&place).unwrap());
            assert!(
                saved
                    .files()
                    .all(|file| place.base.join(&file.file).exists())
            );
            self.input = None;
            let left = self
                .reading
                .place
                .names_in(&format!("scratch {}", self.attempt));
            assert!(
                left.iter().all(|name| !name.starts_with("merge-")),
                "{left:?} are left"
            );
            self.attempt += 1;
            self.input = Some(self.reading.open_at(&saved, self.attempt));
            assert_eq!(self.input().group_key(), group);
        }
        self.boundary += 1;
    }
}

/// Drops the statistics that depend on interruptions.
fn stable(statistics: ReduceStatistics) -> ReduceStatistics {
    ReduceStatistics {
        bytes_read: 0,
        memory_peak: 0,
        ..statistics
    }
}

/// Interrupts once at every boundary, at all of them, and in random chains.
fn check(reading: Reading<'_>) {
    let (expected, statistics, boundaries) = reading.read(&BTreeSet::new());
    let mut random = random(71);
    let mut cuts: Vec<BTreeSet<usize>> = (0..boundaries).map(|at| BTreeSet::from([at])).collect();
    cuts.push((0..boundaries).collect());
    for _ in 0..8 {
        cuts.push(
            (0..random.random_range(2..8))
                .map(|_| random.random_range(0..boundaries))
                .collect(),
        );
    }
    for cuts in cuts {
        let (found, counted, passed) = reading.read(&cuts);
        assert!(
            found == expected,
            "saved at {cuts:?} of {boundaries}: different groups"
        );
        assert_eq!(
            stable(counted),
            stable(statistics),
            "saved at {cuts:?} of {boundaries}"
        );
        assert_eq!(passed, boundaries);
        if cuts.len() > 1 {
            // The next round uses the attempts' folders again.
            fs::remove_dir_all(reading.place.path("checkpoints")).unwrap();
        }
    }
}

/// Collects the pairs of each map and returns the names of the segments.
fn collect(place: &Place, shape: Shape, maps: &[Vec<Pair>]) -> Vec<String> {
    let names: Vec<String> = (0..maps.len()).map(|map| format!("map-{map:04}")).collect();
    for (name, pairs) in names.iter().zip(maps) {
        place.collect(name, shape, pairs);
    }
    names
}

/// Few keys in many maps, so that groups span maps; one map is empty.
fn maps(count: usize, keys: Range<u8>, records: usize, key_len: usize) -> Vec<Vec<Pair>> {
    let mut random = random(72);
    let mut maps: Vec<Vec<Pair>> = (0..count)
        .map(|_| {
            let keys = (0..records).map(|_| vec![random.random_range(keys.clone()); key_len]);
            numbered(keys.collect())
        })
        .collect();
    maps[count / 2].clear();
    maps
}

#[test]
fn save_at_any_group_and_value_keeps_the_groups() {
    let maps = maps(5, 0..6, 9, 3);
    for shape in [
        Shape::default(),
        Shape::default().lz4(),
        Shape::default().fixed(3, 8),
    ] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        let reading = Reading::new(&place, &segments);
        check(reading);
        check(Reading {
            refetch: true,
            ..reading
        });
    }
}

#[test]
fn saved_intermediate_merges_are_not_repeated() {
    let maps = maps(9, 0..8, 5, 20);
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        for fan_in in [2, 3, 5] {
            let reading = Reading {
                fan_in,
                ..Reading::new(&place, &segments)
            };
            assert!(reading.open().statistics().intermediate_merges > 0);
            check(reading);
            check(Reading {
                refetch: true,
                ..reading
            });
        }
    }
}

#[test]
fn single_group_resumes_between_any_two_values() {
    for key_len in [0, 3, 11, 12, 40] {
        let place = Place::new();
        let segments = collect(&place, Shape::default(), &maps(4, 7..8, 20, key_len));
        check(Reading::new(&place, &segments));
        check(Reading {
            fan_in: 2,
            ..Reading::new(&place, &segments)
        });
    }
}

#[test]
fn prefix_groups_resume_between_their_keys() {
    let mut random = random(73);
    let maps: Vec<Vec<Pair>> = (0..4)
        .map(|_| {
            let keys = (0..12).map(|_| {
                let mut key = vec![random.random_range(0..3); 2];
                key.extend(bytes(&mut random, 15));
                key.truncate(random.random_range(2..17));
                key
            });
            numbered(keys.collect())
        })
        .collect();
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps);
    let groupings: [Grouping; 5] = [|_| 0, |_| 1, |_| 2, |_| 5, |_| 14];
    for (grouping, fan_in) in groupings.into_iter().zip([64, 64, 2, 64, 3]) {
        check(Reading {
            grouping: Some(grouping),
            fan_in,
            ..Reading::new(&place, &segments)
        });
    }
}

#[test]
fn skipped_values_are_counted_once() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps(4, 0..4, 8, 2));
    for values in [0, 1, 3] {
        check(Reading {
            values,
            ..Reading::new(&place, &segments)
        });
    }
}

#[test]
fn folding_merges_are_saved_unchanged() {
    let place = Place::new();
    let names: Vec<String> = (0..8).map(|map| format!("map-{map}")).collect();
    let keys: Vec<Vec<u8>> = (0..7u32)
        .map(|number| format!("a rather long key {number}").into())
        .collect();
    for (map, name) in names.iter().enumerate() {
        place.count(name, Shape::default(), &keys[map % 3..]);
    }
    check(Reading {
        combine: true,
        fan_in: 3,
        ..Reading::new(&place, &names)
    });
}

#[test]
fn largest_groups_are_counted_once_over_a_cut() {
    let place = Place::new();
    let keys = |key: &str, records: usize| std::iter::repeat_n(key.as_bytes().to_vec(), records);
    let all = keys("a", 9_999)
        .chain(keys("hot", 30_000))
        .chain(keys("warm", 10_000))
        .chain(keys("z", 1));
    let segments = collect(&place, Shape::default(), &[numbered(all.collect()), vec![]]);
    let reading = Reading::new(&place, &segments);
    let largest = |input: &mut ReduceInput| {
        let readable =
            |(key, records): (&[u8], u64)| (String::from_utf8_lossy(key).into_owned(), records);
        input.largest_groups().map(readable).collect::<Vec<_>>()
    };
    let mut input = reading.open();
    while input.next_group().unwrap() && input.group_key() != b"hot" {}
    for _ in 0..12_000 {
        input.next_value().unwrap();
    }
    let saved = input.save(&place.save_place("attempt")).unwrap();
    assert_eq!(largest(&mut input), [("hot".to_owned(), 12_000)]);
    // The rest of the group is skipped, and counts.
    let mut rest = reading.open_at(&saved, 1);
    while rest.next_group().unwrap() {}
    assert_eq!(
        largest(&mut rest),
        [("hot".to_owned(), 18_000), ("warm".to_owned(), 10_000)]
    );
}

#[test]
fn inputs_without_records_can_be_saved() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &[vec![], vec![]]);
    check(Reading::new(&place, &segments));
    check(Reading::new(&place, &[]));
}

#[test]
fn blocks_of_every_kind_resume_from_refetched_files() {
    let mut random = random(74);
    let maps: Vec<Vec<Pair>> = (0..3u8)
        .map(|map| {
            let value = |number: u8| if number == 4 { 200_000 } else { 40_000 };
            (0..9u8)
                .map(|number| (vec![number / 2, map], bytes(&mut random, value(number))))
                .collect()
        })
        .collect();
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        let reading = Reading {
            grouping: Some(|_| 1),
            refetch: true,
            ..Reading::new(&place, &segments)
        };
        check(reading);
        check(Reading {
            fan_in: 2,
            ..reading
        });
    }
}

#[test]
fn input_stays_usable_after_a_save() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps(6, 0..5, 9, 3));
    let reading = Reading {
        fan_in: 2,
        ..Reading::new(&place, &segments)
    };
    let (expected, ..) = reading.read(&BTreeSet::new());
    let mut input = reading.open();
    let mut saves = Vec::new();
    let mut groups = Vec::new();
    while input.next_group().unwrap() {
        let mut records = Vec::new();
        while let Some((key, value)) = input.next_value().unwrap() {
            records.push((key.to_vec(), value.to_vec()));
        }
        groups.push((input.group_key().to_vec(), records));
        saves.push(input.save(&place.save_place("attempt")).unwrap());
    }
    drop(input);
    assert!(groups == expected);
    for (number, saved) in saves.iter().enumerate() {
        let mut input = reading.open_at(saved, number);
        assert_eq!(input.next_group().unwrap(), number + 1 < expected.len());
    }
}

#[test]
fn excerpt_is_not_accepted_as_a_whole_input() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..9)
        .map(|number| (vec![number], vec![number; 60_000]))
        .collect();
    place.collect("map", Shape::default(), &pairs);
    excerpt(&place.path("map"), &place.path("rest"), 0, 2);
    let error = ReduceInput::open(place.reduce_settings(&["rest"], 0))
        .err()
        .unwrap();
    assert!(matches!(error, ReduceError::Settings(_)), "{error}");
    assert!(
        error.to_string().contains("starts with record 4"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_maps_saved_anywhere_give_the_same_groups(
        maps in proptest::collection::vec(
            proptest::collection::vec((proptest::collection::vec(prop_oneof![Just(0u8), Just(b'a'), any::<u8>()], 0..14), 0usize..5), 0..20),
            0..10,
        ),
        cuts in proptest::collection::btree_set(0usize..150, 0..8),
        (fan_in, lz4, prefix, refetch, large) in (0usize..8, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let place = Place::new();
        let value = |len: usize| vec![len as u8; if large { len * 20_000 } else { len }];
        let maps: Vec<Vec<Pair>> = maps
            .into_iter()
            .map(|map| map.into_iter().map(|(key, len)| (key, value(len))).collect())
            .collect();
        let segments = collect(&place, if lz4 { Shape::default().lz4() } else { Shape::default() }, &maps);
        let grouping: Option<Grouping> = if prefix { Some(|key| key.len().min(1)) } else { None };
        let reading = Reading { fan_in, grouping, refetch, ..Reading::new(&place, &segments) };
        let (expected, statistics, boundaries) = reading.read(&BTreeSet::new());
        let (found, counted, passed) = reading.read(&cuts);
        prop_assert!(found == expected && passed == boundaries);
        prop_assert_eq!(stable(counted), stable(statistics));
    }
}
