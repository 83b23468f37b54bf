//! Rows of Avro container files: blocks, compressions, types, damage, and files of fastavro.

use std::collections::BTreeMap;
use std::fs;

use napreduce::input::{InputFormat, Skip};
use napreduce::rows::AvroRows;
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, borrowed};
use serde::Deserialize;

use super::kit::{TestFile, filtered, python, read, refused_or_intact, same_at_every_cut};

#[derive(Debug, Deserialize)]
struct Flight<'a> {
    carrier: &'a str,
    delay: Option<i64>,
}

type Flights = borrowed!(Flight);

fn show(flight: Flight<'_>) -> String {
    format!("{} {:?}", flight.carrier, flight.delay)
}

fn flights() -> AvroRows<Flights> {
    AvroRows::default()
}

const MARKER: &[u8; 16] = b"0123456789abcdef";

fn long(number: i64, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn counted(bytes: &[u8], out: &mut Vec<u8>) {
    long(i64::try_from(bytes.len()).expect("a short one"), out);
    out.extend_from_slice(bytes);
}

fn head(schema: &str, codec: &str) -> Vec<u8> {
    let mut file = b"Obj\x01".to_vec();
    long(2, &mut file);
    for (key, value) in [("avro.schema", schema), ("avro.codec", codec)] {
        counted(key.as_bytes(), &mut file);
        counted(value.as_bytes(), &mut file);
    }
    long(0, &mut file);
    file.extend_from_slice(MARKER);
    file
}

const SCHEMA: &str = r#"{"type":"record","name":"F","fields":[{"name":"gate","type":{"type":"array","items":"int"}},
    {"name":"delay","type":["null","long"]},{"name":"carrier","type":"string"}]}"#;

/// Blocks of three rows, encoded by hand.
fn by_hand(rows: i64) -> Vec<u8> {
    let mut file = head(SCHEMA, "null");
    let numbers: Vec<i64> = (0..rows).collect();
    for block in numbers.chunks(3) {
        let mut content = Vec::new();
        for row in block {
            [1, *row, 0]
                .iter()
                .for_each(|number| long(*number, &mut content));
            long(row % 2, &mut content);
            if row % 2 == 1 {
                long(-row, &mut content);
            }
            counted(format!("Ü{row}").as_bytes(), &mut content);
        }
        long(block.len() as i64, &mut file);
        counted(&content, &mut file);
        file.extend_from_slice(MARKER);
    }
    file
}

fn expected(rows: i64) -> Vec<String> {
    (0..rows)
        .map(|row| format!("Ü{row} {:?}", (row % 2 == 1).then_some(-row)))
        .collect()
}

#[test]
fn every_cut_gives_each_row_once() {
    let file = TestFile::new("a.avro", by_hand(10));
    let rows = same_at_every_cut(&flights(), &file, 1..=file.size, show);
    assert_eq!(rows, expected(10));
    for rows in [0, 1] {
        let file = TestFile::new("a.avro", by_hand(rows));
        assert_eq!(
            same_at_every_cut(&flights(), &file, [1, 100], show),
            expected(rows)
        );
    }
    let empty = TestFile::new("a.avro", "");
    assert_eq!(
        read(&flights(), &empty.whole(), false, show).expect("it is empty"),
        [""; 0]
    );
}

const TEXTS: &str = r#"{"type":"record","name":"T","fields":[{"name":"text","type":"bytes"}]}"#;

/// Appends a block with one row.
fn push_text(text: &[u8], file: &mut Vec<u8>) {
    let mut content = Vec::new();
    counted(text, &mut content);
    long(1, file);
    counted(&content, file);
    file.extend_from_slice(MARKER);
}

#[test]
fn marker_inside_value_is_not_taken_for_a_block() {
    #[derive(Debug, Deserialize)]
    struct Text<'a> {
        text: &'a [u8],
    }
    let show = |row: Text<'_>| format!("{:?}", row.text.len());
    // A value that looks as blocks of this file, up to the marker after the value itself.
    let mut like_blocks = MARKER.to_vec();
    push_text(b"false", &mut like_blocks);
    push_text(b"falser", &mut like_blocks);
    long(1, &mut like_blocks);
    counted(b"\x02", &mut like_blocks);
    let values = [
        MARKER.to_vec(),
        [&b"before"[..], MARKER, b"behind"].concat(),
        MARKER.repeat(3),
        [MARKER, &b"\x02\x02\x00"[..]].concat(),
        [&MARKER[..], MARKER, b"\x00\x00", MARKER].concat(),
        like_blocks,
        b"plain".to_vec(),
    ];
    let mut file = head(TEXTS, "null");
    for value in values.iter().cycle().take(20) {
        push_text(value, &mut file);
    }
    let file = TestFile::new("a.avro", file);
    let format = AvroRows::<borrowed!(Text)>::default();
    let expected: Vec<String> = values
        .iter()
        .cycle()
        .take(20)
        .map(|value| value.len().to_string())
        .collect();
    assert_eq!(same_at_every_cut(&format, &file, 1..=60, show), expected);
}

/// Beyond some distance from the start of the file, a split does not follow all blocks before it.
#[test]
fn marker_inside_value_far_from_the_start_is_not_taken_for_a_block() {
    let mut file = head(TEXTS, "null");
    for number in 0..90_usize {
        let mut value = vec![b'x'; 70_000 + number];
        value[40_000..40_016].copy_from_slice(MARKER);
        value[number..number + 16].copy_from_slice(MARKER);
        push_text(&value, &mut file);
    }
    let file = TestFile::new("a.avro", file);
    let format = AvroRows::<(Vec<u8>,)>::default();
    let rows = same_at_every_cut(&format, &file, [100_003, 1_000_003], |(text,)| {
        text.len().to_string()
    });
    assert_eq!(
        rows,
        (0..90)
            .map(|number| (70_000 + number).to_string())
            .collect::<Vec<_>>()
    );
}

#[test]
fn block_without_rows_but_with_data_is_damaged() {
    let mut file = head(TEXTS, "null");
    push_text(b"one", &mut file);
    let mut empty = file.clone();
    empty.extend_from_slice(b"\0\0");
    empty.extend_from_slice(MARKER);
    let rows = same_at_every_cut(
        &AvroRows::<(Vec<u8>,)>::default(),
        &TestFile::new("a.avro", &empty),
        1..40,
        |row| format!("{row:?}"),
    );
    assert_eq!(rows.len(), 1, "an empty block is valid");
    long(0, &mut file);
    counted(b"\x06one", &mut file);
    file.extend_from_slice(MARKER);
    let file = TestFile::new("a.avro", file);
    let error = read(
        &AvroRows::<(Vec<u8>,)>::default(),
        &file.whole(),
        false,
        |row| format!("{row:?}"),
    );
    let error = error.expect_err("the block has data").to_string();
    assert!(
        error.contains("it is damaged: a block has 4 bytes after its rows"),
        "{error}"
    );
}

#[test]
fn repeated_key_of_a_map_is_bad_row() {
    let schema = r#"{"type":"record","name":"M","fields":[{"name":"m","type":{"type":"map","values":"long"}}]}"#;
    let mut file = head(schema, "null");
    let mut content = Vec::new();
    for keys in [["a", "b"], ["a", "a"]] {
        long(2, &mut content);
        for key in keys {
            counted(key.as_bytes(), &mut content);
            long(7, &mut content);
        }
        long(0, &mut content);
    }
    long(2, &mut file);
    counted(&content, &mut file);
    file.extend_from_slice(MARKER);
    fn bad<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(file: &[u8]) -> u64 {
        let job = || Job::avro::<R>().map_only(|row, out| out.emit(format!("{row:?}"), ()));
        JobTest::new(job)
            .input(file)
            .on_bad_input(Skip::All)
            .run()
            .counters
            .get("BAD_ROWS")
    }
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Row {
        m: BTreeMap<String, i64>,
    }
    assert_eq!(bad::<Row>(&file), 1);
    assert_eq!(bad::<BTreeMap<String, BTreeMap<String, i64>>>(&file), 1);
    assert_eq!(bad::<serde_json::Value>(&file), 1);
}

#[test]
fn reader_is_preemption_safe_at_every_row() {
    let sums = || {
        Job::avro::<Flights>()
            .map(|flight, out: &mut Emit<bool, i64>| {
                out.emit(flight.delay.is_some(), flight.delay.unwrap_or(1))
            })
            .reduce(|known, delays, out| out.emit(known, delays.sum()))
    };
    JobTest::new(sums)
        .input(by_hand(11))
        .split_size(60)
        .assert_preemption_safe();

    let known =
        || Job::avro::<(Vec<i32>, i64)>().map_only(|(gate, delay), out| out.emit(gate[0], delay));
    let test = JobTest::new(known)
        .input(by_hand(7))
        .on_bad_input(Skip::AtMost(4));
    let output = test.run();
    assert_eq!(
        (output.text().as_str(), output.counters.get("BAD_ROWS")),
        ("1\t-1\n3\t-3\n5\t-5\n", 4)
    );
    test.assert_preemption_safe();
}

#[test]
fn bad_row_is_named_by_number() {
    let file = TestFile::new("a.avro", by_hand(2));
    let error = read(
        &AvroRows::<(Vec<i32>, i64)>::default(),
        &file.whole(),
        false,
        |row| format!("{row:?}"),
    );
    let error = error.expect_err("the first row has no delay").to_string();
    assert!(
        error.contains(
            " has a bad row at row 1: field delay: invalid type: unit value, expected i64; the row is "
        ) && error.contains(r#"\"carrier\":\"Ü0\""#),
        "{error}"
    );
}

#[test]
fn damaged_files_are_rejected_by_name() {
    let bytes = by_hand(4);
    let first = head(SCHEMA, "null").len();
    let second = bytes.len()
        - 16
        - bytes[first..]
            .windows(16)
            .position(|at| at == MARKER)
            .expect("a marker");
    for cut in 1..bytes.len() {
        let file = TestFile::new("a.avro", &bytes[..cut]);
        let said = refused_or_intact(&flights(), &file, &expected(4), show);
        let whole_block = bytes[..cut].ends_with(MARKER);
        assert_eq!(
            said.is_none(),
            whole_block,
            "cut at byte {cut} of {}, after {second}: {said:?}",
            bytes.len()
        );
    }
    let all = AvroRows::<BTreeMap<String, serde_json::Value>>::default();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x15;
        let file = TestFile::new("a.avro", changed);
        if let Err(error) = read(&all, &file.whole(), false, |row| format!("{row:?}")) {
            assert!(
                error.to_string().contains(&file.path.display().to_string()),
                "{error}"
            );
        }
    }
    let said = |bytes: &[u8]| {
        let file = TestFile::new("a.avro", bytes);
        let error = read(&flights(), &file.whole(), false, show)
            .expect_err("it is refused")
            .to_string();
        error.replace(&file.path.display().to_string(), "a")
    };
    let block = |schema: &str, rows: i64, content: &[u8]| {
        let mut file = head(schema, "null");
        long(rows, &mut file);
        counted(content, &mut file);
        [&file[..], MARKER].concat()
    };
    let itself = r#"{"type":"record","name":"F","fields":[{"name":"f","type":"F"}]}"#;
    assert!(said(&block(itself, 1, b"")).ends_with("its values are nested too deeply"));
    assert!(
        said(&block("\"null\"", i64::MAX, b""))
            .ends_with("a block has 9223372036854775807 zero-size rows (limit 4294967296)")
    );
    let many = said(&block(
        r#"{"type":"array","items":"int"}"#,
        1,
        b"\xfe\xff\xff\xff\x0f\0",
    ));
    assert!(many.ends_with("2147483647 items in 1 bytes"), "{many}");
    let many = said(&block("\"int\"", 100, b"\0"));
    assert!(
        many.ends_with("it is damaged: a block of 100 rows in 1 bytes"),
        "{many}"
    );
    for items in [
        r#""null""#,
        r#"{"type":"fixed","name":"Z","size":0}"#,
        r#"{"type":"record","name":"E","fields":[]}"#,
    ] {
        let many = said(&block(
            &format!(r#"{{"type":"array","items":{items}}}"#),
            1,
            b"\xfe\xff\xff\xff\x0f\0",
        ));
        assert!(
            many.contains("exceed the memory of the task; raise --task-memory"),
            "{many}"
        );
    }
    assert!(said(&head(SCHEMA, "lzo")).ends_with(
        "compressed with \"lzo\", which is not supported; write it with deflate or zstandard"
    ));
    assert!(said(b"carrier,delay\n").ends_with("not an Avro container file"));
    assert!(
        flights()
            .check(&TestFile::new("a", by_hand(1)).path)
            .is_ok()
    );
}

/// A file of one block with these bytes.
fn one_block(schema: &str, rows: i64, content: &[u8]) -> TestFile {
    let mut file = head(schema, "null");
    long(rows, &mut file);
    counted(content, &mut file);
    TestFile::new("a.avro", [&file[..], MARKER].concat())
}

#[test]
fn arrays_of_zero_size_items_are_read() {
    for items in [
        r#""null""#,
        r#"{"type":"fixed","name":"Z","size":0}"#,
        r#"{"type":"record","name":"E","fields":[{"name":"n","type":"null"}]}"#,
    ] {
        let schema = format!(
            r#"{{"type":"record","name":"R","fields":[{{"name":"a","type":{{"type":"array","items":{items}}}}}]}}"#
        );
        let mut content = Vec::new();
        for count in [5, 0, 50_000] {
            if count > 0 {
                long(count, &mut content);
            }
            long(0, &mut content);
        }
        // The same with a negative count, after which the format expects the size of the block in bytes.
        [-3, 0, 0]
            .iter()
            .for_each(|number| long(*number, &mut content));
        let file = one_block(&schema, 4, &content);
        #[derive(Deserialize)]
        struct Row {
            a: Vec<serde::de::IgnoredAny>,
        }
        let rows = read(&AvroRows::<Row>::default(), &file.whole(), false, |row| {
            row.a.len().to_string()
        });
        assert_eq!(
            rows.unwrap_or_else(|error| panic!("{error}")),
            ["5", "0", "50000", "3"]
        );
    }
}

#[test]
fn zero_size_rows_are_counted() {
    let file = one_block("\"null\"", 3_000_000, b"");
    let rows = read(&AvroRows::<()>::default(), &file.whole(), false, |()| {
        String::new()
    });
    assert_eq!(
        rows.unwrap_or_else(|error| panic!("{error}")).len(),
        3_000_000
    );
}

#[test]
fn codec_without_feature_is_named() {
    let content = |rows: std::ops::Range<i64>| {
        let mut content = Vec::new();
        rows.for_each(|row| long(row, &mut content));
        content
    };
    let mut codecs: Vec<(&str, Option<Vec<u8>>)> = vec![(
        "zstandard",
        filtered("zstd", &["-c"], &content(0..900), "zstd"),
    )];
    codecs.push((
        "bzip2",
        filtered("bzip2", &["-c"], &content(0..900), "bzip2").filter(|_| cfg!(feature = "bzip2")),
    ));
    codecs.push((
        "xz",
        filtered("xz", &["-c", "-6"], &content(0..900), "xz-utils")
            .filter(|_| cfg!(feature = "xz")),
    ));
    for (codec, stored) in codecs {
        let mut file = head("\"long\"", codec);
        long(900, &mut file);
        counted(stored.as_deref().unwrap_or_default(), &mut file);
        let file = TestFile::new("a.avro", [&file[..], MARKER].concat());
        let rows = read(&AvroRows::<i64>::default(), &file.whole(), false, |row| {
            row.to_string()
        });
        match (rows, stored) {
            (Ok(rows), Some(_)) => assert_eq!(
                rows,
                (0..900).map(|row| row.to_string()).collect::<Vec<_>>()
            ),
            (Err(error), None) => {
                let expected = format!("build this program with the feature {codec} of napreduce");
                assert!(error.to_string().ends_with(&expected), "{error}");
            }
            (Ok(_), None) => panic!("{codec} is read without data"),
            (Err(error), Some(_)) => panic!("{codec}: {error}"),
        }
    }
}

#[test]
fn fastavro_files_are_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import fastavro
schema = {"type": "record", "name": "Flight", "namespace": "air", "fields": [
    {"name": "carrier", "type": "string"}, {"name": "delay", "type": ["null", "long"]},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["Day", "Night"]}},
    {"name": "id", "type": {"type": "fixed", "name": "Id", "size": 2}},
    {"name": "marks", "type": {"type": "map", "values": "double"}},
    {"name": "first", "type": ["null", "Flight"]}]}
def flight(number, first):
    return {"carrier": f"Ü{number}", "delay": -number if number % 2 else None, "kind": "Night", "id": b"ab",
            "marks": {"a": 0.5}, "first": first}
rows = [flight(number, flight(number, None) if number % 3 else None) for number in range(500)]
for codec in CODECS:
    fastavro.writer(open(f"{codec}.avro", "wb"), fastavro.parse_schema(schema), rows, codec=codec, sync_interval=400)
"#;
    let mut codecs = vec!["null", "deflate"];
    codecs.extend(["bzip2"].iter().filter(|_| cfg!(feature = "bzip2")));
    codecs.extend(["xz"].iter().filter(|_| cfg!(feature = "xz")));
    if python(
        &["fastavro"],
        &format!("CODECS = {codecs:?}\n{script}"),
        folder.path(),
    )
    .is_none()
    {
        return;
    }
    for codec in codecs {
        let bytes = fs::read(folder.path().join(format!("{codec}.avro"))).expect("Python wrote it");
        let file = TestFile::new("a.avro", bytes);
        let sizes = [97, 400, 1000, 5003, file.size - 1];
        assert_eq!(
            same_at_every_cut(&flights(), &file, sizes, show),
            expected(500)
        );

        #[derive(Debug, Deserialize)]
        enum Kind {
            Day,
            Night,
        }
        #[derive(Debug, Deserialize)]
        struct Whole {
            kind: Kind,
            id: Vec<u8>,
            marks: BTreeMap<String, f64>,
            first: Option<Box<Whole>>,
        }
        let tell = |row: Whole| {
            let Whole {
                kind,
                id,
                marks,
                first,
            } = row;
            assert!(
                matches!(kind, Kind::Night)
                    && !matches!(kind, Kind::Day)
                    && id == b"ab"
                    && marks["a"] == 0.5
            );
            first.is_some().to_string()
        };
        let firsts =
            read(&AvroRows::<Whole>::default(), &file.whole(), false, tell).expect("it is intact");
        assert_eq!(firsts[..4], ["false", "true", "true", "false"]);
    }
}
