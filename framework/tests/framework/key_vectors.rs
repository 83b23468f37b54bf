//! Encoded keys for implementations in other languages: `python/tests/vectors.json` must match the codec.
//!
//! `NAPREDUCE_WRITE_VECTORS=1` rewrites the file.

use napreduce::Key;
use napreduce::codec::{DecodeError, Scratch};
use serde_json::{Value as Json, json};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tests/vectors.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Encodes values of one type in both forms; `write` formats a value for the file.
fn of<K: Key>(name: &str, values: Vec<K::Owned>, write: impl Fn(&K::Owned) -> Json) -> Json {
    let encode = |owned: &K::Owned, last: bool| {
        let mut value = Vec::new();
        K::encode_owned(owned, true, &mut value);
        let scratch = Scratch::new();
        let key = K::decode_whole(&value, &scratch).expect("it was encoded");
        let mut bytes = Vec::new();
        K::encode_key(key, last, &mut bytes);
        bytes
    };
    let known: Vec<Json> = values
        .iter()
        .map(|value| {
            json!([
                write(value),
                hex(&encode(value, true)),
                hex(&encode(value, false))
            ])
        })
        .collect();
    json!({ "type": name, "keys": known })
}

/// Byte strings that are invalid for a type.
fn refused<K: Key>(name: &str, all: &[&[u8]]) -> Json {
    let is_refused =
        |bytes: &&[u8]| -> Result<(), DecodeError> { K::decode_owned(bytes).map(drop) };
    assert!(
        all.iter().all(|bytes| is_refused(bytes).is_err()),
        "{name}: some of these are keys"
    );
    json!({ "type": name, "bytes": all.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>() })
}

fn text(value: &String) -> Json {
    json!(value)
}

/// Formats a float as text, since JSON has no infinities and programs differ in the digits of a number.
fn float(value: &f64) -> Json {
    json!(hex(&value.to_bits().to_be_bytes()))
}

fn strings() -> Vec<String> {
    [
        "",
        "a",
        "b",
        "ab",
        "a\0",
        "a\0b",
        "a\0\u{ff}",
        "\0\0",
        "é",
        "\u{10ffff}",
        "to be or not to be",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn floats() -> Vec<f64> {
    let tiny = f64::from_bits(1);
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.5,
        -2.5e-9,
        f64::MAX,
        f64::MIN,
        tiny,
        -tiny,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
    ]
    .to_vec()
}

fn vectors() -> Json {
    let integers = vec![0, 1, -1, 255, 256, -256, 1 << 40, i64::MAX, i64::MIN];
    let bytes: Vec<Vec<u8>> = [
        &b""[..],
        b"\0",
        b"\xff",
        b"\0\xff",
        b"a\0\0b",
        &[0x80, 0xfe],
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    let options = vec![
        None,
        Some(String::new()),
        Some("x".to_owned()),
        Some("\0".to_owned()),
    ];
    let pairs = [("", 0), ("a", -1), ("a", 1), ("a\0", 1), ("b", i64::MIN)];
    let pairs: Vec<(String, i64)> = pairs
        .map(|(word, number)| (word.to_owned(), number))
        .to_vec();
    let nested = vec![
        (("a".to_owned(), "b".to_owned()), None),
        (("a".to_owned(), String::new()), Some(-1.0)),
        (("a\0".to_owned(), "\0".to_owned()), Some(f64::INFINITY)),
    ];
    let write_bytes = |value: &Vec<u8>| json!(hex(value));
    let write_nested = |((one, two), three): &((String, String), Option<f64>)| {
        json!([[one, two], three.as_ref().map(float)])
    };
    json!({
        "keys": [
            of::<String>("str", strings(), text),
            of::<Vec<u8>>("bytes", bytes, write_bytes),
            of::<i64>("int", integers, |value| json!(value)),
            of::<f64>("float", floats(), float),
            of::<bool>("bool", vec![false, true], |value| json!(value)),
            of::<()>("None", vec![()], |()| Json::Null),
            of::<Option<String>>("Optional[str]", options, |value| json!(value)),
            of::<(String,)>("(str,)", vec![("x".to_owned(),)], |(value,)| json!([value])),
            of::<(String, i64)>("(str, int)", pairs, |(word, number)| json!([word, number])),
            of::<((String, String), Option<f64>)>("((str, str), Optional[float])", nested, write_nested),
        ],
        "refused": [
            refused::<String>("str", &[b"\xff", b"ab\xc0"]),
            refused::<i64>("int", &[b"", b"1234567", b"123456789"]),
            refused::<f64>("float", &[b"", b"1234567", b"123456789"]),
            refused::<bool>("bool", &[b"", b"\x02", b"\x00\x00"]),
            refused::<()>("None", &[b"\0"]),
            refused::<Option<String>>("Optional[str]", &[b"", b"\x02", b"\x00x"]),
            refused::<(String, i64)>("(str, int)", &[b"", b"ab", b"a\0b", b"a\0\0", b"a\x00\x00123456789"]),
        ],
    })
}

#[test]
fn key_vectors_match_codec() {
    let expected = serde_json::to_string_pretty(&vectors()).expect("it is JSON") + "\n";
    if std::env::var_os("NAPREDUCE_WRITE_VECTORS").is_some() {
        std::fs::write(PATH, &expected).expect("the file can be written");
    }
    let found = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        found == expected,
        "{PATH} is another one; if the codec is to be so, write it anew: \
         NAPREDUCE_WRITE_VECTORS=1 cargo test -p napreduce --test framework key_vectors::"
    );
}
