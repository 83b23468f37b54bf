//! A reduce input that is saved and gone on from, wherever and however often, gives the groups that an
//! undisturbed one does, and reads nothing twice.
//!
//! Owns reduce inputs that are saved. Does not own damage to what was saved (`saved_damage`) nor collectors
//! (`saving_collections`).

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::support::{MIB, Pair, Place, Shape, Sum, bytes, excerpt, in_words, numbered, random};
use napreduce_data::{
    Grouping, READ_MAX, ReduceError, ReduceInput, ReduceSettings, ReduceStatistics, SavedReduceInput,
};
use proptest::prelude::*;
use rand::Rng;

/// A group's key and its records.
type Group = (Vec<u8>, Vec<Pair>);

/// How inputs are read and interrupted.
#[derive(Clone, Copy)]
struct Reading<'a> {
    place: &'a Place,
    segments: &'a [String],
    fan_in: usize,
    grouping: Option<Grouping>,
    combine: bool,
    /// Whether each attempt has files of its own with the blocks alone that are needed.
    elsewhere: bool,
    /// How many values of a group are read; the rest is skipped.
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
            elsewhere: false,
            values: usize::MAX,
        }
    }

    fn settings(&self, attempt: usize) -> ReduceSettings {
        let scratch = self.place.path(&format!("scratch {attempt}"));
        fs::create_dir_all(&scratch).unwrap();
        let names: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let (fan_in, grouping) = (self.fan_in, self.grouping);
        // Enough for the blocks that many compressed inputs decompress at once.
        // One attempt maps what another one reads.
        let read_max = if attempt.is_multiple_of(2) { 0 } else { READ_MAX };
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
        match self.combine {
            false => ReduceInput::open(settings).unwrap(),
            true => ReduceInput::open_combining(settings, &Sum).unwrap(),
        }
    }

    fn open_at(&self, saved: &SavedReduceInput, attempt: usize) -> ReduceInput {
        let mut settings = self.settings(attempt);
        if self.elsewhere {
            let mut there: Vec<PathBuf> = vec![self.place.path("nowhere"); settings.segments.len()];
            for (input, block) in saved.blocks_needed() {
                there[input] = self.place.path(&format!("scratch {attempt}")).join(&self.segments[input]);
                excerpt(&settings.segments[input], &there[input], 0, block);
            }
            settings.segments = there;
        }
        settings.resume = Some((saved.clone(), self.place.path("checkpoints")));
        self.open_with(settings)
    }

    /// All groups when the input is saved and opened again at some boundaries, and how many boundaries there
    /// are.
    fn read(&self, cuts: &BTreeSet<usize>) -> (Vec<Group>, ReduceStatistics, usize) {
        let mut walk = Walk { reading: *self, input: Some(self.open()), boundary: 0, attempt: 0, cuts };
        let mut groups = Vec::new();
        walk.boundary();
        while walk.input().next_group().unwrap() {
            let mut records = Vec::new();
            walk.boundary();
            while records.len() < self.values {
                let Some((key, value)) = walk.input().next_value().unwrap() else { break };
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
            let place = self.reading.place.save_place(&format!("attempt-{}", self.attempt));
            let group = self.input().group_key().to_vec();
            let saved = in_words(&self.input().save(&place).unwrap());
            assert!(saved.files().all(|file| place.base.join(&file.file).exists()));
            self.input = None;
            let left = self.reading.place.names_in(&format!("scratch {}", self.attempt));
            assert!(left.iter().all(|name| !name.starts_with("merge-")), "{left:?} are left");
            self.attempt += 1;
            self.input = Some(self.reading.open_at(&saved, self.attempt));
            assert_eq!(self.input().group_key(), group);
        }
        self.boundary += 1;
    }
}

/// The statistics that do not depend on where it was interrupted.
fn lasting(statistics: ReduceStatistics) -> ReduceStatistics {
    ReduceStatistics { bytes_read: 0, memory_peak: 0, ..statistics }
}

/// Interrupts at every boundary once, at all of them, and in chains at random.
fn check(reading: Reading<'_>) {
    let (expected, statistics, boundaries) = reading.read(&BTreeSet::new());
    let mut random = random(71);
    let mut cuts: Vec<BTreeSet<usize>> = (0..boundaries).map(|at| BTreeSet::from([at])).collect();
    cuts.push((0..boundaries).collect());
    for _ in 0..8 {
        cuts.push((0..random.random_range(2..8)).map(|_| random.random_range(0..boundaries)).collect());
    }
    for cuts in cuts {
        let (found, counted, passed) = reading.read(&cuts);
        assert!(found == expected, "saved at {cuts:?} of {boundaries}: other groups");
        assert_eq!(lasting(counted), lasting(statistics), "saved at {cuts:?} of {boundaries}");
        assert_eq!(passed, boundaries);
        if cuts.len() > 1 {
            // An attempt's folder is used again by the next round.
            fs::remove_dir_all(reading.place.path("checkpoints")).unwrap();
        }
    }
}

/// Collects each map's pairs and returns the names of the segments.
fn collect(place: &Place, shape: Shape, maps: &[Vec<Pair>]) -> Vec<String> {
    let names: Vec<String> = (0..maps.len()).map(|map| format!("map-{map:04}")).collect();
    for (name, pairs) in names.iter().zip(maps) {
        place.collect(name, shape, pairs);
    }
    names
}

/// Few keys in many maps, so that groups have records of several of them; one map has none.
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
fn a_save_at_any_group_and_value_changes_nothing() {
    let maps = maps(5, 0..6, 9, 3);
    for shape in [Shape::default(), Shape::default().lz4(), Shape::default().fixed(3, 8)] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        let reading = Reading::new(&place, &segments);
        check(reading);
        check(Reading { elsewhere: true, ..reading });
    }
}

#[test]
fn intermediate_merges_are_kept_and_not_made_again() {
    let maps = maps(9, 0..8, 5, 20);
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        for fan_in in [2, 3, 5] {
            let reading = Reading { fan_in, ..Reading::new(&place, &segments) };
            assert!(reading.open().statistics().intermediate_merges > 0);
            check(reading);
            check(Reading { elsewhere: true, ..reading });
        }
    }
}

#[test]
fn one_group_of_all_records_is_cut_between_any_two_values() {
    for key_len in [0, 3, 11, 12, 40] {
        let place = Place::new();
        let segments = collect(&place, Shape::default(), &maps(4, 7..8, 20, key_len));
        check(Reading::new(&place, &segments));
        check(Reading { fan_in: 2, ..Reading::new(&place, &segments) });
    }
}

#[test]
fn groups_of_a_prefix_are_cut_between_their_keys() {
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
        check(Reading { grouping: Some(grouping), fan_in, ..Reading::new(&place, &segments) });
    }
}

#[test]
fn values_that_a_reducer_skips_are_counted_once() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps(4, 0..4, 8, 2));
    for values in [0, 1, 3] {
        check(Reading { values, ..Reading::new(&place, &segments) });
    }
}

#[test]
fn merges_that_fold_are_kept_as_they_are() {
    let place = Place::new();
    let names: Vec<String> = (0..8).map(|map| format!("map-{map}")).collect();
    let keys: Vec<Vec<u8>> = (0..7u32).map(|number| format!("a rather long key {number}").into()).collect();
    for (map, name) in names.iter().enumerate() {
        place.count(name, Shape::default(), &keys[map % 3..]);
    }
    check(Reading { combine: true, fan_in: 3, ..Reading::new(&place, &names) });
}

#[test]
fn inputs_without_a_record_are_saved_like_any_other() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &[vec![], vec![]]);
    check(Reading::new(&place, &segments));
    check(Reading::new(&place, &[]));
}

#[test]
fn blocks_of_every_kind_are_found_again_elsewhere() {
    let mut random = random(74);
    let maps: Vec<Vec<Pair>> = (0..3u8)
        .map(|map| {
            let value = |number: u8| if number == 4 { 200_000 } else { 40_000 };
            (0..9u8).map(|number| (vec![number / 2, map], bytes(&mut random, value(number)))).collect()
        })
        .collect();
    for shape in [Shape::default(), Shape::default().lz4()] {
        let place = Place::new();
        let segments = collect(&place, shape, &maps);
        let reading = Reading { grouping: Some(|_| 1), elsewhere: true, ..Reading::new(&place, &segments) };
        check(reading);
        check(Reading { fan_in: 2, ..reading });
    }
}

#[test]
fn an_input_goes_on_after_a_save() {
    let place = Place::new();
    let segments = collect(&place, Shape::default(), &maps(6, 0..5, 9, 3));
    let reading = Reading { fan_in: 2, ..Reading::new(&place, &segments) };
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
fn an_input_that_starts_later_is_not_taken_for_a_whole_one() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..9).map(|number| (vec![number], vec![number; 60_000])).collect();
    place.collect("map", Shape::default(), &pairs);
    excerpt(&place.path("map"), &place.path("rest"), 0, 2);
    let error = ReduceInput::open(place.reduce_settings(&["rest"], 0)).err().unwrap();
    assert!(matches!(error, ReduceError::Settings(_)), "{error}");
    assert!(error.to_string().contains("starts with record 4"), "{error}");
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
        (fan_in, lz4, prefix, elsewhere, large) in (0usize..8, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let place = Place::new();
        let value = |len: usize| vec![len as u8; if large { len * 20_000 } else { len }];
        let maps: Vec<Vec<Pair>> = maps
            .into_iter()
            .map(|map| map.into_iter().map(|(key, len)| (key, value(len))).collect())
            .collect();
        let segments = collect(&place, if lz4 { Shape::default().lz4() } else { Shape::default() }, &maps);
        let grouping: Option<Grouping> = if prefix { Some(|key| key.len().min(1)) } else { None };
        let reading = Reading { fan_in, grouping, elsewhere, ..Reading::new(&place, &segments) };
        let (expected, statistics, boundaries) = reading.read(&BTreeSet::new());
        let (found, counted, passed) = reading.read(&cuts);
        prop_assert!(found == expected && passed == boundaries);
        prop_assert_eq!(lasting(counted), lasting(statistics));
    }
}
