//! Maps that return the keys and pairs that they emit.

use std::num::ParseIntError;

use napreduce::builder::BadRecord;
use napreduce::input::Skip;
use napreduce::output::TextField;
use napreduce::records::Records;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, Key, Value, words};

const LINES: &str = "to be or\nnot to be\n\nthat is\n";

#[test]
fn word_count_by_flat_map_equals_word_count_by_emit() {
    let by_emit = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, u64>| {
                words(line).for_each(|word| out.emit(word, 1))
            })
            .combine(|count, more| *count += more)
            .reduce(|word, counts, out| out.emit(word, counts.sum()))
    };
    let by_flat_map = || Job::text().flat_map(words).count();
    let expected = JobTest::new(by_emit)
        .input(LINES)
        .split_size(8)
        .reduces(2)
        .run();
    let found = JobTest::new(by_flat_map)
        .input(LINES)
        .split_size(8)
        .reduces(2)
        .run();
    assert_eq!(found, expected);
}

#[test]
fn items_may_be_options_arrays_vectors_and_iterators() {
    fn pair(line: &str) -> [(&str, u64); 1] {
        [(line, 1)]
    }
    let text = |output: napreduce::testing::JobOutput| output.text();
    let input = "b\na\nb\n";
    let expected = "a\t1\nb\t2\n";
    let test = |job: fn() -> Job<(String, u64)>| text(JobTest::new(job).input(input).run());
    assert_eq!(test(|| Job::text().flat_map(pair).sum()), expected);
    assert_eq!(
        test(|| Job::text()
            .flat_map(|line: &str| Some((line.to_owned(), 1u64)))
            .sum()),
        expected
    );
    assert_eq!(
        test(|| Job::text()
            .flat_map(|line: &str| vec![line.to_owned()])
            .count()),
        expected
    );
    assert_eq!(
        test(|| Job::text()
            .flat_map(|line: &str| std::iter::once(line.to_owned()))
            .count()),
        expected
    );
    assert_eq!(
        test(|| Job::text().flat_map(str::split_whitespace).count()),
        expected
    );
}

#[test]
fn keys_of_several_fields_are_first_of_pair() {
    let job = || {
        Job::text()
            .flat_map(|line: &str| {
                words(line)
                    .map(|word| ((word.len() as u64, word.to_owned()), ()))
                    .collect::<Vec<_>>()
            })
            .distinct()
    };
    let test = JobTest::new(job).input("to be or\nnot\n");
    assert_eq!(test.run().text(), "2\tbe\n2\tor\n2\tto\n3\tnot\n");
}

#[test]
fn bytes_and_typed_records_are_mapped() {
    let lengths = || {
        Job::bytes()
            .flat_map(|line: &[u8]| [(line.len() as u64, line.to_vec())])
            .first()
    };
    assert_eq!(
        JobTest::new(lengths).input(b"\xffa\nbc\nd\n").run().parts,
        [b"1\td\n2\t\xffa\n"]
    );

    let counts = JobTest::new(|| Job::text().flat_map(words).count())
        .input(LINES)
        .for_next_job()
        .run();
    let by_count = || {
        Job::records::<String, u64>()
            .flat_map(|(word, count): (&str, u64)| [(count, word.to_owned())])
            .collect()
    };
    assert_eq!(
        JobTest::new(by_count).input(&counts.parts[0]).run().text(),
        "1\tis\tnot\tor\tthat\n2\tbe\tto\n"
    );
}

fn numbers() -> Job<(u64, u64)> {
    Job::text()
        .flat_map(|line: &str| [line.parse::<u64>().map(|number| (number % 2, number))])
        .sum()
}

#[test]
fn error_of_item_fails_task() {
    let run = || JobTest::new(numbers).input("1\nx\n").run();
    let message = std::panic::catch_unwind(run).expect_err("x is not a number");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(
        message.contains("invalid digit found in string"),
        "{message}"
    );
    assert_eq!(
        JobTest::new(numbers).input("1\n2\n3\n").run().text(),
        "0\t2\n1\t4\n"
    );
}

#[test]
fn bad_records_of_items_are_skipped() {
    let numbers = || {
        Job::text()
            .flat_map(|line: &str| {
                [line
                    .parse::<u64>()
                    .map_err(|why: ParseIntError| BadRecord::from(why))]
            })
            .count()
    };
    let test = JobTest::new(numbers)
        .input("1\nx\n1\n")
        .on_bad_input(Skip::All);
    let output = test.run();
    assert_eq!(
        (output.text().as_str(), output.counters.get("BAD_RECORDS")),
        ("1\t2\n", 1)
    );
    test.assert_preemption_safe();
}

#[test]
fn result_as_iterator_is_rejected() {
    let job = || {
        Job::text()
            .flat_map(|line: &str| line.parse::<u64>())
            .count()
    };
    let message = std::panic::catch_unwind(job)
        .err()
        .expect("errors would be dropped");
    let message = message.downcast_ref::<&str>().expect("a message");
    assert!(
        message.contains("return `[result]` to fail the task"),
        "{message}"
    );
}

#[derive(Key)]
enum Place<'a> {
    Unknown,
    At {
        city: &'a str,
        street: Option<&'a str>,
        flags: &'a [u8; 2],
        of: (Zone, u64),
    },
}

#[derive(Key)]
struct Zone(u8);

impl TextField for Zone {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

#[derive(Value, Clone, Debug, PartialEq)]
struct Measure {
    degrees: f64,
    is_exact: bool,
}

/// A pair of a key with a lifetime and a value that is not `Copy`.
fn measured(line: &str) -> [(Place<'_>, Measure); 1] {
    let place = match line.split_once(' ') {
        Some((city, street)) => Place::At {
            city,
            street: Some(street),
            flags: &[1, 2],
            of: (Zone(3), street.len() as u64),
        },
        None => Place::Unknown,
    };
    [(
        place,
        Measure {
            degrees: line.len() as f64,
            is_exact: true,
        },
    )]
}

fn read_back() -> Job {
    Job::records::<Place<'static>, Measure>().map_only(|(place, measure), out| match place {
        Place::Unknown => out.emit("unknown", measure.degrees),
        Place::At {
            city,
            street,
            flags,
            of: (Zone(zone), length),
        } => {
            out.emit((city, street, *flags, zone, length), measure.degrees);
        }
    })
}

#[test]
fn derived_keys_and_values_are_folded() {
    let least = || {
        Job::text()
            .flat_map(measured)
            .output(Records::default())
            .reduce_by_key(|least, more: Measure| {
                if more.degrees < least.degrees {
                    *least = more;
                }
            })
    };
    let test = JobTest::new(least)
        .input("Oslo Gata\nx\nRome Via\nlong\nOslo Gata\n")
        .reduces(1);
    let found = JobTest::new(read_back).input(&test.run().parts[0]).run();
    assert_eq!(
        found.text(),
        "unknown\t1.0\nOslo\tGata\t\u{1}\u{2}\t3\t4\t9.0\nRome\tVia\t\u{1}\u{2}\t3\t3\t8.0\n"
    );
    test.assert_preemption_safe();
}

#[test]
fn derived_key_is_emitted_alone() {
    let zones = || {
        Job::text()
            .flat_map(|line: &str| [Zone(line.len() as u8)])
            .count()
    };
    assert_eq!(
        JobTest::new(zones).input("to\nbe\nnot\n").run().text(),
        "2\t2\n3\t1\n"
    );
}
