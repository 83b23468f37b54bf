//! Integers as values, which the framework combines instead of the program. They are encoded in 8 bytes as an
//! `i64` or in 16 as an `i128`.

use super::hello::Combine;
use crate::codec::{DecodeError, Scratch, Value};

const EXPECTED: &str = "an integer of 8 or 16 bytes";

/// The family of these values. They are the last field of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number;

impl Value for Number {
    type Ref<'a> = i128;
    type Owned = i128;
    const FIXED: Option<usize> = None;

    #[inline]
    fn encode(value: i128, last: bool, out: &mut Vec<u8>) {
        match i64::try_from(value) {
            Ok(short) if last => i64::encode(short, last, out),
            _ => i128::encode(value, last, out),
        }
    }

    #[inline]
    fn encode_owned(owned: &i128, last: bool, out: &mut Vec<u8>) {
        Number::encode(*owned, last, out);
    }

    #[inline]
    fn decode<'a>(
        input: &mut &'a [u8],
        last: bool,
        scratch: &'a Scratch,
    ) -> Result<i128, DecodeError> {
        match input.len() {
            8 if last => i64::decode(input, last, scratch).map(i128::from),
            16.. => i128::decode(input, last, scratch),
            length => Err(DecodeError::new(EXPECTED, length)),
        }
    }

    fn measure(bytes: &[u8], last: bool, _: u8) -> Result<usize, DecodeError> {
        match bytes.len() {
            8 if last => Ok(8),
            16.. => Ok(16),
            length => Err(DecodeError::new(EXPECTED, length)),
        }
    }

    #[inline]
    fn to_owned(value: i128) -> i128 {
        value
    }
}

/// Combines `more` into `total`.
#[inline]
pub(super) fn combine(how: Combine, total: &mut i128, more: i128) {
    *total = match how {
        // `combinable` accepts 64-bit summands only, and an overflow takes 2^64 of them.
        Combine::Sum => total
            .checked_add(more)
            .expect("a sum of fewer than 2^64 numbers of 64 bits"),
        Combine::Min => more.min(*total),
        Combine::Max => more.max(*total),
    };
}

/// Reads a number for a combiner. The error completes the sentence "the program sent ...".
#[inline]
pub(super) fn combinable(how: Combine, bytes: &[u8]) -> Result<i128, String> {
    let number = Number::decode_owned(bytes).map_err(|_| {
        format!(
            "a value of {} bytes to combine; expected {EXPECTED}",
            bytes.len()
        )
    })?;
    if how == Combine::Sum && i64::try_from(number).is_err() {
        return Err(format!(
            "{number} to add up, which exceeds 64 bits; combine such numbers in the program"
        ));
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: i128) -> Vec<u8> {
        let mut bytes = Vec::new();
        Number::encode(number, true, &mut bytes);
        bytes
    }

    #[test]
    fn numbers_round_trip_in_8_or_16_bytes() {
        for (number, length) in [
            (0, 8),
            (-1, 8),
            (i128::from(i64::MAX), 8),
            (i128::from(i64::MIN), 8),
            (i128::from(i64::MAX) + 1, 16),
            (i128::MIN, 16),
        ] {
            assert_eq!(bytes(number).len(), length, "{number}");
            assert_eq!(Number::decode_owned(&bytes(number)), Ok(number));
        }
        for wrong in [0, 1, 7, 9, 15, 17] {
            assert!(
                Number::decode_owned(&vec![0; wrong]).is_err(),
                "{wrong} bytes"
            );
        }
    }

    #[test]
    fn sum_may_exceed_64_bits() {
        let mut total = i128::from(i64::MAX);
        combine(Combine::Sum, &mut total, i128::from(i64::MAX));
        assert_eq!(total, 2 * i128::from(i64::MAX));
        assert_eq!(Number::decode_owned(&bytes(total)), Ok(total));
    }

    #[test]
    fn summand_over_64_bits_is_rejected() {
        let wide = bytes(i128::from(i64::MAX) + 1);
        let error = combinable(Combine::Sum, &wide).expect_err("it is too wide");
        assert!(
            error.starts_with("9223372036854775808 to add up"),
            "{error}"
        );
        assert_eq!(
            combinable(Combine::Max, &wide),
            Ok(i128::from(i64::MAX) + 1)
        );
        assert!(
            combinable(Combine::Min, b"7")
                .expect_err("it is text")
                .contains("a value of 1 bytes")
        );
    }

    #[test]
    fn min_and_max_keep_extremes() {
        let mut least = 3;
        let mut greatest = 3;
        for number in [5, -7, 3] {
            combine(Combine::Min, &mut least, number);
            combine(Combine::Max, &mut greatest, number);
        }
        assert_eq!((least, greatest), (-7, 5));
    }
}
