//! Records of several lines, and text with invalid UTF-8. Every cut must give the records of the whole text.

use napreduce::Job;
use napreduce::input::{LossyLines, TextRecords};
use napreduce::testing::JobTest;
use proptest::collection::vec;
use proptest::prelude::*;

fn records(format: impl Fn() -> TextRecords, text: &str, split_size: u64) -> Vec<String> {
    let job =
        || Job::input(format()).map_only(|record: &str, out| out.emit(format!("{record:?}"), ()));
    let output = JobTest::new(job)
        .input(text)
        .split_size(split_size)
        .combine_files(false)
        .run();
    output.text().lines().map(str::to_owned).collect()
}

fn quoted<'a>(records: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    records
        .into_iter()
        .map(|record| format!("{record:?}"))
        .collect()
}

fn between<'a>(text: &'a str, delimiter: &str) -> Vec<&'a str> {
    let mut records: Vec<&str> = text.split(delimiter).collect();
    if records.last() == Some(&"") {
        records.pop();
    }
    records
}

/// Groups lines; a line for which `begins` returns true starts a group.
fn grouped(text: &str, begins: impl Fn(&str) -> bool) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for line in text.split_inclusive('\n') {
        match groups.last_mut() {
            Some(group) if !begins(line) => group.push_str(line),
            _ => groups.push(line.to_owned()),
        }
    }
    let without_end = |group: String| {
        let group = group.strip_suffix('\n').unwrap_or(&group);
        group.strip_suffix('\r').unwrap_or(group).to_owned()
    };
    groups.into_iter().map(without_end).collect()
}

fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.split_inclusive('\n') {
        match line.trim_start_matches('\r') {
            // After a newline, a final line without its own newline is blank.
            "\n" => paragraphs.push(String::new()),
            "" if text.len() > line.len() => paragraphs.push(String::new()),
            _ => paragraphs.last_mut().expect("one").push_str(line),
        }
    }
    let trimmed = |text: &String| {
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text).to_owned()
    };
    paragraphs
        .iter()
        .filter(|text| !text.is_empty())
        .map(trimmed)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn delimiters_split_like_whole_text(text in "[a;\n-]{0,60}", delimiter in ";|-;|;-|\n-|a;-", size in 1u64..20) {
        let found = records(|| TextRecords::delimited_by(&delimiter), &text, size);
        prop_assert_eq!(found, quoted(between(&text, &delimiter)));
    }

    #[test]
    fn self_overlapping_delimiters_match_from_start(text in "[ab]{0,40}", delimiter in "aa|aba|abab", size in 1u64..9) {
        let found = records(|| TextRecords::delimited_by(&delimiter), &text, size);
        prop_assert_eq!(found, quoted(between(&text, &delimiter)));
    }

    #[test]
    fn marker_lines_start_records(text in "([a#]{0,3}\r?\n){0,20}[a#]{0,3}", size in 1u64..20) {
        let found = records(|| TextRecords::beginning_with("#"), &text, size);
        let groups = grouped(&text, |line| line.starts_with('#'));
        prop_assert_eq!(found, quoted(groups.iter().map(String::as_str)));
    }

    #[test]
    fn paragraphs_end_at_blank_lines(text in "\u{feff}?(a{0,2}\r{0,3}\n){0,20}(a{1,2}\r{0,2})?", size in 1u64..20) {
        let found = records(TextRecords::paragraphs, &text, size);
        let unmarked = text.trim_start_matches('\u{feff}');
        prop_assert_eq!(found, quoted(paragraphs(unmarked).iter().map(String::as_str)));
    }

    #[test]
    fn lossy_lines_match_standard_library(
        lines in vec(vec(prop_oneof![Just(0xffu8), Just(0xc3), Just(0xa9), Just(b'a')], 0..6), 0..12),
        size in 1u64..20,
    ) {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        let job = || Job::input(LossyLines).map_only(|line: &str, out| out.emit(line, ()));
        let expected: String = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned() + "\n").collect();
        prop_assert_eq!(JobTest::new(job).input(&bytes).split_size(size).run().text(), expected);
    }
}

#[test]
fn records_longer_than_buffer_are_read() {
    let long = "x".repeat(700_000);
    let text = format!("#one\n{long}\n#two\n{long}\n#three\n");
    let job = || {
        Job::input(TextRecords::beginning_with("#")).map_only(|record: &str, out| {
            out.emit(record.lines().next(), record.len());
        })
    };
    for split_size in [300_000, 700_003, 10 << 20] {
        let output = JobTest::new(job).input(&text).split_size(split_size).run();
        assert_eq!(output.text(), "#one\t700005\n#two\t700005\n#three\t6\n");
    }
}

#[test]
fn text_record_readers_are_preemption_safe() {
    let marked = || {
        Job::input(TextRecords::beginning_with("#")).map_only(|record: &str, out| {
            out.emit(out.input().offset(), record.replace('\n', "|"));
        })
    };
    let test = JobTest::new(marked)
        .input("before\n#a\nb\n#c\n\n#d")
        .split_size(6);
    assert_eq!(test.run().text(), "0\tbefore\n7\t#a|b\n12\t#c|\n16\t#d\n");
    test.assert_preemption_safe();
    let copy =
        || Job::input(TextRecords::paragraphs()).map_only(|text: &str, out| out.emit(text, ()));
    JobTest::new(copy)
        .input("\na\nb\n\n\r\nc\n\nd\n\n")
        .split_size(3)
        .assert_preemption_safe();
    let parts = || {
        Job::input(TextRecords::delimited_by("--")).map_only(|text: &str, out| out.emit(text, ()))
    };
    JobTest::new(parts)
        .input("a----b--c--")
        .split_size(3)
        .assert_preemption_safe();
}

#[test]
fn invalid_and_long_records_are_named_by_byte() {
    let job = || {
        Job::input(TextRecords::delimited_by(";")).map_only(|text: &str, out| out.emit(text, ()))
    };
    let refused = |bytes: &[u8], says: &str| {
        let test = JobTest::new(job).input(bytes).task_memory(1 << 20);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test.run()))
            .expect_err("refused");
        let text = panic.downcast_ref::<String>().expect("a message");
        assert!(text.contains(says), "{text}");
    };
    refused(b"ab;c\xff;d", "has invalid UTF-8 at byte 4");
    let long = [b"a;".to_vec(), vec![b'x'; 2 << 20]].concat();
    refused(&long, "line at byte 2 of");
}

#[test]
#[should_panic(expected = "records need a delimiter of at least one byte")]
fn empty_delimiter_is_rejected() {
    let _ = TextRecords::delimited_by("");
}

#[test]
#[should_panic(expected = "is empty or contains a newline; use the beginning of one line")]
fn multiline_marker_is_rejected() {
    let _ = TextRecords::beginning_with("a\nb");
}

#[test]
fn blank_lines_end_paragraphs_at_every_cut() {
    for blank in ["\n", "\r\n", "\r\r\n", &("\r".repeat(9000) + "\n")] {
        let text = format!("one\n{blank}two\r\n{blank}{blank}three\n{blank}");
        for size in [1, 2, 3, 5, 4096, 10_000]
            .into_iter()
            .filter(|size| text.len() < 200 * size)
        {
            let found = records(TextRecords::paragraphs, &text, size as u64);
            assert_eq!(
                found,
                quoted(["one", "two", "three"]),
                "a blank line of {} bytes",
                blank.len()
            );
        }
    }
}

#[test]
fn byte_order_mark_is_removed_at_every_cut() {
    let text = "\u{feff}#a\u{feff}b\n\n\u{feff}c;d\n#e\n";
    let paragraphs = quoted(["#a\u{feff}b", "\u{feff}c;d\n#e"]);
    for size in 1..=text.len() as u64 {
        let lines = records(|| TextRecords::delimited_by("\n"), text, size);
        assert_eq!(lines, quoted(["#a\u{feff}b", "", "\u{feff}c;d", "#e"]));
        let marked = records(|| TextRecords::beginning_with("#"), text, size);
        assert_eq!(marked, quoted(["#a\u{feff}b\n\n\u{feff}c;d", "#e"]));
        assert_eq!(records(TextRecords::paragraphs, text, size), paragraphs);
        for blank in ["\n", "\r\n", "\n\r\n"] {
            let text = format!("\u{feff}{blank}{}", &text[3..]);
            assert_eq!(
                records(TextRecords::paragraphs, &text, size),
                paragraphs,
                "{blank:?}"
            );
        }
    }
}
