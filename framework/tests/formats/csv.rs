//! Rows of comma-separated values.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napreduce::builder::BadRecord;
use napreduce::input::{InputFormat, Skip, Splitting};
use napreduce::rows::{Csv, CsvRows, JsonLines};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, borrowed};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::kit::{TestFile, python, read, refused_or_intact, same_at_every_cut};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Flight<'a> {
    carrier: &'a str,
    delay: Option<i64>,
}

const FLIGHTS: &str = "from,carrier,note,delay\nTXL,LH,,7\n\"SXF\",\"U2\",\"fog, \"\"dense\"\"\",\n\r\nMUC,\"Ü\",x,-3\r\nHAM,LH,late,9";

fn show(flight: Flight<'_>) -> String {
    format!("{} {:?}", flight.carrier, flight.delay)
}

fn flights() -> CsvRows<borrowed!(Flight)> {
    CsvRows::default()
}

#[test]
fn every_cut_gives_each_row_once_without_header() {
    let file = TestFile::new("flights.csv", FLIGHTS);
    let rows = same_at_every_cut(&flights(), &file, 1..=file.size, show);
    assert_eq!(rows, ["LH Some(7)", "U2 None", "Ü Some(-3)", "LH Some(9)"]);
}

#[test]
fn multiline_rows_are_read_by_one_task() {
    let text = "text,count\n\"to be\nor \"\"not\"\"\n\",1\n,2\n\"a\r\nb\",3";
    let file = TestFile::new("texts.csv", text);
    let format = CsvRows::<(String, u64)>::default().multiline();
    assert_eq!(format.splitting(&file.path), Splitting::FromStart);
    let show = |(text, count): (String, u64)| format!("{text:?} {count}");
    let rows = [
        "\"to be\\nor \\\"not\\\"\\n\" 1",
        "\"\" 2",
        "\"a\\r\\nb\" 3",
    ];
    for resume in [false, true] {
        assert_eq!(
            read(&format, &file.whole(), resume, show).expect("it is intact"),
            rows
        );
    }
    let line_by_line = read(
        &CsvRows::<(String, u64)>::default(),
        &file.whole(),
        false,
        show,
    );
    let error = line_by_line
        .expect_err("the quote is not closed on its line")
        .to_string();
    assert!(
        error.contains(
            "at byte 11: a quoted field does not end on its line (line 2), which is \"\\\"to be\"; if fields contain"
        ),
        "{error}"
    );
}

/// The lines of a quoted field may be valid rows.
#[test]
fn newline_in_quotes_without_multiline_never_gives_a_row() {
    let row = |number: usize| match number % 5 {
        0 => format!("{number},\"one\n{number},two\n{number},three\"\n"),
        _ => format!("{number},one\n"),
    };
    let text = "id,note\n".to_owned() + &(1..40).map(row).collect::<String>();
    let file = TestFile::new("notes.csv", &text);
    let read_all = |format: &CsvRows<(u64, String)>, size: u64| {
        let pieces = file.pieces(size);
        let read = pieces
            .iter()
            .map(|piece| read(format, piece, false, |row| format!("{row:?}")));
        read.collect::<Result<Vec<_>, _>>()
    };
    for choice in [Skip::None, Skip::All, Skip::AtMost(1000)] {
        let mut format = CsvRows::<(u64, String)>::default();
        format.on_bad_input(choice);
        for size in [7, 20, 100, file.size] {
            let error = read_all(&format, size)
                .expect_err("the quote is not closed on its line")
                .to_string();
            assert!(
                error.contains("a quoted field does not end on its line ("),
                "{error}"
            );
            assert!(error.ends_with(
                "use multiline(); if quotes are ordinary characters, use quoting(false)"
            ));
        }
    }
    let multiline = CsvRows::<(u64, String)>::default().multiline();
    let rows =
        read(&multiline, &file.whole(), false, |row| format!("{row:?}")).expect("it is intact");
    assert_eq!(rows.len(), 39);
}

/// Numbers are those of `str::parse`.
#[test]
fn number_in_another_notation_is_bad_row() {
    let numbers = |text: &str| {
        let file = TestFile::new("a.csv", text);
        let integer = CsvRows::<(i64,)>::default().without_header();
        let integer = read(&integer, &file.whole(), false, |row| format!("{row:?}")).ok();
        let float = CsvRows::<(f64,)>::default().without_header();
        let float = read(&float, &file.whole(), false, |row| format!("{row:?}")).ok();
        (
            integer.map(|rows| rows.concat()),
            float.map(|rows| rows.concat()),
        )
    };
    for text in [
        "0x10", "0b1", "1_000", " 5", "5 ", "1,", "[7.5]", "5u8", "1e", "--1", "0x", "٣",
    ] {
        assert_eq!(numbers(text), (None, None), "{text}");
    }
    for (text, integer, float) in [
        ("+5", Some("(5,)"), "(5.0,)"),
        ("007", Some("(7,)"), "(7.0,)"),
        ("-0", Some("(0,)"), "(-0.0,)"),
        ("7.5", None, "(7.5,)"),
        ("1e3", None, "(1000.0,)"),
        ("inf", None, "(inf,)"),
        ("-Infinity", None, "(-inf,)"),
        ("NaN", None, "(NaN,)"),
    ] {
        assert_eq!(
            numbers(text),
            (integer.map(str::to_owned), Some(float.to_owned())),
            "{text}"
        );
    }
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Pair {
    id: i64,
    name: String,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Optional {
    id: i64,
    name: Option<String>,
    #[serde(default)]
    rank: u32,
}

/// Returns the rows that remain if bad ones are skipped, and the number of those.
fn skipping<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(
    format: fn() -> CsvRows<R>,
    text: &str,
) -> (String, u64) {
    let job = move || Job::input(format()).map_only(|row: R, out| out.emit(format!("{row:?}"), ()));
    let output = JobTest::new(job).input(text).on_bad_input(Skip::All).run();
    (output.text(), output.counters.get("BAD_ROWS"))
}

#[test]
fn row_with_other_number_of_fields_is_bad_without_header() {
    let text = "1,x\n2,y,extra\n3\n4,z,\n5,w\n";
    let pairs = skipping(
        || CsvRows::<(i64, String)>::default().without_header(),
        text,
    );
    assert_eq!(pairs, ("(1, \"x\")\n(5, \"w\")\n".to_owned(), 3));
    let structs = skipping(|| CsvRows::<Pair>::default().without_header(), text);
    assert_eq!(
        structs,
        (
            "Pair { id: 1, name: \"x\" }\nPair { id: 5, name: \"w\" }\n".to_owned(),
            3
        )
    );
    let (lists, bad) = skipping(|| CsvRows::<Vec<String>>::default().without_header(), text);
    assert_eq!((lists.lines().count(), bad), (5, 0));
    let (_, bad) = skipping(|| CsvRows::<String>::default().without_header(), "a\nb,c\n");
    assert_eq!(bad, 1);
    let (optional, bad) = skipping(
        || CsvRows::<Optional>::default().without_header(),
        "1,x,3,y\n1,,2\n",
    );
    assert_eq!((optional.lines().count(), bad), (1, 1));
    let nested = skipping(
        || CsvRows::<((i64, String), u8)>::default().without_header(),
        "1,a,2\n1,a,2,3\n",
    );
    assert_eq!(nested, ("((1, \"a\"), 2)\n".to_owned(), 1));
    // With a header, a tuple takes all columns, too.
    let (_, bad) = skipping(CsvRows::<(i64,)>::default, "a,b\n1,2\n");
    assert_eq!(bad, 1);
    let counted = skipping(CsvRows::<serde::de::IgnoredAny>::default, "a,b\n1,2\n");
    assert_eq!(counted, ("IgnoredAny\n".to_owned(), 0));
}

#[test]
fn repeated_column_makes_rows_bad() {
    fn bad<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(text: &str) -> u64 {
        skipping(CsvRows::<R>::default, text).1
    }
    let text = "id,name,id\n1,x,2\n3,y,4\n";
    assert_eq!(bad::<Pair>(text), 2);
    assert_eq!(bad::<BTreeMap<String, String>>(text), 2);
    assert_eq!(bad::<std::collections::HashMap<String, String>>(text), 2);
    assert_eq!(bad::<serde_json::Value>(text), 2);
    assert_eq!(bad::<With<BTreeMap<String, String>>>(text), 2);
    assert_eq!(bad::<With<BTreeMap<String, String>>>("id,a,a\n1,x,2\n"), 1);
    assert_eq!(bad::<With<serde_json::Value>>("id,a,b,a\n1,x,2,3\n"), 1);
    assert_eq!(bad::<Event>("kind,id,zip,zip\nMoved,1,2,3\n"), 1);
    assert_eq!(bad::<BTreeMap<String, String>>("a,,\n1,2,3\n"), 1);
    assert_eq!(
        bad::<Pair>("id,name,x,x\n1,x,2,3\n"),
        0,
        "no field is named x"
    );
    assert_eq!(bad::<(i64, String, i64)>(text), 0, "a tuple has no names");
    let file = TestFile::new("a.csv", text);
    let format = CsvRows::<BTreeMap<String, String>>::default();
    let error = read(&format, &file.whole(), false, |row| format!("{row:?}"))
        .expect_err("bad")
        .to_string();
    assert!(
        error.contains(" has a bad row at line 2: the header has the column id twice; the row is "),
        "{error}"
    );
}

#[test]
fn reader_is_preemption_safe_at_every_row() {
    let multiline = || {
        Job::input(CsvRows::<borrowed!(Flight)>::default().multiline())
            .map_only_to(Csv::default(), |flight: Flight<'_>, out| out.emit(&flight))
    };
    let by_carrier = || {
        Job::csv::<borrowed!(Flight)>()
            .map(|flight: Flight, out: &mut Emit<String, i64>| {
                out.emit(flight.carrier, flight.delay.unwrap_or(0))
            })
            .output(Csv::default())
            .reduce(|carrier, delays, out| out.emit(&(carrier, delays.sum())))
    };
    let bad = FLIGHTS.replace("MUC", "MUC,MUC");
    JobTest::new(by_carrier)
        .input(&bad)
        .on_bad_input(Skip::AtMost(1))
        .split_size(40)
        .assert_preemption_safe();
    JobTest::new(multiline)
        .input(&bad)
        .on_bad_input(Skip::All)
        .assert_preemption_safe();
    let output = JobTest::new(multiline).input(FLIGHTS).run();
    assert_eq!(output.text(), "carrier,delay\nLH,7\nU2,\nÜ,-3\nLH,9\n");
}

#[test]
fn columns_are_selected_by_name() {
    let file = TestFile::new("a.csv", b"junk,delay,carrier\n\xff\xfe,1,LH\n".as_slice());
    assert_eq!(
        read(&flights(), &file.whole(), false, show).expect("it is intact"),
        ["LH Some(1)"]
    );

    let all = CsvRows::<BTreeMap<String, String>>::default().delimiter(b';');
    let file = TestFile::new("a.csv", "\u{feff}a;b\n1;2\n");
    let rows = read(&all, &file.whole(), false, |row| format!("{row:?}")).expect("it is intact");
    assert_eq!(rows, [r#"{"a": "1", "b": "2"}"#]);
}

fn message(text: &str) -> String {
    let file = TestFile::new("a.csv", text);
    let error = read(&flights(), &file.whole(), false, show)
        .expect_err("it is refused")
        .to_string();
    error.replace(&file.path.display().to_string(), "a.csv")
}

#[test]
fn invalid_row_is_quoted_with_line() {
    let remedy = "; fix the row, or pass --bad-input skip to skip bad rows";
    assert_eq!(
        message("carrier,delay\nLH,1\nLH,late\n"),
        format!(
            "a.csv has a bad row at line 3: column delay: invalid digit found in string; the row is \"LH,late\"{remedy}"
        )
    );
    assert_eq!(
        message("carrier,delay\nLH\n"),
        format!(
            "a.csv has a bad row at line 2: it has 1 fields, but the header has 2; the row is \"LH\"{remedy}"
        )
    );
    assert!(
        message("delay\n1\n")
            .starts_with("a.csv has a bad row at line 2: missing field `carrier`; ")
    );
    assert_eq!(
        message("a;b\nLH;1\n"),
        "a.csv cannot be read as rows at byte 0: its header has none of the columns carrier, delay but begins \
         \"a;b\"; check the names, the separator, and whether there is a header"
    );
    assert_eq!(
        message("carrier,\"delay\nLH,1\n"),
        "a.csv cannot be read as rows at byte 0: a quoted field of the header does not end"
    );
}

#[test]
fn bad_rows_are_skipped_up_to_limit() {
    let text = "carrier,delay\nLH,1\nLH,x\nLH,2\nLH\nLH,3\n";
    let delays =
        || Job::csv::<borrowed!(Flight)>().map_only(|flight, out| out.emit(flight.delay, ()));
    for choice in [Skip::All, Skip::AtMost(2)] {
        let output = JobTest::new(delays).input(text).on_bad_input(choice).run();
        assert_eq!(
            (output.text().as_str(), output.counters.get("BAD_ROWS")),
            ("1\n2\n3\n", 2)
        );
    }
    let mut format = flights();
    format.on_bad_input(Skip::AtMost(0));
    let file = TestFile::new("a.csv", text);
    let error = read(&format, &file.whole(), false, show)
        .expect_err("one is too many")
        .to_string();
    assert!(
        error.contains(" has too many bad rows (limit 0), the last one at line 3: "),
        "{error}"
    );
}

#[test]
fn bad_rows_and_bad_records_share_their_limit() {
    let delays = || {
        Job::csv::<borrowed!(Flight)>().map_only(|flight, out| -> Result<(), BadRecord> {
            out.emit(flight.delay.ok_or_else(|| BadRecord::new("no delay"))?, ());
            Ok(())
        })
    };
    let text = "carrier,delay\nLH,1\nLH,x\nLH,\nLH,3\n";
    let test = |most| {
        JobTest::new(delays)
            .input(text)
            .on_bad_input(Skip::AtMost(most))
    };
    let output = test(2).run();
    assert_eq!(output.text(), "1\n3\n");
    let skipped = ["BAD_ROWS", "BAD_RECORDS"].map(|name| output.counters.get(name));
    assert_eq!(skipped, [1, 1]);
    let refused = catch_unwind(AssertUnwindSafe(|| test(1).run())).expect_err("one is too many");
    let message = refused.downcast_ref::<String>().expect("a message");
    assert!(
        message.contains("too many bad records (limit 1)"),
        "{message}"
    );
}

#[test]
fn odd_files_are_read_or_rejected() {
    for text in [
        "",
        "carrier,delay",
        "carrier,delay\n",
        "carrier,delay\r\n\r\n\n",
    ] {
        let file = TestFile::new("a.csv", text);
        assert_eq!(
            read(&flights(), &file.whole(), false, show).expect("it has no rows"),
            [""; 0],
            "{text:?}"
        );
    }
    // A truncated row may be a different valid row, without its delay.
    let intact = [
        "LH Some(7)",
        "U2 None",
        "Ü Some(-3)",
        "LH Some(9)",
        "LH None",
        "Ü None",
    ]
    .map(str::to_owned);
    for cut in 24..FLIGHTS.len() {
        refused_or_intact(
            &flights(),
            &TestFile::new("a.csv", &FLIGHTS.as_bytes()[..cut]),
            &intact,
            show,
        );
    }
    let huge = format!("carrier,delay\n{},1\n", "x".repeat(9 << 20));
    assert!(message(&huge).starts_with("line at byte 14 of a.csv is longer than 8MiB"));
    assert!(
        message(&"\0,".repeat(3000))
            .contains("cannot be read as rows at byte 0: its header has none of the columns")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn rows_round_trip(
        rows in vec((any::<i64>(), "[a\",;é\t ]{0,6}"), 0..12), size in 1..60u64,
    ) {
        let lines: String = rows.iter().map(|(number, text)| serde_json::to_string(&(number, text)).expect("json") + "\n").collect();
        let write = || Job::json_lines::<(i64, String)>().map_only_to(Csv::default().without_header(), |row, out| out.emit(&row));
        let file = TestFile::new("a.csv", JobTest::new(write).input(lines).run().parts.concat());
        let format = CsvRows::<(i64, String)>::default().without_header();
        let found = same_at_every_cut(&format, &file, [size], |row| format!("{row:?}"));
        let expected: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn python_csv_round_trips() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import polars, pyarrow, pyarrow.csv
flights = {"from": ["TXL", "a,b"], "carrier": ["say \"x\"", "Ü"], "delay": [7, None]}
polars.DataFrame(flights).write_csv("polars.csv")
pyarrow.csv.write_csv(pyarrow.table(flights), "pyarrow.csv")
"#;
    if python(&["polars", "pyarrow"], script, folder.path()).is_none() {
        return;
    }
    for name in ["polars.csv", "pyarrow.csv"] {
        let file = TestFile::new(
            name,
            fs::read(folder.path().join(name)).expect("Python wrote it"),
        );
        let rows = same_at_every_cut(&flights(), &file, 1..=file.size, show);
        assert_eq!(rows, ["say \"x\" Some(7)", "Ü None"]);
    }

    let copy = || {
        Job::csv::<borrowed!(Flight)>()
            .map_only_to(Csv::default(), |row: Flight<'_>, out| out.emit(&row))
    };
    let written = JobTest::new(copy)
        .input("carrier,delay\n\"a,\"\"b\"\"\",1\nÜ,\n")
        .run()
        .parts
        .concat();
    fs::write(folder.path().join("ours.csv"), written).expect("a written file");
    let script = "import polars; print(polars.read_csv('ours.csv').to_dicts())";
    let read = python(&["polars"], script, folder.path()).expect("it was there before");
    assert_eq!(
        read,
        "[{'carrier': 'a,\"b\"', 'delay': 1}, {'carrier': 'Ü', 'delay': None}]\n"
    );
}

#[test]
fn unsupported_row_type_fails_task() {
    let unwritable = || {
        Job::text().map_only_to(Csv::default(), |line: &str, out| {
            out.emit(&BTreeMap::from([(line, 1)]))
        })
    };
    let panic = catch_unwind(|| JobTest::new(unwritable).input("a\n").run()).expect_err("it fails");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("row 1 cannot be written: "), "{message}");
    let keyed = || {
        Job::text().map_only_to(JsonLines, |_: &str, out| {
            out.emit(&BTreeMap::from([((1, 2), 1)]))
        })
    };
    let panic = catch_unwind(|| JobTest::new(keyed).input("a\n").run()).expect_err("it fails");
    assert!(
        panic
            .downcast_ref::<String>()
            .expect("a message")
            .contains("key must be a string")
    );
}

#[test]
fn header_after_empty_lines_names_columns() {
    for start in [
        "\n",
        "\r\n\n",
        "\u{feff}\n",
        "\u{feff}\r\n\r\n",
        "\u{feff}",
        "\r\r\n",
    ] {
        let file = TestFile::new("a.csv", format!("{start}carrier,delay\nLH,1\n\nU2,2\n"));
        let rows = same_at_every_cut(&flights(), &file, 1..=file.size, show);
        assert_eq!(rows, ["LH Some(1)", "U2 Some(2)"], "{start:?}");
        let multiline = flights().multiline();
        for resume in [false, true] {
            assert_eq!(
                read(&multiline, &file.whole(), resume, show).expect("it is intact"),
                rows,
                "{start:?}"
            );
        }
    }
    assert_eq!(
        message("\n\na;b\nLH;1\n"),
        "a.csv cannot be read as rows at byte 2: its header has none of the columns carrier, delay but begins \
         \"a;b\"; check the names, the separator, and whether there is a header"
    );
}

#[test]
fn carriage_return_rows_are_read_at_every_cut() {
    let rows = ["LH Some(1)", "a\rb None", "U2 Some(2)"];
    for (text, ends) in [
        ("carrier,delay\rLH,1\r\"a\rb\",\rU2,2", "between rows"),
        (
            "\u{feff}carrier,delay\rLH,1\r\r\"a\rb\",\rU2,2\r",
            "behind a mark",
        ),
        ("\rcarrier,delay\rLH,1\r\"a\rb\",\nU2,2\r\n", "or otherwise"),
        (
            "carrier,delay\r\r\nLH,1\r\r\n\"a\rb\",\r\r\nU2,2\r\r\n",
            "with a newline behind two",
        ),
    ] {
        let file = TestFile::new("a.csv", text);
        assert_eq!(
            same_at_every_cut(&flights(), &file, 1..=file.size, show),
            rows,
            "{ends}"
        );
        for resume in [false, true] {
            let found =
                read(&flights().multiline(), &file.whole(), resume, show).expect("it is intact");
            assert_eq!(found, rows, "{ends}");
        }
    }
    let pairs = CsvRows::<(String, u64)>::default().without_header();
    let text: String = (0..50_000)
        .map(|number| format!("name {number},{number}\r"))
        .collect();
    let file = TestFile::new("a.csv", text);
    let rows = same_at_every_cut(&pairs, &file, [9999, 300_000], |(name, number)| {
        format!("{name} {number}")
    });
    assert_eq!(
        (rows.len(), rows[49_999].as_str()),
        (50_000, "name 49999 49999")
    );
    let carriers = || {
        Job::csv::<borrowed!(Flight)>().map_only(|row: Flight<'_>, out| out.emit(row.carrier, ()))
    };
    let test = JobTest::new(carriers)
        .input("carrier,delay\rLH,1\rLH,x\rU2,2\r")
        .on_bad_input(Skip::All);
    assert_eq!(test.run().text(), "LH\nU2\n");
    test.split_size(9).assert_preemption_safe();
}

#[test]
fn lone_carriage_return_is_bad_row() {
    let text = message("carrier,delay\nLH,1\rU2,2\nLH,3\n");
    assert!(
        text.starts_with(
            "a.csv has a bad row at line 2: a carriage return outside quotes ends the row inside a line"
        ),
        "{text}"
    );
    let text = message("carrier,delay\rLH,1\rU2,x\rLH,3\n");
    assert!(
        text.starts_with("a.csv has a bad row at byte 19: column delay: invalid digit"),
        "{text}"
    );
}

#[test]
fn quote_and_escape_characters_are_configurable() {
    let show = |(text, number): (String, u64)| format!("{text} {number}");
    let check = |format: CsvRows<(String, u64)>, text: &str, rows: &[&str]| {
        let file = TestFile::new("a.csv", text);
        let format = format.without_header();
        assert_eq!(
            same_at_every_cut(&format, &file, 1..=file.size, show),
            rows,
            "{text:?}"
        );
    };
    let csv = CsvRows::<(String, u64)>::default;
    let escaped = "\"say \\\"hi\\\"\",1\n\"a\"\"\\\\\",2\n\\,3\n";
    check(
        csv().escape(b'\\'),
        escaped,
        &["say \"hi\" 1", "a\"\\ 2", "\\ 3"],
    );
    check(
        csv().escape(Some(b'\\')).double_quote(false),
        "\"a\\\"b\"\"c\",1",
        &["a\"b\"c\" 1"],
    );
    check(
        csv().quote(b'\''),
        "'a,''b''',1\n\"c\",2\n",
        &["a,'b' 1", "\"c\" 2"],
    );
    check(
        csv().quoting(false),
        "\"a,1\n\"b\",2\r\n",
        &["\"a 1", "\"b\" 2"],
    );
}

#[test]
fn writer_uses_configured_quotes() {
    let write = || {
        let format = Csv::default().quote(b'\'').without_header();
        Job::text().map_only_to(format, |line: &str, out| out.emit(&(line, 1)))
    };
    let written = JobTest::new(write).input("it's\na,b\n\"c\"\n").run().text();
    assert_eq!(written, "'it''s',1\n'a,b',1\n\"c\",1\n");
    let read = || {
        let format = CsvRows::<(String, u64)>::default()
            .quote(b'\'')
            .without_header();
        Job::input(format).map_only(|(text, _), out| out.emit(text, ()))
    };
    assert_eq!(
        JobTest::new(read).input(written).run().text(),
        "it's\na,b\n\"c\"\n"
    );
}

/// Parses a csv text into rows of type `R`, printed with `Debug`.
fn rows_of<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(text: &str) -> Vec<String> {
    let file = TestFile::new("a.csv", text);
    same_at_every_cut(&CsvRows::<R>::default(), &file, [3, 20], |row| {
        format!("{row:?}")
    })
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct With<T> {
    id: u64,
    #[serde(flatten)]
    rest: T,
}

#[test]
fn flattened_texts_are_unchanged() {
    let text = "id,zip,count,note\n1,01234,7,\n2,7,1e5,true\n3,-0,NaN,0x10\n4,18446744073709551616,1.50,\"+1\"\n";
    assert_eq!(
        rows_of::<With<BTreeMap<String, String>>>(text),
        [
            r#"With { id: 1, rest: {"count": "7", "note": "", "zip": "01234"} }"#,
            r#"With { id: 2, rest: {"count": "1e5", "note": "true", "zip": "7"} }"#,
            r#"With { id: 3, rest: {"count": "NaN", "note": "0x10", "zip": "-0"} }"#,
            r#"With { id: 4, rest: {"count": "1.50", "note": "+1", "zip": "18446744073709551616"} }"#,
        ]
    );
}

#[test]
fn flattened_fields_of_other_types_are_read() {
    let text = "id,a,b\n1,7,08\n2,0,18446744073709551615\n";
    assert_eq!(
        rows_of::<With<BTreeMap<String, u64>>>(text),
        [
            r#"With { id: 1, rest: {"a": 7, "b": 8} }"#,
            r#"With { id: 2, rest: {"a": 0, "b": 18446744073709551615} }"#
        ]
    );
    let text = "id,a,b\n1,-0,1e400\n2,7,5e-324\n3,inf,-1.50\n";
    assert_eq!(
        rows_of::<With<BTreeMap<String, f64>>>(text),
        [
            r#"With { id: 1, rest: {"a": -0.0, "b": inf} }"#,
            r#"With { id: 2, rest: {"a": 7.0, "b": 5e-324} }"#,
            r#"With { id: 3, rest: {"a": inf, "b": -1.5} }"#,
        ]
    );
    let text = "id,a,b,c\n1,,,\n2,1,,-3\n";
    assert_eq!(
        rows_of::<With<BTreeMap<String, Option<i64>>>>(text),
        [
            r#"With { id: 1, rest: {"a": None, "b": None, "c": None} }"#,
            r#"With { id: 2, rest: {"a": Some(1), "b": None, "c": Some(-3)} }"#,
        ]
    );
    let rows = rows_of::<With<BTreeMap<String, bool>>>("id,a,b\n1,true,false\n");
    assert_eq!(rows, [r#"With { id: 1, rest: {"a": true, "b": false} }"#]);
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Address {
    zip: String,
    number: Option<u32>,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
#[allow(dead_code)]
enum Event {
    Moved { id: u64, zip: String },
    Paid { id: u64, zip: u64 },
}

#[test]
fn flattened_structs_and_tagged_enums_are_typed() {
    let text = "zip,id,number,name\n10115,1,7,8\n01234,2,,\n,3,,true\n";
    assert_eq!(
        rows_of::<With<Address>>(text),
        [
            r#"With { id: 1, rest: Address { zip: "10115", number: Some(7), name: "8" } }"#,
            r#"With { id: 2, rest: Address { zip: "01234", number: None, name: "" } }"#,
            r#"With { id: 3, rest: Address { zip: "", number: None, name: "true" } }"#,
        ]
    );
    let text = "id,kind,zip\n1,Moved,10115\n2,Paid,10115\n";
    assert_eq!(
        rows_of::<Event>(text),
        [
            r#"Moved { id: 1, zip: "10115" }"#,
            "Paid { id: 2, zip: 10115 }"
        ]
    );
    let value = "id,a,b,c\n1,7,-1.5,01\n";
    assert_eq!(
        rows_of::<With<BTreeMap<String, serde_json::Value>>>(value),
        [r#"With { id: 1, rest: {"a": Number(7), "b": Number(-1.5), "c": String("01")} }"#]
    );
}

#[test]
fn flattened_field_of_wrong_type_is_named() {
    let file = TestFile::new("a.csv", "id,zip,number,name\n1,10115,x,a\n");
    let error = read(
        &CsvRows::<With<Address>>::default(),
        &file.whole(),
        false,
        |row| format!("{row:?}"),
    );
    let error = error.expect_err("number is not one").to_string();
    assert!(
        error.contains("at line 2: column number: invalid type: string \"x\", expected u32; "),
        "{error}"
    );
}

#[test]
fn csv_in_utf_16_is_rejected() {
    for mark in [b"\xff\xfe".as_slice(), b"\xfe\xff"] {
        let bytes = [mark, b"c\0,\0d\0\n\0"].concat();
        let file = TestFile::new("a.csv", &bytes);
        for format in [flights(), flights().multiline(), flights().without_header()] {
            let error = read(&format, &file.whole(), false, show)
                .expect_err("not UTF-8")
                .to_string();
            assert!(
                error.contains("a.csv is UTF-16 text by its byte order mark, but only UTF-8"),
                "{error}"
            );
        }
    }
}

#[test]
fn folds_write_rows() {
    let count = || {
        Job::text()
            .flat_map(napreduce::words)
            .output(Csv::default())
            .count()
    };
    let test = JobTest::new(count).input("to be, or\nnot to\n");
    assert_eq!(test.run().text(), "\"be,\",1\nnot,1\nor,1\nto,2\n");
    test.assert_preemption_safe();
}
