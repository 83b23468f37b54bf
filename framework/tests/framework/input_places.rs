//! The path, byte and line of a record as closures see them, in every format and after every preemption.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

use napreduce::input::{ByteLines, FixedRecords, WholeFiles};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};
use proptest::prelude::*;

/// Emits each line with its byte offset and line number.
fn places() -> Job {
    Job::bytes().map_only(|line: &[u8], out| {
        let place = out.input();
        out.emit((place.offset(), place.line()), line);
    })
}

/// The expected output, computed directly.
fn expected(text: &str) -> String {
    let mut offset = 0;
    let lines = text
        .split_inclusive('\n')
        .enumerate()
        .map(|(number, line)| {
            let place = format!(
                "{offset}\t{}\t{}\n",
                number + 1,
                line.trim_end_matches('\n')
            );
            offset += line.len();
            place
        });
    lines.collect()
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn place_has_byte_and_line_of_file(text in "([ab]{0,6}\n){0,30}[ab]{0,3}") {
        prop_assert_eq!(JobTest::new(places).input(&text).run().text(), expected(&text));
        let packed = JobTest::new(places).input(gzipped(&text)).input_extension("gz");
        prop_assert_eq!(packed.run().text(), expected(&text));
    }

    #[test]
    fn later_split_knows_byte_but_not_line(text in "([ab]{0,6}\n){1,30}", size in 4u64..40) {
        let output = JobTest::new(places).input(&text).split_size(size).run();
        let by_hand = expected(&text);
        let mut by_hand = by_hand.lines();
        for (number, part) in output.parts.iter().enumerate() {
            for line in std::str::from_utf8(part).expect("text").lines() {
                let whole = by_hand.next().expect("as many lines");
                let fields: Vec<&str> = whole.splitn(3, '\t').collect();
                let without = format!("{}\t\t{}", fields[0], fields[2]);
                prop_assert_eq!(line, if number == 0 { whole } else { without.as_str() });
            }
        }
        prop_assert_eq!(by_hand.next(), None);
    }
}

#[test]
fn places_survive_preemption() {
    let test = JobTest::new(places)
        .input("to\nbe\n\nor not\n")
        .input("a\nb\n");
    assert_eq!(
        test.run().text(),
        "0\t1\tto\n3\t2\tbe\n6\t3\t\n7\t4\tor not\n0\t1\ta\n2\t2\tb\n"
    );
    test.assert_preemption_safe();
    JobTest::new(places)
        .input(gzipped("to\nbe\nor\n"))
        .input_extension("gz")
        .assert_preemption_safe();
}

#[test]
fn line_count_continues_from_last_place() {
    let text: String = (0..40_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    let job = || {
        Job::bytes().map_only(|_: &[u8], out| {
            let place = out.input();
            let line = place.line().filter(|line| line % 1000 == 1);
            line.into_iter()
                .for_each(|line| out.emit(line, place.line()));
        })
    };
    let told: String = (0..40)
        .map(|number| format!("{0}\t{0}\n", number * 1000 + 1))
        .collect();
    assert_eq!(JobTest::new(job).input(text).run().text(), told);
}

#[test]
fn fixed_records_know_byte_and_whole_files_only_path() {
    let rows =
        || Job::fixed_records(2).map_only(|row: &[u8], out| out.emit(out.input().offset(), row));
    assert_eq!(
        JobTest::new(rows)
            .input("abcdef")
            .split_size(4)
            .run()
            .text(),
        "0\tab\n2\tcd\n4\tef\n"
    );
    let files = || {
        Job::whole_files().map_only(|file, out| {
            let place = out.input();
            assert_eq!((place.offset(), place.line()), (None, None));
            out.emit(place.path() == file.path, ());
        })
    };
    assert_eq!(JobTest::new(files).input("a\n").run().text(), "true\n");
}

#[test]
fn place_is_printed_with_file_and_line() {
    let named = || {
        Job::input(ByteLines).map_only(|_: &[u8], out| {
            let text = out.input().to_string();
            out.emit(text.rsplit('/').next(), ());
        })
    };
    let test = JobTest::new(named).input("a\nb\nc\nd\n");
    assert_eq!(
        test.split_size(4).run().text(),
        "input-0000 line 1\ninput-0000 line 2\ninput-0000 byte 4\ninput-0000 byte 6\n"
    );
    let fixed = || {
        Job::input(FixedRecords { length: 4 })
            .map_only(|_: &[u8], out| out.emit(out.input().line(), ()))
    };
    assert_eq!(
        JobTest::new(fixed).input("a\nb\nc\nd\n").run().text(),
        "1\n3\n"
    );
    let whole = || {
        Job::input(WholeFiles)
            .map_only(|_, out| out.emit(out.input().to_string().ends_with("input-0000"), ()))
    };
    assert_eq!(JobTest::new(whole).input("").run().text(), "true\n");
}

#[test]
fn place_is_known_in_maps_and_samples() {
    let index = || {
        Job::text()
            .map(|line: &str, out: &mut Emit<String, u64>| {
                let number = out.input().line().expect("one split");
                line.split(' ').for_each(|word| out.emit(word, number));
            })
            .total_order()
            .reduces(2)
            .reduce(|word, lines, out| {
                out.emit(word, format!("{:?}", lines.owned().collect::<Vec<_>>()))
            })
    };
    let test = JobTest::new(index).input("to be\nor\nnot to be\n");
    assert_eq!(
        test.run().text(),
        "be\t[1, 3]\nnot\t[3]\nor\t[2]\nto\t[1, 3]\n"
    );
    test.assert_preemption_safe();
}
