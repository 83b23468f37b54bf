//! Partitioning: each key has one partition, the same on every machine, and groups stay whole.

use crate::support::{Pair, Place, Shape, hash_partition, numbered, read};
use napreduce_data::{CollectError, Collector, CollectorSettings, Partitioning, PartitioningError};
use proptest::collection::vec;
use proptest::prelude::*;

fn partitions_of(
    partitioning: Partitioning,
    pairs: &[Pair],
) -> Result<Vec<Vec<Pair>>, CollectError> {
    let place = Place::new();
    let settings = CollectorSettings {
        partitioning,
        ..place.settings("out", Shape::default())
    };
    let mut collector: Collector<()> = Collector::plain(settings)?;
    for (key, value) in pairs {
        collector.emit_bytes(key, value);
    }
    collector.finish()?;
    Ok(read(&place.path("out")).unwrap())
}

fn keys(partitions: &[Vec<Pair>]) -> Vec<Vec<&[u8]>> {
    partitions
        .iter()
        .map(|pairs| pairs.iter().map(|(key, _)| key.as_slice()).collect())
        .collect()
}

#[test]
fn hash_partitions_are_stable() {
    let known = [
        ("", 1),
        ("a", 7),
        ("apple", 2),
        ("pear", 0),
        ("a longer key, beyond 16 bytes", 1),
    ];
    for (key, partition) in known {
        assert_eq!(hash_partition(key.as_bytes(), 8), partition, "{key:?}");
        let found = partitions_of(
            Partitioning::Hash {
                partitions: 8,
                grouping: None,
            },
            &numbered(vec![key.as_bytes().to_vec()]),
        );
        assert_eq!(found.unwrap()[partition].len(), 1, "{key:?}");
    }
}

#[test]
fn hash_of_grouping_prefix_keeps_groups_together() {
    let all: Vec<Vec<u8>> = (0..2000u32)
        .map(|number| vec![(number % 50) as u8, number as u8])
        .collect();
    let partitioning = Partitioning::Hash {
        partitions: 6,
        grouping: Some(|_| 1),
    };
    let found = partitions_of(partitioning, &numbered(all)).unwrap();
    for group in 0..50u8 {
        let owners = found
            .iter()
            .filter(|pairs| pairs.iter().any(|(key, _)| key[0] == group))
            .count();
        assert_eq!(owners, 1, "group {group}");
    }
    assert!(found.iter().all(|pairs| !pairs.is_empty()));
}

#[test]
fn key_equal_to_a_cut_goes_right() {
    let cuts = ["b", "d", "long common prefix 1", "long common prefix 2"]
        .map(|cut| cut.as_bytes().to_vec())
        .to_vec();
    let all = [
        "",
        "a",
        "b",
        "b\0",
        "c",
        "d",
        "long common prefix",
        "long common prefix 1",
        "long common prefix 2",
        "z",
    ];
    let pairs = numbered(all.map(|key| key.as_bytes().to_vec()).to_vec());
    let found = partitions_of(
        Partitioning::Range {
            cuts,
            grouping: None,
        },
        &pairs,
    )
    .unwrap();
    let expected: [&[&str]; 5] = [
        &["", "a"],
        &["b", "b\0", "c"],
        &["d", "long common prefix"],
        &["long common prefix 1"],
        &["long common prefix 2", "z"],
    ];
    assert_eq!(
        keys(&found),
        expected.map(|keys| keys.iter().map(|key| key.as_bytes()).collect::<Vec<_>>())
    );
}

#[test]
fn range_compares_only_the_grouping_prefix() {
    let cuts = vec![vec![3, 9], vec![5, 0]];
    let all: Vec<Vec<u8>> = (0..60u8).map(|number| vec![number % 7, number]).collect();
    let found = partitions_of(
        Partitioning::Range {
            cuts,
            grouping: Some(|_| 1),
        },
        &numbered(all),
    )
    .unwrap();
    for (partition, groups) in [(0, 0..3u8), (1, 3..5), (2, 5..7)] {
        assert!(
            found[partition]
                .iter()
                .all(|(key, _)| groups.contains(&key[0])),
            "partition {partition}"
        );
    }
}

proptest! {
    #[test]
    fn concatenated_range_partitions_are_totally_ordered(
        mut cuts in vec(vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..20), 0..9),
        keys in vec(vec(prop_oneof![Just(0u8), Just(1), any::<u8>()], 0..20), 0..200),
    ) {
        cuts.sort();
        let found = partitions_of(Partitioning::Range { cuts: cuts.clone(), grouping: None }, &numbered(keys.clone()));
        let found = found.unwrap();
        prop_assert_eq!(found.len(), cuts.len() + 1);
        for (partition, pairs) in found.iter().enumerate() {
            for (key, _) in pairs {
                prop_assert_eq!(partition, cuts.iter().filter(|cut| *cut <= key).count());
            }
        }
        let all: Vec<Vec<u8>> = found.into_iter().flatten().map(|(key, _)| key).collect();
        prop_assert!(all.is_sorted());
        prop_assert_eq!(all.len(), keys.len());
    }
}

#[test]
fn custom_partition_out_of_range_is_named() {
    let by_length = || Partitioning::Custom {
        partitions: 3,
        choose: Box::new(|key| key.len() as u32),
    };
    let pairs = numbered(vec![
        b"xx".to_vec(),
        b"".to_vec(),
        b"y".to_vec(),
        b"aa".to_vec(),
    ]);
    let found = partitions_of(by_length(), &pairs).unwrap();
    assert_eq!(
        keys(&found),
        [
            vec![&b""[..]],
            vec![&b"y"[..]],
            vec![&b"aa"[..], &b"xx"[..]]
        ]
    );
    let error =
        partitions_of(by_length(), &numbered(vec![b"a".to_vec(), b"abc".to_vec()])).unwrap_err();
    let expected =
        "the partitioner returned 3 for key \"abc\"; the job has 3 partitions, numbered from 0";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn invalid_partitionings_are_rejected() {
    let none = partitions_of(
        Partitioning::Hash {
            partitions: 0,
            grouping: None,
        },
        &[],
    );
    assert!(matches!(
        none,
        Err(CollectError::Partitioning(PartitioningError::NoPartition))
    ));
    let cuts = vec![vec![1], vec![3], vec![2]];
    let unordered = partitions_of(
        Partitioning::Range {
            cuts,
            grouping: None,
        },
        &[],
    );
    assert!(matches!(
        unordered,
        Err(CollectError::Partitioning(PartitioningError::Unordered {
            index: 2
        }))
    ));
}
