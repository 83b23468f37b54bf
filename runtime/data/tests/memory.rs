//! Measures the whole process: its anonymous memory stays below 1.3 times the task's memory. So this test is
//! a program of its own.

#![allow(clippy::unwrap_used)] // every function here is part of a test

#[path = "data/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use napreduce_data::{Collector, Combiner, ReduceInput, ReduceSettings};
use rand::Rng;
use support::{MIB, Place, Shape, Sum, random};

/// Keeps the longest text.
struct Longest;

impl Combiner for Longest {
    type Value = Vec<u8>;

    fn fold(&self, into: &mut Vec<u8>, more: Vec<u8>) {
        if more.len() > into.len() {
            *into = more;
        }
    }

    fn encode(&self, value: &Vec<u8>, into: &mut Vec<u8>) {
        into.extend_from_slice(value);
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        Ok(bytes.to_vec())
    }

    fn heap_bytes(&self, value: &Vec<u8>) -> usize {
        value.capacity()
    }
}

fn anonymous_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

/// Runs `work` and returns the peak growth of anonymous memory, sampled as fast as one thread can.
fn growth(work: impl FnOnce()) -> usize {
    let before = anonymous_bytes();
    let done = Arc::new(AtomicBool::new(false));
    let peak = Arc::new(AtomicUsize::new(0));
    let sampler = std::thread::spawn({
        let done = done.clone();
        let peak = peak.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::yield_now();
            }
        }
    });
    work();
    done.store(true, Ordering::Relaxed);
    sampler.join().unwrap();
    peak.load(Ordering::Relaxed).saturating_sub(before)
}

#[track_caller]
fn check(what: &str, memory: usize, work: impl FnOnce()) {
    let growth = growth(work);
    println!(
        "{what}: {:.1} MiB of {}",
        growth as f64 / MIB as f64,
        memory / MIB
    );
    assert!(
        growth < memory * 13 / 10,
        "{what}: {growth} bytes with a memory of {memory}"
    );
}

#[test]
fn process_memory_stays_within_the_task_memory() {
    let memory = 24 * MIB;
    let mut random = random(51);
    let place = Place::new();
    for (name, shape) in [
        ("plain", Shape::default()),
        ("lz4", Shape::default().lz4().fan_in(4)),
    ] {
        check(name, memory, || {
            let mut collector: Collector<()> =
                Collector::plain(place.settings(name, shape.memory(memory).partitions(5))).unwrap();
            let value = [7; 200];
            for _ in 0..500_000 {
                let key = random.random::<u64>().to_be_bytes();
                // Half of the records are tiny, half are large, so that both ends of the arena grow.
                let len = if random.random::<bool>() {
                    0
                } else {
                    key[0] as usize % 200
                };
                collector.emit_bytes(&key, &value[..len]);
            }
            assert!(collector.finish().unwrap().1.spills > 2);
        });
    }
    for (name, distinct, len) in [
        ("few words", 2_000u32, 8),
        ("many words", 600_000, 8),
        ("long words", 400_000, 60),
    ] {
        check(name, memory, || {
            let settings = place.settings(name, Shape::default().memory(memory));
            let mut collector = Collector::combining(settings, Sum).unwrap();
            let mut key = vec![b'k'; len];
            for _ in 0..1_000_000 {
                let number = random.random_range(0..distinct) / (1 + random.random_range(0..3));
                key[..4].copy_from_slice(&number.to_be_bytes());
                collector.emit_value(&key, 1, 0);
            }
            collector.finish().unwrap();
        });
    }
    for (name, distinct, value_len) in [
        ("few long texts", 200u32, 40_000),
        ("many texts", 20_000, 2_000),
        ("one text of each", 400_000, 500),
    ] {
        check(name, memory, || {
            let settings = place.settings(name, Shape::default().memory(memory));
            let mut collector = Collector::combining(settings, Longest).unwrap();
            for _ in 0..400_000_000 / value_len {
                let key = random.random_range(0..distinct).to_be_bytes();
                let value = vec![b'v'; random.random_range(1..value_len)];
                let heap_bytes = Longest.heap_bytes(&value);
                collector.emit_value(&key, value, heap_bytes);
            }
            collector.finish().unwrap();
        });
    }
    check("reduce", 4 * MIB, || {
        let settings = ReduceSettings {
            fan_in: 2,
            memory: 4 * MIB,
            ..place.reduce_settings(&["lz4"; 9], 0)
        };
        let mut input = ReduceInput::open(settings).unwrap();
        while input.next_group().unwrap() {
            while input.next_value().unwrap().is_some() {}
        }
        assert!(input.statistics().records > 500_000);
    });
}
