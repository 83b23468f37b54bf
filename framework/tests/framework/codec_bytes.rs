//! The exact bytes of encodings, decode errors, grouping and serde values.

use std::cmp::Reverse;

use napreduce::codec::{DecodeError, GroupBy, List, Scratch, Serde};
use napreduce::{Key, Value};
use serde::{Deserialize, Serialize};

fn encode<V: Value>(value: V::Ref<'_>, last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    V::encode(value, last, &mut out);
    out
}

fn encode_key<K: Key>(key: K::Ref<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    K::encode_key(key, true, &mut out);
    out
}

#[derive(Key)]
struct Reading<'a> {
    sensor: &'a str,
    level: f64,
}

fn error<V: Value>(bytes: &[u8]) -> String {
    V::decode_owned(bytes)
        .err()
        .expect("these bytes are wrong")
        .to_string()
}

#[test]
fn integers_are_big_endian_with_flipped_sign() {
    assert_eq!(encode::<u32>(0x0102_0304, true), [1, 2, 3, 4]);
    assert_eq!(encode::<i16>(-1, true), [0x7F, 0xFF]);
    assert_eq!(encode::<i16>(1, true), [0x80, 1]);
    assert_eq!(encode::<u64>(7, false), encode::<usize>(7, true));
    assert_eq!(u128::FIXED, Some(16));
}

#[test]
fn floats_have_one_nan_and_as_keys_one_zero() {
    assert_eq!(encode_key::<f64>(-0.0), encode_key::<f64>(0.0));
    assert_eq!(encode_key::<f64>(0.0), encode::<f64>(0.0, true));
    assert!(encode::<f64>(-0.0, true) < encode::<f64>(0.0, true));
    assert!(encode::<f64>(-f64::from_bits(1), true) < encode::<f64>(-0.0, true));
    assert_eq!(
        encode_key::<(Option<f32>, Reverse<f64>)>((Some(-0.0), Reverse(-0.0))),
        { encode_key::<(Option<f32>, Reverse<f64>)>((Some(0.0), Reverse(0.0))) }
    );
    assert_eq!(
        encode_key::<List<f64>>(vec![-0.0, 1.0]),
        encode_key::<List<f64>>(vec![0.0, 1.0])
    );
    assert_eq!(
        encode_key::<Reading>(Reading {
            sensor: "a",
            level: -0.0
        }),
        {
            encode_key::<Reading>(Reading {
                sensor: "a",
                level: 0.0,
            })
        }
    );
    assert_eq!(
        encode::<f32>(-f32::NAN, true),
        encode::<f32>(f32::NAN, true)
    );
    assert_eq!(encode::<f64>(1.0, true), [0xBF, 0xF0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        encode::<f64>(-1.0, true),
        [0x40, 0x0F, 255, 255, 255, 255, 255, 255]
    );
}

#[test]
fn text_is_raw_when_last_and_escaped_otherwise() {
    assert_eq!(encode::<String>("a\0b", true), b"a\0b");
    assert_eq!(encode::<String>("a\0b", false), b"a\0\xFFb\0\0");
    assert_eq!(encode::<(String, String)>(("x", "y"), true), b"x\0\0y");
    assert_eq!(encode::<(String, String)>(("x", "y"), false), b"x\0\0y\0\0");
    assert_eq!(encode::<Option<String>>(Some("x"), true), b"\x01x");
    assert_eq!(
        encode::<Reverse<String>>(Reverse("x"), true),
        [!b'x', 0xFF, 0xFF]
    );
}

#[test]
fn text_and_bytes_are_borrowed_not_copied() {
    let mut buffer = Vec::new();
    let word = "word";
    assert_eq!(String::bytes(word, &mut buffer).as_ptr(), word.as_ptr());
    assert_eq!(
        Vec::<u8>::bytes(word.as_bytes(), &mut buffer).as_ptr(),
        word.as_ptr()
    );
    assert_eq!(buffer.capacity(), 0);

    let scratch = Scratch::new();
    let record = encode::<(String, Vec<u8>)>(("word", b"bytes"), true);
    let (text, bytes) =
        <(String, Vec<u8>)>::decode_whole(&record, &scratch).expect("it was encoded");
    assert_eq!(text.as_ptr(), record.as_ptr());
    assert_eq!(bytes.as_ptr(), record[6..].as_ptr());
    assert_eq!(scratch.allocated_bytes(), 0);
}

#[test]
fn borrowed_key_outlives_its_buffer() {
    fn emit<K: Key>(key: K::Ref<'_>) -> usize {
        let mut buffer = Vec::new();
        K::bytes(key, &mut buffer).len()
    }
    assert_eq!(emit::<(String, u64)>(("ann", 1)), 13);
}

#[test]
fn decode_error_names_expected_value_and_offset() {
    assert_eq!(
        error::<u64>(b"1234567"),
        "expected a u64 (8 bytes) at byte 7 of the encoding"
    );
    assert_eq!(
        error::<u64>(b"123456789"),
        "expected the end at byte 8 of the encoding"
    );
    assert_eq!(
        error::<bool>(&[2]),
        "expected a bool (0 or 1) at byte 0 of the encoding"
    );
    assert_eq!(
        error::<(u8, Option<bool>)>(&[0, 3]),
        "expected the tag of an Option (0 or 1) at byte 1 of the encoding"
    );
    assert_eq!(
        error::<(u8, Option<bool>)>(&[0, 1, 9]),
        "expected a bool (0 or 1) at byte 2 of the encoding"
    );
    assert_eq!(
        error::<String>(b"ab\xFF"),
        "expected UTF-8 text at byte 2 of the encoding"
    );
    assert_eq!(
        error::<(String, u8)>(b"a\0\xFF\xC0\0\0\x01"),
        "expected UTF-8 text at byte 3 of the encoding"
    );
    let no_end = "expected the end of a byte string (00 00) at byte";
    assert_eq!(
        error::<(String, u8)>(b"abc"),
        format!("{no_end} 3 of the encoding")
    );
    assert_eq!(
        error::<(String, u8)>(b"a\0b"),
        format!("{no_end} 2 of the encoding")
    );
    assert_eq!(
        error::<(u8, Reverse<(String, u8)>)>(&[1, !b'a', 0xFF]),
        format!("{no_end} 3 of the encoding")
    );
    assert_eq!(
        error::<[u8; 4]>(b"abc"),
        "expected 4 bytes at byte 3 of the encoding"
    );
}

#[test]
fn group_is_decodable_prefix() {
    type Visit = (String, u32, bool);
    let scratch = Scratch::new();
    let key = encode::<Visit>(("an\0n", 7, true), true);

    let by_user: fn(&[u8]) -> usize = <Visit as GroupBy<String>>::prefix_length;
    let prefix = &key[..by_user(&key)];
    assert_eq!(prefix, b"an\0\xFFn\0\0");
    assert_eq!(
        <Visit as GroupBy<String>>::decode_group(prefix, &scratch),
        Ok("an\0n")
    );

    let by_both: fn(&[u8]) -> usize = <Visit as GroupBy<(String, u32)>>::prefix_length;
    let prefix = &key[..by_both(&key)];
    assert_eq!(
        <Visit as GroupBy<(String, u32)>>::decode_group(prefix, &scratch),
        Ok(("an\0n", 7))
    );
    assert_eq!(prefix.len(), key.len() - 1);

    assert_eq!(
        by_user(b"no end"),
        6,
        "what is no key is a group of its own"
    );
    let left_over = <Visit as GroupBy<String>>::decode_group(&key, &scratch);
    assert_eq!(left_over, Err(DecodeError::new("the end", 7)));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Page {
    rank: f64,
    links: Vec<String>,
}

#[test]
fn serde_value_works_in_any_position() {
    let page = Page {
        rank: 0.25,
        links: vec!["a".into(), "b".into()],
    };
    let alone = encode::<Serde<Page>>(page.clone(), true);
    assert_eq!(
        Serde::<Page>::decode_owned(&alone).expect("it was encoded"),
        page
    );

    let pair = encode::<(Serde<Page>, String)>((page.clone(), "rest"), true);
    assert_eq!(
        <(Serde<Page>, String)>::decode_owned(&pair).expect("it was encoded"),
        (page, "rest".to_owned())
    );
    assert_eq!(pair.len(), 4 + alone.len() + 4);

    for cut in 0..alone.len() {
        let message = error::<Serde<Page>>(&alone[..cut]);
        assert!(message.starts_with("expected a Page ("), "{message}");
    }
    assert_eq!(
        error::<(Serde<Page>, u8)>(&[0, 0, 1, 0, 5]),
        "expected 256 bytes at byte 5 of the encoding"
    );
}

#[test]
fn unserializable_type_panics_with_name() {
    #[derive(Deserialize)]
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let panic = std::panic::catch_unwind(|| encode::<Serde<Refuses>>(Refuses, true))
        .expect_err("it refuses");
    let message = panic.downcast_ref::<String>().expect("a formatted message");
    assert!(
        message.contains("a value of type Refuses cannot be written: no"),
        "{message}"
    );
}
