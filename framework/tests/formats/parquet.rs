//! Rows of Parquet files: row groups, columns, types, damage, and exchange with pyarrow and Polars.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;

use napreduce::input::{InputFormat, Skip};
use napreduce::rows::{Parquet, ParquetRows};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job, borrowed};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kit::{TestFile, python, read, refused_or_intact, same_at_every_cut};

#[derive(Debug, Deserialize)]
struct Flight<'a> {
    carrier: &'a str,
    delay: Option<i64>,
}

type Flights = borrowed!(Flight);

fn show(flight: Flight<'_>) -> String {
    format!("{} {:?}", flight.carrier, flight.delay)
}

fn flights() -> ParquetRows<Flights> {
    ParquetRows::default()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Day,
    Night,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Written {
    gates: Vec<i32>,
    delay: Option<i64>,
    carrier: String,
    kind: Kind,
}

fn row(number: i64) -> Written {
    let kind = if number % 3 == 0 {
        Kind::Day
    } else {
        Kind::Night
    };
    let delay = (number % 2 == 1).then_some(-number);
    Written {
        gates: vec![number as i32; (number % 3) as usize],
        delay,
        carrier: format!("Ü{number}"),
        kind,
    }
}

/// A job that writes rows of numbers, in groups of three.
fn numbered() -> Job<Written> {
    Job::text().map_only_to(
        Parquet::<Written>::default().group_rows(3),
        |number: &str, out| number.parse().map(|number| out.emit(&row(number))),
    )
}

fn written(rows: i64) -> Vec<u8> {
    let lines: String = (0..rows).map(|number| format!("{number}\n")).collect();
    let parts = JobTest::new(numbered).input(lines).run().parts;
    parts.concat()
}

fn expected(rows: i64) -> Vec<String> {
    (0..rows)
        .map(|number| format!("Ü{number} {:?}", row(number).delay))
        .collect()
}

#[test]
fn every_cut_gives_each_row_once() {
    let file = TestFile::new("a.parquet", written(10));
    let rows = same_at_every_cut(&flights(), &file, (1..file.size).step_by(7), show);
    assert_eq!(rows, expected(10));
    let one = TestFile::new("a.parquet", written(1));
    assert_eq!(
        same_at_every_cut(&flights(), &one, [1, 100], show),
        expected(1)
    );
    let all = ParquetRows::<Written>::default();
    let rows = same_at_every_cut(&all, &file, [100], |row| format!("{row:?}"));
    assert_eq!(
        rows,
        (0..10)
            .map(|number| format!("{:?}", row(number)))
            .collect::<Vec<_>>()
    );
}

#[test]
fn part_without_rows_is_valid_file() {
    let none = || {
        Job::text()
            .map(|_: &str, _: &mut Emit<i64, ()>| {})
            .output(Parquet::<Written>::default())
            .reduce(|number, _, out| out.emit(&row(number)))
    };
    let parts = JobTest::new(none).input("1\n").run().parts;
    let file = TestFile::new("a.parquet", parts.concat());
    assert_eq!(
        same_at_every_cut(&flights(), &file, [1, 100], show),
        [""; 0]
    );
}

#[test]
fn reader_is_preemption_safe_at_every_row() {
    let sums = || {
        Job::parquet::<Flights>()
            .map(|flight, out: &mut Emit<bool, i64>| {
                out.emit(flight.delay.is_some(), flight.delay.unwrap_or(1))
            })
            .reduce(|known, delays, out| out.emit(known, delays.sum()))
    };
    JobTest::new(sums)
        .input(written(11))
        .split_size(900)
        .assert_preemption_safe();

    #[derive(Deserialize)]
    struct Late {
        carrier: String,
        delay: i64,
    }
    let known = || Job::parquet::<Late>().map_only(|row, out| out.emit(row.carrier, row.delay));
    let test = JobTest::new(known)
        .input(written(7))
        .on_bad_input(Skip::AtMost(4));
    let output = test.run();
    assert_eq!(
        (output.text().as_str(), output.counters.get("BAD_ROWS")),
        ("Ü1\t-1\nÜ3\t-3\nÜ5\t-5\n", 4)
    );
    test.assert_preemption_safe();
}

#[test]
fn writer_is_preemption_safe_at_every_row() {
    let lines: String = (0..11).map(|number| format!("{number}\n")).collect();
    JobTest::new(numbered)
        .input(&lines)
        .assert_preemption_safe();
    let grouped = || {
        Job::text()
            .map(|number: &str, out: &mut Emit<i64, ()>| {
                number.parse().map(|number| out.emit(number, ()))
            })
            .output(Parquet::<Written>::default().group_rows(2))
            .reduce(|number, _, out| out.emit(&row(number)))
    };
    JobTest::new(grouped).input(&lines).assert_preemption_safe();
}

#[test]
fn bad_row_is_quoted_with_number() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Late {
        delay: i64,
    }
    let file = TestFile::new("a.parquet", written(8));
    let said = |split| {
        let read = read(&ParquetRows::<Late>::default(), split, false, |row| {
            format!("{row:?}")
        });
        read.err().map(|error| error.to_string())
    };
    let whole = file.whole();
    let first = said(&whole).expect("the first row has no delay");
    assert!(first.contains(" has a bad row at row 1: "), "{first}");
    assert!(
        first.contains("delay") && first.contains(r#"the row is "{\"delay\":null}"; fix the row"#),
        "{first}"
    );
    let pieces = file.pieces(50);
    let last = pieces
        .iter()
        .rev()
        .find_map(said)
        .expect("the first row of the last group has none, too");
    assert!(last.contains(" has a bad row at row 7: "), "{last}");
}

fn message<R: serde::de::DeserializeOwned + 'static>(bytes: impl AsRef<[u8]>) -> String {
    let file = TestFile::new("a.parquet", bytes);
    let error = read(&ParquetRows::<R>::default(), &file.whole(), false, |_| {
        String::new()
    });
    let error = error.expect_err("it is refused").to_string();
    error.replace(&file.path.display().to_string(), "a.parquet")
}

#[test]
fn missing_and_mistyped_columns_are_named() {
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Other {
        colour: String,
        size: Option<u8>,
    }
    let none = message::<Other>(written(2));
    assert!(
        none.starts_with("a.parquet cannot be read as rows at byte "),
        "{none}"
    );
    assert!(
        none.ends_with(
            "it has none of the columns colour, size but gates, delay, carrier, kind; check the names"
        ),
        "{none}"
    );

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct More {
        carrier: String,
        colour: String,
    }
    let one = message::<More>(written(2));
    assert!(
        one.starts_with("a.parquet has a bad row at row 1: "),
        "{one}"
    );
    assert!(
        one.contains("missing field") && one.contains("colour"),
        "{one}"
    );

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Mistyped {
        carrier: u64,
    }
    let mistyped = message::<Mistyped>(written(2));
    assert!(
        mistyped.starts_with("a.parquet has a bad row at row 1: "),
        "{mistyped}"
    );
    assert!(
        mistyped.contains("carrier") && mistyped.contains("Ü0"),
        "{mistyped}"
    );
}

#[test]
fn damaged_files_are_rejected_by_name() {
    let bytes = written(4);
    for cut in 0..bytes.len() {
        let file = TestFile::new("a.parquet", &bytes[..cut]);
        let said = refused_or_intact(&flights(), &file, &[], show).expect("it is incomplete");
        let format = flights();
        assert!(
            format.check(&file.path).is_err() || said.contains("cannot be read as rows"),
            "{said}"
        );
    }
    for at in 0..bytes.len() {
        for change in [0x01, 0x15, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            let file = TestFile::new("a.parquet", changed);
            if let Err(error) = read(&flights(), &file.whole(), false, show) {
                assert!(
                    error.to_string().contains(&file.path.display().to_string()),
                    "{error}"
                );
            }
        }
    }
    let said = |bytes: &[u8]| message::<Written>(bytes);
    assert!(said(b"").ends_with("an empty file is not a Parquet file; write it again"));
    assert!(said(b"carrier,delay\n").ends_with("not a Parquet file"));
    assert!(said(b"PAR1").ends_with("it is incomplete, so write it again"));
    assert!(said(&bytes[..bytes.len() - 1]).ends_with("it is incomplete, so write it again"));
    assert!(
        said(b"PAR1 PARE").ends_with("it is encrypted, which is not supported; decrypt it first")
    );
    assert!(
        said(b"PAR1\xff\xff\xff\x7fPAR1")
            .starts_with("a.parquet cannot be read as rows at byte 12: ")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn rows_round_trip(
        rows in vec((any::<i64>(), "[a\",;é\t ]{0,6}"), 0..14), groups in 1..5usize, size in 1..400u64,
    ) {
        #[derive(Debug, Serialize, Deserialize)]
        struct Pair {
            number: i64,
            text: String,
        }
        let lines: String = rows.iter().map(|(number, text)| format!("{number}|{text}\n")).collect();
        let write = move || {
            Job::text().map_only_to(Parquet::<Pair>::default().group_rows(groups), |line: &str, out| {
                let (number, text) = line.split_once('|').expect("two fields");
                number.parse().map(|number| out.emit(&Pair { number, text: text.to_owned() }))
            })
        };
        let parts = JobTest::new(write).input(lines).run().parts;
        prop_assume!(!parts.is_empty());
        let file = TestFile::new("a.parquet", parts.concat());
        let found = same_at_every_cut(&ParquetRows::<Pair>::default(), &file, [size], |Pair { number, text }| format!("{number} {text}"));
        let expected: Vec<String> = rows.iter().map(|(number, text)| format!("{number} {text}")).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn row_type_without_columns_fails_task() {
    let unwritable = || {
        Job::text().map_only_to(
            Parquet::<BTreeMap<String, Value>>::default(),
            |_: &str, out| {
                out.emit(&BTreeMap::new());
            },
        )
    };
    let panic = catch_unwind(|| JobTest::new(unwritable).input("a\n").run()).expect_err("it fails");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.contains("has no Parquet columns: "), "{message}");
}

#[test]
fn pyarrow_files_are_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import datetime, decimal, pyarrow, pyarrow.parquet
rows = range(500)
table = pyarrow.table({
    "carrier": [f"Ü{row}" for row in rows], "delay": [-row if row % 2 else None for row in rows],
    "kind": pyarrow.array(["day" if row % 3 else "night" for row in rows]).dictionary_encode(),
    "gates": [[row] * (row % 3) for row in rows], "first": [{"id": row, "marks": [0.5]} for row in rows],
    "date": pyarrow.array([datetime.date(2026, 11, 23)] * 500),
    "at": pyarrow.array([datetime.datetime(2026, 11, 23, 14, 5)] * 500, pyarrow.timestamp("us")),
    "price": pyarrow.array([decimal.Decimal("1.25")] * 500), "short": pyarrow.array([7] * 500, pyarrow.uint8())})
for codec in ["none", "snappy", "gzip", "brotli", "lz4"]:
    for version in ["1.0", "2.0"]:
        pyarrow.parquet.write_table(table, f"{codec}-{version}.parquet", compression=codec, row_group_size=97,
            data_page_version=version, use_dictionary=["kind"] if version == "1.0" else True,
            write_page_checksum=True, store_schema=version == "1.0")
pyarrow.parquet.write_table(table, "zstd.parquet", compression="zstd")
"#;
    if python(&["pyarrow"], script, folder.path()).is_none() {
        return;
    }
    let bytes = |name: &str| fs::read(folder.path().join(name)).expect("Python wrote it");
    let all = ParquetRows::<BTreeMap<String, Value>>::default();
    for codec in ["none", "snappy", "gzip", "brotli", "lz4"] {
        for version in ["1.0", "2.0"] {
            let file = TestFile::new("a.parquet", bytes(&format!("{codec}-{version}.parquet")));
            let sizes = [97, 1000, 5003, file.size - 1];
            assert_eq!(
                same_at_every_cut(&flights(), &file, sizes, show),
                expected(500),
                "{codec}"
            );
            let rows = read(&all, &file.whole(), false, |row| {
                serde_json::to_string(&row).expect("JSON")
            });
            assert_eq!(
                rows.expect("it is intact")[2],
                "{\"at\":1795442700000000,\"carrier\":\"Ü2\",\"date\":20780,\"delay\":null,\"first\":\
                 {\"id\":2,\"marks\":[0.5]},\"gates\":[2,2],\"kind\":\"day\",\"price\":\"1.25\",\"short\":7}"
            );
        }
    }
    #[derive(Deserialize)]
    struct Times {
        date: String,
        at: String,
    }
    let file = TestFile::new("a.parquet", bytes("snappy-2.0.parquet"));
    let times = read(
        &ParquetRows::<Times>::default(),
        &file.whole(),
        false,
        |row| row.date + " " + &row.at,
    );
    assert_eq!(
        times.expect("it is intact")[1],
        "2026-11-23 2026-11-23T14:05:00"
    );
    let file = TestFile::new("a.parquet", bytes("zstd.parquet"));
    match read(&flights(), &file.whole(), false, show) {
        Ok(rows) if cfg!(feature = "parquet-zstd") => assert_eq!(rows, expected(500)),
        Ok(_) => panic!("zstd is a feature of its own"),
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("build this program with the feature parquet-zstd of napreduce"),
                "{error}"
            );
            if cfg!(feature = "parquet-zstd") {
                panic!("{error}");
            }
        }
    }
    let mut damaged = bytes("none-1.0.parquet");
    let name = "Ü50".as_bytes();
    let at = damaged
        .windows(name.len())
        .position(|window| window == name)
        .expect("a name in a page");
    damaged[at + 2] ^= 1;
    let file = TestFile::new("a.parquet", damaged);
    let error = read(&all, &file.whole(), false, |row| format!("{row:?}"))
        .expect_err("a page has its checksum");
    assert!(error.to_string().contains("it is damaged: "), "{error}");
}

/// A map whose names are written as they are, also repeated ones.
#[derive(Debug, Deserialize)]
struct Names(#[allow(dead_code)] BTreeMap<String, i64>);

#[derive(Debug, Serialize, Deserialize)]
struct Named {
    #[serde(serialize_with = "name_twice")]
    names: Names,
}

fn name_twice<S: serde::Serializer>(_: &Names, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("a", 1), ("b", 2), ("a", 3)])
}

#[test]
fn repeated_key_of_a_map_is_bad_row() {
    let write = || {
        Job::text().map_only_to(Parquet::<Named>::default(), |_: &str, out| {
            out.emit(&Named {
                names: Names(BTreeMap::new()),
            });
        })
    };
    let file = JobTest::new(write).input("1\n2\n").run().parts.concat();
    fn bad<R: serde::de::DeserializeOwned + std::fmt::Debug + 'static>(file: &[u8]) -> u64 {
        let job = || Job::parquet::<R>().map_only(|row, out| out.emit(format!("{row:?}"), ()));
        JobTest::new(job)
            .input(file)
            .on_bad_input(Skip::All)
            .run()
            .counters
            .get("BAD_ROWS")
    }
    assert_eq!(bad::<Named>(&file), 2);
    assert_eq!(bad::<BTreeMap<String, BTreeMap<String, i64>>>(&file), 2);
    assert_eq!(bad::<Value>(&file), 2);
}

#[test]
fn repeated_columns_are_bad_rows() {
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flat {
        a: i64,
    }
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Nested {
        s: Flat,
    }
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Listed {
        s: Vec<Flat>,
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import pyarrow, pyarrow.parquet
one, two = pyarrow.array([1, 2]), pyarrow.array([3, 4])
def write(name, columns, names):
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=names), name, store_schema=False)
pair = pyarrow.StructArray.from_arrays([one, two], names=["a", "a"])
write("neighbours", [one, two], ["a", "a"])
write("apart", [one, two, one], ["a", "b", "a"])
write("nested", [pair], ["s"])
write("listed", [pyarrow.ListArray.from_arrays(pyarrow.array([0, 1, 2], pyarrow.int32()), pair)], ["s"])
"#;
    if python(&["pyarrow"], script, folder.path()).is_none() {
        return;
    }
    let bytes = |name: &str| fs::read(folder.path().join(name)).expect("Python wrote it");
    let mut refusals = vec![
        message::<Flat>(bytes("neighbours")),
        message::<Flat>(bytes("apart")),
        message::<Nested>(bytes("nested")),
        message::<Listed>(bytes("listed")),
    ];
    for name in ["neighbours", "apart", "nested", "listed"] {
        refusals.push(message::<BTreeMap<String, Value>>(bytes(name)));
        refusals.push(message::<Value>(bytes(name)));
    }
    for refusal in refusals {
        assert!(refusal.contains("duplicate field `a`"), "{refusal}");
    }
}

#[test]
fn floats_are_read_from_dates_but_not_from_text() {
    #[derive(Deserialize)]
    struct Times {
        date: f64,
        at: f64,
        half: f64,
    }
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Price {
        price: f64,
    }
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flag {
        flag: f64,
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import datetime, decimal, pyarrow, pyarrow.parquet
at = datetime.datetime(2026, 11, 23, 14, 5)
pyarrow.parquet.write_table(pyarrow.table({
    "date": pyarrow.array([at.date()]), "at": pyarrow.array([at], pyarrow.timestamp("us")),
    "half": pyarrow.array([0.5], pyarrow.float16()), "price": pyarrow.array([decimal.Decimal("1.25")]),
    "flag": pyarrow.array([True])}), "a", store_schema=False)
"#;
    if python(&["pyarrow"], script, folder.path()).is_none() {
        return;
    }
    let file = TestFile::new(
        "a.parquet",
        fs::read(folder.path().join("a")).expect("Python wrote it"),
    );
    let times = ParquetRows::<Times>::default();
    let times = read(&times, &file.whole(), false, |row| {
        format!("{:?} {:?} {:?}", row.date, row.at, row.half)
    });
    assert_eq!(times.expect("numbers"), ["20780.0 1795442700000000.0 0.5"]);
    let bytes = fs::read(&file.path).expect("a file");
    for refusal in [message::<Price>(&bytes), message::<Flag>(&bytes)] {
        assert!(
            refusal.starts_with("a.parquet has a bad row at row 1: "),
            "{refusal}"
        );
    }
}

#[test]
fn integer_columns_are_read_as_floats() {
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Floats {
        gates: Vec<f32>,
        delay: Option<f64>,
    }
    let file = TestFile::new("a.parquet", written(3));
    let floats = ParquetRows::<Floats>::default();
    let rows = same_at_every_cut(&floats, &file, [100], |row| {
        format!("{:?} {:?}", row.gates, row.delay)
    });
    assert_eq!(rows, ["[] None", "[1.0] Some(-1.0)", "[2.0, 2.0] None"]);
}

#[test]
fn letters_are_their_numbers() {
    let write = || {
        Job::text().map_only_to(Parquet::<(char,)>::default(), |line: &str, out| {
            line.chars().for_each(|letter| out.emit(&(letter,)));
        })
    };
    let file = JobTest::new(write).input("aÜ\n").run().parts.concat();
    let letters = || Job::parquet::<(char,)>().map_only(|(letter,), out| out.emit(letter, ()));
    assert_eq!(JobTest::new(letters).input(&file).run().text(), "a\nÜ\n");
    let numbers = || Job::parquet::<(u32,)>().map_only(|(number,), out| out.emit(number, ()));
    assert_eq!(JobTest::new(numbers).input(&file).run().text(), "97\n220\n");
}

#[test]
fn polars_files_round_trip() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let script = r#"
import polars
rows = range(300)
frame = polars.DataFrame({"carrier": [f"Ü{row}" for row in rows], "delay": [-row if row % 2 else None for row in rows]})
for codec in ["uncompressed", "snappy", "gzip", "brotli", "lz4"]:
    frame.write_parquet(f"{codec}.parquet", compression=codec, row_group_size=64)
"#;
    if python(&["polars", "pyarrow"], script, folder.path()).is_none() {
        return;
    }
    for codec in ["uncompressed", "snappy", "gzip", "brotli", "lz4"] {
        let bytes =
            fs::read(folder.path().join(format!("{codec}.parquet"))).expect("Python wrote it");
        let file = TestFile::new("a.parquet", bytes);
        let rows = same_at_every_cut(&flights(), &file, [97, 1000, file.size - 1], show);
        assert_eq!(rows, expected(300), "{codec}");
    }
    fs::write(folder.path().join("ours.parquet"), written(5)).expect("a written file");
    let script = r#"
import polars, pyarrow.parquet
file = pyarrow.parquet.ParquetFile("ours.parquet")
print(file.metadata.num_row_groups, file.schema_arrow.field("delay"), file.schema_arrow.field("kind").type)
print(file.read().to_pylist()[2:4])
print(polars.read_parquet("ours.parquet").to_dicts() == file.read().to_pylist())
"#;
    let read = python(&["polars", "pyarrow"], script, folder.path()).expect("it was there before");
    assert_eq!(
        read,
        "2 pyarrow.Field<delay: int64> string\n\
         [{'gates': [2, 2], 'delay': None, 'carrier': 'Ü2', 'kind': 'Night'}, \
         {'gates': [], 'delay': -3, 'carrier': 'Ü3', 'kind': 'Day'}]\nTrue\n"
    );
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Counted {
    word: String,
    count: u64,
}

impl From<(String, u64)> for Counted {
    fn from((word, count): (String, u64)) -> Counted {
        Counted { word, count }
    }
}

#[test]
fn folds_write_rows_made_of_pairs() {
    let count = || -> Job<Counted> {
        Job::text()
            .flat_map(napreduce::words)
            .output(Parquet::default())
            .count()
    };
    let test = JobTest::new(count).input("to be or\nnot to\n").reduces(1);
    let read = || Job::parquet::<Counted>().map_only(|row, out| out.emit(row.word, row.count));
    assert_eq!(
        JobTest::new(read).input(&test.run().parts[0]).run().text(),
        "be\t1\nnot\t1\nor\t1\nto\t2\n"
    );
    test.assert_preemption_safe();
}
