//! Properties of every built-in key family: encoded keys sort as the Rust values do.

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

use napreduce::codec::{Bytes, Scratch};
use napreduce::{Key, Value};
use proptest::collection::vec;
use proptest::prelude::*;

/// Both encodings of a key: alone and followed by other data.
struct Encoded {
    last: Vec<u8>,
    inner: Vec<u8>,
}

fn encoded<K: Key>(owned: &K::Owned) -> Encoded {
    Encoded {
        last: key_of::<K>(owned, true),
        inner: key_of::<K>(owned, false),
    }
}

/// Returns the encoding of a key, by way of that as a value.
fn key_of<K: Key>(owned: &K::Owned, last: bool) -> Vec<u8> {
    let mut value = Vec::new();
    K::encode_owned(owned, true, &mut value);
    let scratch = Scratch::new();
    let decoded = K::decode_whole(&value, &scratch).expect("it was encoded");
    let mut key = Vec::new();
    K::encode_key(decoded, last, &mut key);
    key
}

/// Encoded bytes compare as the values do, and no self-terminating encoding is a prefix of another.
fn check_order(left: &Encoded, right: &Encoded, order: Ordering) {
    assert_eq!(
        left.last.cmp(&right.last),
        order,
        "{:?} and {:?}",
        left.last,
        right.last
    );
    assert_eq!(
        left.inner.cmp(&right.inner),
        order,
        "{:?} and {:?}",
        left.inner,
        right.inner
    );
    if order.is_ne() {
        assert!(!left.inner.starts_with(&right.inner) && !right.inner.starts_with(&left.inner));
    }
}

/// A key is decoded correctly when other bytes follow, and encodes to the same bytes again.
fn check_again<K: Key>(owned: &K::Owned, tail: &[u8])
where
    K::Owned: Debug,
{
    let Encoded { last, inner } = encoded::<K>(owned);
    let scratch = Scratch::new();
    let mut buffer = vec![7; 3];
    let value = K::decode_whole(&last, &scratch).expect("it was encoded");
    assert_eq!(K::bytes(value, &mut buffer), last);
    let value = K::decode_whole(&last, &scratch).expect("it was encoded");
    assert_eq!(K::key_bytes(value, &mut buffer), last);

    let followed = [&inner, tail].concat();
    let mut rest = followed.as_slice();
    let value = K::decode(&mut rest, false, &scratch).expect("it was encoded");
    assert_eq!(rest, tail);
    let mut again = Vec::new();
    K::encode(value, false, &mut again);
    assert_eq!(again, inner);

    assert_eq!(K::skip(&followed, false), Ok(inner.len()));
    assert_eq!(K::skip(&last, true), Ok(last.len()));
    let flipped: Vec<u8> = followed.iter().map(|byte| !byte).collect();
    assert_eq!(K::measure(&flipped, false, 0xFF), Ok(inner.len()));
    if let Some(length) = K::FIXED {
        assert_eq!((last.len(), inner.len()), (length, length));
    }
    for cut in 0..inner.len() {
        assert!(
            K::skip(&inner[..cut], false).is_err(),
            "{owned:?} has an end after {cut} bytes already"
        );
    }
}

/// Arbitrary bytes decode to a value, or to an error with a position inside them.
fn check_foreign<V: Value>(bytes: &[u8], last: bool) {
    let scratch = Scratch::new();
    let mut rest = bytes;
    match V::decode(&mut rest, last, &scratch) {
        Ok(_) => {
            assert!(V::skip(bytes, last).is_ok_and(|length| length == bytes.len() - rest.len()))
        }
        Err(error) => assert!(error.at() <= bytes.len() && !error.expected().is_empty()),
    }
    match V::skip(bytes, last) {
        Ok(length) => assert!(length <= bytes.len()),
        Err(error) => assert!(error.at() <= bytes.len()),
    }
}

fn check_ordered<K: Key>(left: K::Owned, right: K::Owned, tail: &[u8])
where
    K::Owned: Ord + Debug,
{
    check_order(
        &encoded::<K>(&left),
        &encoded::<K>(&right),
        left.cmp(&right),
    );
    check_again::<K>(&left, tail);
    check_foreign::<K>(tail, false);
    check_foreign::<K>(tail, true);
    assert_eq!(K::decode_owned(&encoded::<K>(&left).last), Ok(left));
}

/// Bytes that often coincide with escape bytes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(vec![0, 1, 2, b'a', 0xFE, 0xFF]), 0..6)
}

fn text() -> impl Strategy<Value = String> {
    "[\u{0}\u{1}a\u{7f}é\u{ffff}]{0,5}"
}

macro_rules! key_properties {
    ($($name:ident: $key:ty = $values:expr;)*) => {
        proptest! {$(
            #[test]
            fn $name(left in $values, right in $values, tail in bytes()) {
                check_ordered::<$key>(left, right, &tail);
            }
        )*}
    };
}

key_properties! {
    order_of_u8: u8 = any::<u8>();
    order_of_u16: u16 = any::<u16>();
    order_of_u32: u32 = any::<u32>();
    order_of_u64: u64 = any::<u64>();
    order_of_u128: u128 = any::<u128>();
    order_of_usize: usize = any::<usize>();
    order_of_i8: i8 = any::<i8>();
    order_of_i16: i16 = any::<i16>();
    order_of_i32: i32 = any::<i32>();
    order_of_i64: i64 = any::<i64>();
    order_of_i128: i128 = any::<i128>();
    order_of_isize: isize = any::<isize>();
    order_of_bool: bool = any::<bool>();
    order_of_char: char = any::<char>();
    order_of_unit: () = Just(());
    order_of_text: String = text();
    order_of_borrowed_text: &'static str = text();
    order_of_any_text: String = any::<String>();
    order_of_bytes: Vec<u8> = bytes();
    order_of_borrowed_bytes: &'static [u8] = bytes();
    order_of_arrays: [u8; 3] = any::<[u8; 3]>();
    order_of_arrays_by_reference: Bytes<3> = any::<[u8; 3]>();
    order_of_borrowed_arrays: &'static [u8; 3] = any::<[u8; 3]>();
    order_of_empty_arrays: [u8; 0] = any::<[u8; 0]>();
    order_of_options: Option<String> = prop::option::of(text());
    order_of_nested_options: Option<Option<i8>> = prop::option::of(prop::option::of(any::<i8>()));
    order_of_reverse_numbers: Reverse<i32> = any::<i32>().prop_map(Reverse);
    order_of_reverse_text: Reverse<String> = text().prop_map(Reverse);
    order_of_reverse_twice: Reverse<Reverse<String>> = text().prop_map(|text| Reverse(Reverse(text)));
    order_of_reverse_options: Reverse<Option<String>> = prop::option::of(text()).prop_map(Reverse);
    order_of_one: (String,) = (text(),);
    order_of_pairs: (String, u8) = (text(), any::<u8>());
    order_of_text_pairs: (String, String) = (text(), text());
    order_of_triples: (Vec<u8>, Option<String>, String) = (bytes(), prop::option::of(text()), text());
    order_of_mixed_directions: (String, Reverse<(String, u8)>, String) =
        (text(), (text(), any::<u8>()).prop_map(Reverse), text());
    order_of_nested_tuples: ((String, String), (u8, (Vec<u8>, bool))) =
        ((text(), text()), (any::<u8>(), (bytes(), any::<bool>())));
    order_of_fours: (u8, bool, (), String) = (any::<u8>(), any::<bool>(), Just(()), text());
    order_of_fives: (bool, bool, u8, i8, Reverse<bool>) =
        (any::<bool>(), any::<bool>(), any::<u8>(), any::<i8>(), any::<bool>().prop_map(Reverse));
    order_of_sixes: (bool, String, bool, bool, Vec<u8>, u8) =
        (any::<bool>(), text(), any::<bool>(), any::<bool>(), bytes(), any::<u8>());
}

/// The order of float keys: both zeros are equal, and all NaN are equal and last.
macro_rules! float_properties {
    ($name:ident, $type:ty, $bits:ty) => {
        proptest! {
            #[test]
            fn $name(left in any::<$bits>(), right in any::<$bits>(), tail in bytes()) {
                let special = |bits: $bits| match bits % 8 {
                    0 => <$type>::NAN,
                    1 => -<$type>::NAN,
                    2 => 0.0,
                    3 => -0.0,
                    4 => <$type>::NEG_INFINITY,
                    5 => <$type>::INFINITY,
                    _ => <$type>::from_bits(bits),
                };
                let left = special(left);
                let right = special(right);
                let order = left.partial_cmp(&right).unwrap_or(left.is_nan().cmp(&right.is_nan()));
                let reversed = Reverse(left);
                check_order(&encoded::<$type>(&left), &encoded::<$type>(&right), order);
                check_order(&encoded::<Reverse<$type>>(&reversed), &encoded::<Reverse<$type>>(&Reverse(right)), order.reverse());
                check_again::<$type>(&left, &tail);
                check_again::<Option<Reverse<$type>>>(&Some(reversed), &tail);
                let again = <$type>::decode_owned(&encoded::<$type>(&left).last).expect("it was encoded");
                prop_assert!(again == left || again.is_nan() && left.is_nan());
                let mut value = Vec::new();
                <(Option<$type>, $type)>::encode((Some(left), left), true, &mut value);
                let (first, second) = <(Option<$type>, $type)>::decode_owned(&value).expect("it was encoded");
                for kept in [first.expect("it is some"), second] {
                    prop_assert!(kept.to_bits() == left.to_bits() || kept.is_nan() && left.is_nan());
                }
            }
        }
    };
}

float_properties!(order_of_f32, f32, u32);
float_properties!(order_of_f64, f64, u64);
