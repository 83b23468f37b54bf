//! Numbers keep their values in every text format: doubles equal `str::parse`, and written numbers are read
//! back unchanged.

use napreduce::Job;
use napreduce::testing::JobTest;

/// Splits of this size cut the inputs into many tasks.
const SPLIT_BYTES: u64 = 64 << 10;

/// Doubles that are hard to parse, valid in every format.
const CORNERS: [&str; 22] = [
    "0",
    "-0",
    "0.0",
    "-0.0",
    "0.1",
    "1E5",
    "1e+5",
    "1e23",
    "8.41e21",
    "9007199254740991.0",
    "9007199254740993.0",
    "9223372036854775808",
    "18446744073709551616",
    "123456789012345678901234567890",
    "5e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "2.2250738585072011e-308",
    "2.2250738585072014e-308",
    "1.7976931348623157e308",
    "1e-400",
    "0.3000000000000000444089209850062616169452667236328125",
];

/// Spellings that only text and csv allow.
const NOT_IN_JSON: [&str; 10] = [
    "NaN", "inf", "-inf", "Infinity", "+1", "01.50", ".5", "5.", "1e400", "-1e400",
];

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn finite(state: &mut u64) -> f64 {
    std::iter::repeat_with(|| f64::from_bits(random(state)))
        .find(|double| double.is_finite())
        .expect("most are")
}

/// The corner cases, and 20,001 random doubles: short, long, in full and with fewer digits than they need.
fn doubles() -> Vec<String> {
    let mut state = 1;
    let random = (0..20_001).map(|number| match number % 5 {
        0 => format!("{:?}", finite(&mut state)),
        1 => format!("{:e}", finite(&mut state)),
        2 => format!("{:.25e}", finite(&mut state)),
        3 => format!(
            "{:.16}",
            random(&mut state) as f64 / random(&mut state) as f64
        ),
        _ => format!("{}.{}", random(&mut state) >> 20, random(&mut state)),
    });
    CORNERS
        .map(str::to_owned)
        .into_iter()
        .chain(random)
        .collect()
}

/// Parses the texts with `str::parse`; returns the bits of each on a line.
fn parsed(texts: &[String]) -> String {
    let line = |text: &String| format!("{}\n", text.parse::<f64>().expect("a number").to_bits());
    texts.iter().map(line).collect()
}

/// Runs `job` on one row for each text, and returns its lines.
fn read(
    job: impl Fn() -> Job,
    first: &str,
    texts: &[String],
    row: impl Fn(&str) -> String,
) -> String {
    let rows: String = texts.iter().map(|text| row(text) + "\n").collect();
    JobTest::new(job)
        .input(format!("{first}{rows}"))
        .split_size(SPLIT_BYTES)
        .run()
        .text()
}

/// One number of each type; `lines()` writes the bits of each number on a line.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Numbers {
    double: f64,
    single: f32,
    signed: i64,
    unsigned: u64,
    wide: i128,
    wider: u128,
}

impl Numbers {
    fn of_bits(line: &str) -> Numbers {
        let bits: Vec<u128> = line
            .split(' ')
            .map(|bits| bits.parse().expect("bits"))
            .collect();
        let [double, single, signed, unsigned, wide, wider] = bits[..] else {
            panic!("six numbers: {line}")
        };
        Numbers {
            double: f64::from_bits(double as u64),
            single: f32::from_bits(single as u32),
            signed: signed as i64,
            unsigned: unsigned as u64,
            wide: wide as i128,
            wider,
        }
    }

    fn bits(&self) -> String {
        let Numbers {
            double,
            single,
            signed,
            unsigned,
            wide,
            wider,
        } = self;
        let double = double.to_bits();
        let single = single.to_bits();
        format!(
            "{double} {single} {} {unsigned} {} {wider}",
            *signed as u64, *wide as u128
        )
    }
}

/// Random numbers of all magnitudes and the bounds of each type. Floats are finite unless `all` is set.
fn lines(all: bool) -> String {
    let mut state = 2;
    let mut lines = Vec::new();
    for shift in (0..128).cycle().take(4096) {
        let mut wide =
            || (u128::from(random(&mut state)) << 64 | u128::from(random(&mut state))) >> shift;
        let (signed, unsigned, wide, wider) =
            (wide() as i64, wide() as u64, wide() as i128, wide());
        let double = if all {
            f64::from_bits(random(&mut state))
        } else {
            finite(&mut state)
        };
        let single = f32::from_bits(random(&mut state) as u32);
        let single = if all || single.is_finite() {
            single
        } else {
            -0.0
        };
        lines.push(Numbers {
            double,
            single,
            signed,
            unsigned,
            wide,
            wider,
        });
    }
    for (signed, unsigned, wide, wider) in [
        (i64::MIN, u64::MAX, i128::MIN, u128::MAX),
        (i64::MAX, 0, i128::MAX, 0),
        (0, 0, 0, 0),
        (-1, 1, -1, 1),
    ] {
        let special = if all {
            [f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
        } else {
            [f64::MAX, f64::MIN, -0.0]
        };
        for double in special
            .into_iter()
            .chain([0.0, -0.0, 5e-324, f64::MIN_POSITIVE])
        {
            lines.push(Numbers {
                double,
                single: double.clamp(-3e38, 3e38) as f32,
                signed,
                unsigned,
                wide,
                wider,
            });
        }
    }
    // All NaN become the same one, since text cannot represent their bits.
    for numbers in &mut lines {
        numbers.double = if numbers.double.is_nan() {
            f64::NAN
        } else {
            numbers.double
        };
        numbers.single = if numbers.single.is_nan() {
            f32::NAN
        } else {
            numbers.single
        };
    }
    lines.iter().map(|numbers| numbers.bits() + "\n").collect()
}

/// Asserts that `read` returns the numbers that `write` wrote.
fn check_there_and_back<T>(lines: &str, write: impl Fn() -> Job<T>, read: impl Fn() -> Job) {
    let written = JobTest::new(write).input(lines).run().text();
    let found = JobTest::new(read)
        .input(&written)
        .split_size(SPLIT_BYTES)
        .run()
        .text();
    let difference = lines
        .lines()
        .zip(found.lines())
        .find(|(expected, found)| expected != found);
    assert_eq!((difference, found.len()), (None, lines.len()));
}

#[test]
fn text_doubles_equal_str_parse() {
    let texts = [doubles(), NOT_IN_JSON.map(str::to_owned).to_vec()].concat();
    let job = || {
        Job::text().map_only(|line: &str, out| {
            out.emit(line.parse::<f64>()?.to_bits(), ());
            Ok::<(), std::num::ParseFloatError>(())
        })
    };
    assert!(read(job, "", &texts, str::to_owned) == parsed(&texts));
}

#[test]
fn text_numbers_come_back() {
    let write = || {
        Job::text().map_only(|line: &str, out| {
            let Numbers {
                double,
                single,
                signed,
                unsigned,
                wide,
                wider,
            } = Numbers::of_bits(line);
            out.emit((double, single, signed), (unsigned, wide, wider));
        })
    };
    let read = || {
        Job::text().map_only(|line: &str, out| -> Result<(), String> {
            let fields: Vec<&str> = line.split('\t').collect();
            let [double, single, signed, unsigned, wide, wider] = fields[..] else {
                return Err(line.to_owned());
            };
            let numbers = Numbers {
                double: double.parse().map_err(|_| double)?,
                single: single.parse().map_err(|_| single)?,
                signed: signed.parse().map_err(|_| signed)?,
                unsigned: unsigned.parse().map_err(|_| unsigned)?,
                wide: wide.parse().map_err(|_| wide)?,
                wider: wider.parse().map_err(|_| wider)?,
            };
            out.emit(numbers.bits(), ());
            Ok(())
        })
    };
    check_there_and_back(&lines(true), write, read);
}

#[cfg(feature = "csv")]
mod csv {
    use std::collections::BTreeMap;

    use napreduce::rows::{Csv, CsvRows};

    use super::*;

    #[derive(serde::Deserialize)]
    struct Row {
        number: f64,
        #[serde(flatten)]
        others: BTreeMap<String, f64>,
    }

    #[test]
    fn csv_doubles_equal_str_parse() {
        let texts = [doubles(), NOT_IN_JSON.map(str::to_owned).to_vec()].concat();
        let job = || Job::csv::<Row>().map_only(|row: Row, out| out.emit(row.number.to_bits(), ()));
        assert!(read(job, "number\n", &texts, str::to_owned) == parsed(&texts));
        let flattened = || {
            Job::csv::<Row>().map_only(|row: Row, out| out.emit(row.others["more"].to_bits(), ()))
        };
        assert!(
            read(flattened, "number,more\n", &texts, |text| format!(
                "0,{text}"
            )) == parsed(&texts)
        );
    }

    #[test]
    fn csv_and_tsv_numbers_come_back() {
        let write = || {
            Job::text().map_only_to(Csv::default(), |line: &str, out| {
                out.emit(&Numbers::of_bits(line))
            })
        };
        let read =
            || Job::csv::<Numbers>().map_only(|numbers: Numbers, out| out.emit(numbers.bits(), ()));
        check_there_and_back(&lines(true), write, read);
        let write = || {
            let format = Csv::default().delimiter(b'\t').without_header();
            Job::text().map_only_to(format, |line: &str, out| out.emit(&Numbers::of_bits(line)))
        };
        let read = || {
            let format = CsvRows::<Numbers>::default()
                .delimiter(b'\t')
                .without_header();
            Job::input(format).map_only(|numbers: Numbers, out| out.emit(numbers.bits(), ()))
        };
        check_there_and_back(&lines(true), write, read);
    }
}

#[cfg(feature = "json-lines")]
mod json_lines {
    use std::collections::BTreeMap;

    use napreduce::rows::JsonLines;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Row {
        number: f64,
        #[serde(flatten)]
        others: BTreeMap<String, f64>,
    }

    #[test]
    fn json_doubles_equal_str_parse() {
        let texts = doubles();
        let plain =
            || Job::json_lines::<f64>().map_only(|number: f64, out| out.emit(number.to_bits(), ()));
        assert!(read(plain, "", &texts, str::to_owned) == parsed(&texts));
        let both = || {
            Job::json_lines::<Row>().map_only(|row: Row, out| {
                assert_eq!(row.number.to_bits(), row.others["more"].to_bits());
                out.emit(row.number.to_bits(), ());
            })
        };
        assert!(
            read(both, "", &texts, |text| format!(
                "{{\"number\":{text},\"more\":{text}}}"
            )) == parsed(&texts)
        );
    }

    #[test]
    fn json_numbers_come_back() {
        let write = || {
            Job::text().map_only_to(JsonLines, |line: &str, out| {
                out.emit(&Numbers::of_bits(line))
            })
        };
        let read = || {
            Job::json_lines::<Numbers>()
                .map_only(|numbers: Numbers, out| out.emit(numbers.bits(), ()))
        };
        check_there_and_back(&lines(false), write, read);
    }
}
