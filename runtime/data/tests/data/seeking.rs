//! Amount of data that a restored reduce input reads: the unread rest, and at most part of one block per
//! segment again.

use crate::support::{MIB, Pair, Place, Shape, bytes, excerpt, random};
use napreduce_data::{ReduceInput, ReduceSettings, SavedReduceInput, Segment};
use rand::Rng;

/// Raw size of a full block.
const BLOCK: u64 = 128 << 10;

/// The inputs of one reduce task.
struct Inputs<'a> {
    place: &'a Place,
    segments: Vec<String>,
    fan_in: usize,
}

impl<'a> Inputs<'a> {
    fn collect(place: &'a Place, shape: Shape, maps: &[Vec<Pair>]) -> Inputs<'a> {
        let segments: Vec<String> = (0..maps.len()).map(|map| format!("map-{map}")).collect();
        for (name, pairs) in segments.iter().zip(maps) {
            place.collect(name, shape.memory(64 * MIB), pairs);
        }
        Inputs {
            place,
            segments,
            fan_in: 64,
        }
    }

    fn settings(&self) -> ReduceSettings {
        let names: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        // Enough memory to decompress a block of every input.
        ReduceSettings {
            memory: 4 * MIB,
            fan_in: self.fan_in,
            ..self.place.reduce_settings(&names, 0)
        }
    }

    fn open(&self) -> ReduceInput {
        ReduceInput::open(self.settings()).unwrap()
    }

    /// Saves an input and resumes it from files with only the needed blocks.
    fn resume_elsewhere(&self, mut input: ReduceInput) -> ReduceInput {
        let saved: SavedReduceInput = input.save(&self.place.save_place("attempt")).unwrap();
        drop(input);
        let mut settings = self.settings();
        for (number, block) in saved.blocks_needed() {
            let fetched = self.place.path(&format!("fetched-{number}"));
            excerpt(&settings.segments[number], &fetched, 0, block);
            settings.segments[number] = fetched;
        }
        settings.resume = Some((saved, self.place.path("checkpoints")));
        ReduceInput::open(settings).unwrap()
    }

    /// Returns the stored bytes of the partition.
    fn stored(&self) -> u64 {
        let open = |name: &String| Segment::open(&self.place.path(name)).unwrap();
        self.segments
            .iter()
            .map(|name| open(name).partition(0).unwrap().stored_len)
            .sum()
    }
}

#[test]
fn resume_at_90_percent_reads_at_most_12_percent() {
    const ROWS: u64 = 40_000;
    const MAPS: u64 = 8;
    let fixed = Shape::default().fixed(10, 90);
    for (shape, fan_in) in [
        (fixed, 64),
        (Shape::default(), 64),
        (Shape::default().lz4(), 64),
        (fixed, 3),
    ] {
        let mut random = random(75);
        let place = Place::new();
        let row = |random: &mut _| (bytes(random, 10), vec![7; 90]);
        let maps: Vec<Vec<Pair>> = (0..MAPS)
            .map(|_| (0..ROWS).map(|_| row(&mut random)).collect())
            .collect();
        let inputs = Inputs {
            fan_in,
            ..Inputs::collect(&place, shape, &maps)
        };
        let mut input = inputs.open();
        while input.statistics().records < MAPS * ROWS * 9 / 10 {
            assert!(input.next_group().unwrap());
            while input.next_value().unwrap().is_some() {}
        }
        let total = inputs.stored();
        assert!(
            input.statistics().bytes_read >= total * 9 / 10,
            "{:?}",
            input.statistics()
        );

        let mut restored = inputs.resume_elsewhere(input);
        while restored.next_group().unwrap() {}
        let read = restored.statistics().bytes_read;
        let most = total * 12 / 100 + MAPS * BLOCK;
        println!(
            "{:?} {:?} fan-in {fan_in}: {read} of {total} bytes",
            shape.encoding, shape.compression
        );
        assert!(read <= most, "read {read} of {total} bytes (limit {most})");
        assert_eq!(restored.statistics().records, MAPS * ROWS);
    }
}

#[test]
fn huge_group_is_read_once_across_saves() {
    const VALUES: u32 = 200_000;
    let place = Place::new();
    let maps: Vec<Vec<Pair>> = (0..3u32)
        .map(|map| {
            (0..VALUES)
                .map(|value| (vec![b'k'], (map * VALUES + value).to_be_bytes().into()))
                .collect()
        })
        .collect();
    let inputs = Inputs::collect(&place, Shape::default().fixed(1, 4), &maps);
    let mut random = random(76);
    let mut input = inputs.open();
    assert!(input.next_group().unwrap());
    let mut read = 0;
    let mut saves = 0;
    let mut next_save = 0;
    for expected in 0..3 * VALUES {
        if expected == next_save {
            read += input.statistics().bytes_read;
            saves += 1;
            input = inputs.resume_elsewhere(input);
            assert_eq!(input.group_key(), b"k");
            next_save += random.random_range(1..60_000);
        }
        let (_, value) = input.next_value().unwrap().unwrap();
        assert!(value == expected.to_be_bytes(), "value {expected}");
    }
    assert!(input.next_value().unwrap().is_none() && !input.next_group().unwrap());
    read += input.statistics().bytes_read;
    let most = inputs.stored() + saves * 3 * BLOCK;
    assert!(
        saves > 10 && read <= most,
        "read {read} bytes with {saves} saves (limit {most})"
    );
    assert_eq!(input.statistics().groups, 1);
}

#[test]
fn resume_at_the_end_reads_nothing() {
    let place = Place::new();
    let pairs: Vec<Pair> = (0..9u8)
        .map(|number| (vec![number], vec![number; 60_000]))
        .collect();
    let inputs = Inputs::collect(&place, Shape::default(), &[pairs.clone(), pairs]);
    let mut input = inputs.open();
    while input.next_group().unwrap() {}
    let saved = input.save(&place.save_place("attempt")).unwrap();
    assert_eq!(saved.blocks_needed().count(), 0);
    let mut restored = inputs.resume_elsewhere(input);
    assert!(!restored.next_group().unwrap());
    let statistics = restored.statistics();
    assert_eq!(
        (statistics.bytes_read, statistics.records, statistics.groups),
        (0, 18, 9)
    );
}
