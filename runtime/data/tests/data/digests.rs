//! The digest of a segment covers its records in their order, and nothing that depends on the attempt.

use crate::support::{MIB, Pair, Place, Shape, Sum, random};
use napreduce_data::{Collector, CollectorSettings};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::Rng;

/// How an attempt collects.
struct Attempt {
    shape: Shape,
    label: &'static str,
    is_in_memory: bool,
    /// It is saved and resumed before each of these records.
    saved_before: Vec<usize>,
}

impl Attempt {
    fn new(shape: Shape) -> Attempt {
        Attempt {
            shape,
            label: "job_0001_m_0000.1",
            is_in_memory: false,
            saved_before: Vec::new(),
        }
    }

    fn saved_before(self, records: &[usize]) -> Attempt {
        Attempt {
            saved_before: records.to_vec(),
            ..self
        }
    }

    fn settings(&self, place: &Place) -> CollectorSettings {
        let mut settings = place.settings("out", self.shape);
        self.label.clone_into(&mut settings.label);
        if self.is_in_memory {
            settings.memory_file = Some((place.path("memory"), u64::MAX));
        }
        settings
    }

    /// Collects records and returns the digest of the segment.
    fn digest<V, R>(
        &self,
        records: &[R],
        make: impl Fn(CollectorSettings) -> Collector<V>,
        emit: impl Fn(&mut Collector<V>, &R),
    ) -> u64 {
        let place = Place::new();
        std::fs::write(place.path("memory"), "").unwrap();
        let mut collector = make(self.settings(&place));
        for (index, record) in records.iter().enumerate() {
            if self.saved_before.contains(&index) {
                let save_place = place.save_place(&index.to_string());
                let base = save_place.base.clone();
                let saved = collector.save(&save_place).unwrap();
                collector = make(CollectorSettings {
                    resume: Some((saved, base)),
                    ..self.settings(&place)
                });
            }
            emit(&mut collector, record);
        }
        let (sealed, _) = collector.finish().unwrap();
        assert_eq!(sealed.is_in_memory, self.is_in_memory);
        sealed.digest.unwrap()
    }

    fn of_pairs(&self, pairs: &[Pair]) -> u64 {
        self.digest(
            pairs,
            |settings| Collector::<()>::plain(settings).unwrap(),
            |collector, (key, value)| {
                collector.emit_bytes(key, value);
            },
        )
    }

    fn of_counts(&self, keys: &[Vec<u8>]) -> u64 {
        self.digest(
            keys,
            |settings| Collector::combining(settings, Sum).unwrap(),
            |collector, key| collector.emit_value(key, 1, 0),
        )
    }
}

fn numbered(count: usize, keys: usize) -> Vec<Pair> {
    (0..count)
        .map(|number| {
            (
                format!("key {}", number % keys).into_bytes(),
                number.to_string().into_bytes(),
            )
        })
        .collect()
}

#[test]
fn digest_is_independent_of_spills_label_and_place() {
    let shape = Shape::default().partitions(3);
    let pairs = numbered(200_000, 1_000);
    let digest = Attempt::new(shape.memory(256 * MIB)).of_pairs(&pairs);
    assert_eq!(Attempt::new(shape).of_pairs(&pairs), digest);
    assert_eq!(Attempt::new(shape.fan_in(2)).of_pairs(&pairs), digest);
    assert_eq!(
        Attempt {
            label: "job_0001_m_0000.1234",
            ..Attempt::new(shape)
        }
        .of_pairs(&pairs),
        digest
    );
    assert_eq!(
        Attempt {
            is_in_memory: true,
            ..Attempt::new(shape)
        }
        .of_pairs(&pairs),
        digest
    );
    assert_eq!(
        Attempt::new(shape)
            .saved_before(&[1, 70_000, 199_999])
            .of_pairs(&pairs),
        digest
    );
}

#[test]
fn digest_of_combined_records_is_independent_of_interruptions() {
    let mut random = random(7);
    let repeating: Vec<Vec<u8>> = (0..200_000)
        .map(|_| random.random_range(0..30_000_u32).to_string().into_bytes())
        .collect();
    // The table is dropped, since few keys repeat.
    let unique: Vec<Vec<u8>> = (0..200_000)
        .map(|_| {
            random
                .random_range(0..2_000_000_u32)
                .to_string()
                .into_bytes()
        })
        .collect();
    let long: Vec<Vec<u8>> = (0..50_000)
        .map(|_| format!("{:>40}", random.random_range(0..40_000_u32)).into_bytes())
        .collect();
    for keys in [repeating, unique, long] {
        for shape in [
            Shape::default().partitions(2),
            Shape::default().partitions(2).lz4(),
        ] {
            let digest = Attempt::new(shape.memory(256 * MIB)).of_counts(&keys);
            assert_eq!(Attempt::new(shape).of_counts(&keys), digest);
            let middle = keys.len() / 2;
            for saved_before in [
                vec![1],
                vec![middle],
                vec![middle, middle + 1, keys.len() - 1],
            ] {
                let interrupted = Attempt::new(shape.memory(256 * MIB)).saved_before(&saved_before);
                assert_eq!(
                    interrupted.of_counts(&keys),
                    digest,
                    "saved before {saved_before:?}"
                );
                assert_eq!(
                    Attempt::new(shape)
                        .saved_before(&saved_before)
                        .of_counts(&keys),
                    digest
                );
            }
        }
    }
}

#[test]
fn digest_changes_with_partition_of_record() {
    let pairs = numbered(10, 10);
    let digests: Vec<u64> = (1..5)
        .map(|partitions| Attempt::new(Shape::default().partitions(partitions)).of_pairs(&pairs))
        .collect();
    for (place, digest) in digests.iter().enumerate() {
        assert!(!digests[..place].contains(digest), "{digests:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn digest_is_that_of_records_in_the_order_of_a_reduce(
        keys in vec(0u8..4, 1..60),
        saved_before in vec(0usize..60, 0..3),
        changed in any::<prop::sample::Index>(),
        moved in any::<prop::sample::Index>(),
    ) {
        let pairs: Vec<Pair> =
            keys.iter().zip(0u8..).map(|(key, number)| (vec![*key], vec![number])).collect();
        let shape = Shape::default().partitions(2);
        let digest = Attempt::new(shape).of_pairs(&pairs);
        let interrupted = Attempt::new(shape).saved_before(&saved_before);
        prop_assert_eq!(interrupted.of_pairs(&pairs), digest);

        // The order of different keys does not matter to a reduce.
        let mut by_key = pairs.clone();
        by_key.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(Attempt::new(shape).of_pairs(&by_key), digest);

        let changed = changed.index(pairs.len());
        let mut other = pairs.clone();
        other[changed].1[0] ^= 128;
        prop_assert_ne!(Attempt::new(shape).of_pairs(&other), digest, "another value");
        let mut other = pairs.clone();
        other.remove(changed);
        prop_assert_ne!(Attempt::new(shape).of_pairs(&other), digest, "a record is missing");
        let mut other = pairs.clone();
        other.push(pairs[changed].clone());
        prop_assert_ne!(Attempt::new(shape).of_pairs(&other), digest, "a record comes twice");
        let moved = moved.index(pairs.len());
        let mut other = pairs.clone();
        other.swap(changed, moved);
        let mut sorted = other.clone();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(Attempt::new(shape).of_pairs(&other) == digest, sorted == by_key, "two records change places");
    }
}
