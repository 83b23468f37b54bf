//! Saved and resumed collectors seal the same bytes as undisturbed ones, wherever and however often they are
//! saved.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{MIB, Pair, Place, Shape, Sum, bytes, in_words, numbered, random};
use napreduce_data::{
    CollectError, CollectStatistics, Collector, CollectorSettings, SavedCollection,
};
use proptest::prelude::*;
use rand::Rng;

/// A collector that is saved before certain records; the number of records stands for the end.
struct Interrupted<'a> {
    place: &'a Place,
    shape: Shape,
    before: BTreeSet<usize>,
}

impl Interrupted<'_> {
    /// Settings of the next attempt. All attempts have the same label, so that the bytes are comparable.
    fn settings(
        &self,
        name: &str,
        attempt: usize,
        resume: Option<SavedCollection>,
    ) -> CollectorSettings {
        let scratch = self.place.path(&format!("{name} scratch {attempt}"));
        fs::create_dir_all(&scratch).unwrap();
        let resume = resume.map(|saved| (saved, self.place.path("checkpoints")));
        CollectorSettings {
            scratch,
            label: "attempt".into(),
            resume,
            ..self.place.settings(name, self.shape)
        }
    }

    fn collect<V, R>(
        &self,
        name: &str,
        records: &[R],
        make: impl Fn(CollectorSettings) -> Result<Collector<V>, CollectError>,
        emit: impl Fn(&mut Collector<V>, &R),
    ) -> CollectStatistics {
        let mut attempt = 0;
        let mut collector = make(self.settings(name, attempt, None)).unwrap();
        for number in 0..=records.len() {
            if self.before.contains(&number) {
                let place = self.place.save_place(&format!("attempt-{attempt}"));
                let saved = in_words(&collector.save(&place).unwrap());
                let base = &place.base;
                assert!(
                    saved
                        .files()
                        .iter()
                        .all(|file| base.join(&file.file).exists())
                );
                assert!(
                    self.place.is_empty(&format!("{name} scratch {attempt}")),
                    "runs remain"
                );
                attempt += 1;
                collector = make(self.settings(name, attempt, Some(saved))).unwrap();
            }
            if let Some(record) = records.get(number) {
                emit(&mut collector, record);
            }
        }
        let checkpoints = self.place.files_below("checkpoints");
        let (sealed, statistics) = collector.finish().unwrap();
        assert_eq!(
            self.place.files_below("checkpoints"),
            checkpoints,
            "saved files stay"
        );
        assert_eq!(sealed.records, statistics.records_out);
        assert!(
            self.place.is_empty(&format!("{name} scratch {attempt}")),
            "runs remain"
        );
        statistics
    }
}

fn plain(
    place: &Place,
    name: &str,
    shape: Shape,
    pairs: &[Pair],
    before: BTreeSet<usize>,
) -> CollectStatistics {
    let make = Collector::<()>::plain;
    Interrupted {
        place,
        shape,
        before,
    }
    .collect(name, pairs, make, |collector, (key, value)| {
        collector.emit_bytes(key, value);
    })
}

fn counting(
    place: &Place,
    name: &str,
    shape: Shape,
    keys: &[Vec<u8>],
    before: BTreeSet<usize>,
) -> CollectStatistics {
    let make = |settings| Collector::combining(settings, Sum);
    Interrupted {
        place,
        shape,
        before,
    }
    .collect(name, keys, make, |collector, key| {
        collector.emit_value(key, 1, 0)
    })
}

/// Drops the statistics that depend on where runs end.
fn stable(statistics: CollectStatistics) -> CollectStatistics {
    let spills = 0;
    let spilled_records = 0;
    let memory_peak = 0;
    let combine_records_out = 0;
    let combine_bypassed = false;
    CollectStatistics {
        spills,
        spilled_records,
        memory_peak,
        combine_records_out,
        combine_bypassed,
        ..statistics
    }
}

/// One save before every record, all of them in one chain, then random chains.
fn cuts(records: usize, seed: u64) -> Vec<BTreeSet<usize>> {
    let mut random = random(seed);
    let mut cuts: Vec<BTreeSet<usize>> = (0..=records).map(|at| BTreeSet::from([at])).collect();
    cuts.push((0..=records).collect());
    for _ in 0..10 {
        cuts.push(
            (0..random.random_range(2..8))
                .map(|_| random.random_range(0..=records))
                .collect(),
        );
    }
    cuts
}

/// Collects with each set of cuts and compares with an undisturbed collection.
fn check(
    what: &str,
    collect: impl Fn(&Place, &str, BTreeSet<usize>) -> CollectStatistics,
    cuts: Vec<BTreeSet<usize>>,
) {
    let undisturbed = Place::new();
    let expected = collect(&undisturbed, "map", BTreeSet::new());
    let sealed = fs::read(undisturbed.path("map")).unwrap();
    for before in cuts {
        let place = Place::new();
        let found = collect(&place, "map", before.clone());
        assert_eq!(
            stable(found),
            stable(expected),
            "{what}, saved before {before:?}"
        );
        assert!(
            fs::read(place.path("map")).unwrap() == sealed,
            "{what}, saved before {before:?}: different bytes"
        );
    }
}

/// Large values, so that few records cause several spills.
fn large(count: usize, value: usize, key: impl Fn(usize) -> Vec<u8>) -> Vec<Pair> {
    let mut random = random(51);
    (0..count)
        .map(|number| {
            let mut noise = bytes(&mut random, value / 2);
            noise.resize(value, number as u8);
            (key(number), noise)
        })
        .collect()
}

#[test]
fn save_before_any_record_keeps_the_output() {
    let pairs = large(40, 30_000, |number| {
        (number * 7 % 40).to_be_bytes().to_vec()
    });
    let fixed = Shape::default().fixed(8, 30_000);
    for shape in [
        Shape::default(),
        Shape::default().lz4(),
        fixed,
        fixed.fan_in(2),
    ] {
        let shape = shape.partitions(3);
        let spills = plain(&Place::new(), "map", shape, &pairs, BTreeSet::new()).spills;
        assert!(spills > 2, "{spills} spills");
        check(
            &format!("{:?} {:?}", shape.encoding, shape.compression),
            |place, name, before| plain(place, name, shape, &pairs, before),
            cuts(pairs.len(), 52),
        );
    }
}

#[test]
fn equal_keys_keep_their_order_across_saves() {
    let pairs = numbered(vec![b"the same".to_vec(); 50]);
    for fan_in in [2, 64] {
        let shape = Shape::default().fan_in(fan_in);
        check(
            "equal keys",
            |place, name, before| plain(place, name, shape, &pairs, before),
            cuts(pairs.len(), 53),
        );
    }
}

#[test]
fn jumbo_records_survive_saves() {
    let mut pairs = numbered((0..12u32).map(|number| vec![(number % 5) as u8]).collect());
    pairs[3].1 = vec![3; 150_000];
    pairs[5].1 = vec![5; 2 * MIB];
    pairs[6].1 = vec![6; MIB];
    pairs[7].0 = vec![7; 200_000];
    for shape in [
        Shape::default(),
        Shape::default().lz4().partitions(2).fan_in(2),
    ] {
        check(
            "jumbo records",
            |place, name, before| plain(place, name, shape, &pairs, before),
            cuts(pairs.len(), 54),
        );
    }
}

#[test]
fn combiner_folds_across_saves() {
    let mut random = random(55);
    let short = (0..60).map(|_| vec![b'k', random.random_range(0..20)]);
    let keys: Vec<Vec<u8>> = short
        .chain((0..20).map(|number| vec![number % 3; 5_000]))
        .collect();
    for shape in [
        Shape::default().partitions(2),
        Shape::default().lz4().fan_in(2),
    ] {
        check(
            "combining",
            |place, name, before| counting(place, name, shape, &keys, before),
            cuts(keys.len(), 56),
        );
    }
}

#[test]
fn flushed_combine_table_folds_across_saves() {
    let keys: Vec<Vec<u8>> = (0..60_000u32)
        .map(|number| format!("a long key {}", number % 20_000).into_bytes())
        .collect();
    let shape = Shape::default().partitions(2);
    let at = [0, 1, 9_999, 20_000, 59_999, 60_000];
    let mut cuts: Vec<BTreeSet<usize>> = at.iter().map(|&at| BTreeSet::from([at])).collect();
    cuts.push(BTreeSet::from(at));
    check(
        "flushed table",
        |place, name, before| counting(place, name, shape, &keys, before),
        cuts,
    );
}

#[test]
fn saved_runs_are_not_written_again() {
    let place = Place::new();
    let shape = Shape::default();
    let settings = |resume| CollectorSettings {
        resume,
        ..place.settings("map", shape)
    };
    let mut collector: Collector<()> = Collector::plain(settings(None)).unwrap();
    collector.emit_bytes(b"key", b"first");
    let first = collector.save(&place.save_place("attempt-1")).unwrap();
    assert_eq!(place.files_below("checkpoints"), ["attempt-1/run-00000"]);

    let resume = |saved: &SavedCollection| Some((saved.clone(), place.path("checkpoints")));
    let collector: Collector<()> = Collector::plain(settings(resume(&first))).unwrap();
    let again = collector.save(&place.save_place("attempt-2")).unwrap();
    assert_eq!(again, first, "no record was added");

    let mut collector: Collector<()> = Collector::plain(settings(resume(&again))).unwrap();
    collector.emit_bytes(b"key", b"second");
    let second = collector.save(&place.save_place("attempt-3")).unwrap();
    assert_eq!(second.files()[..1], *first.files());
    assert_eq!(
        place.files_below("checkpoints"),
        ["attempt-1/run-00000", "attempt-3/run-00001"]
    );
    assert_eq!(second.statistics().records_in, 2);
}

#[test]
fn failed_collector_is_not_saved() {
    let place = Place::new();
    let mut collector: Collector<()> =
        Collector::plain(place.settings("map", Shape::default().fixed(1, 1))).unwrap();
    collector.emit_bytes(b"key", b"value");
    let error = collector.save(&place.save_place("attempt")).unwrap_err();
    assert!(
        matches!(error, CollectError::NotFixed { .. }) && !error.blames_checkpoint(),
        "{error}"
    );
    assert!(place.files_below("checkpoints").is_empty());
}

#[test]
fn save_to_missing_directory_is_named() {
    let place = Place::new();
    let mut collector: Collector<()> =
        Collector::plain(place.settings("map", Shape::default())).unwrap();
    collector.emit_bytes(b"key", b"value");
    let mut missing = place.save_place("attempt");
    fs::remove_dir_all(&missing.base).unwrap();
    missing.durable = true;
    let error = collector.save(&missing).unwrap_err();
    assert!(
        error.to_string().contains("checkpoints/attempt/run-00000"),
        "{error}"
    );
    assert!(place.names().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_records_saved_anywhere_seal_the_same_bytes(
        lengths in proptest::collection::vec((0usize..4, 0usize..40, prop_oneof![3 => 0usize..9, 1 => 100_000usize..300_000]), 0..25),
        cuts in proptest::collection::btree_set(0usize..26, 0..6),
        (lz4, partitions, fan_in) in (any::<bool>(), 1u32..4, 0usize..4),
    ) {
        let pairs: Vec<Pair> = lengths
            .iter()
            .map(|&(first, key, value)| (vec![first as u8; key], vec![key as u8; value]))
            .collect();
        let shape = Shape::default().partitions(partitions).fan_in(fan_in);
        let shape = if lz4 { shape.lz4() } else { shape };
        check("any records", |place, name, before| plain(place, name, shape, &pairs, before), vec![cuts]);
    }
}
