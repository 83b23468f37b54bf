//! Fixed-length encodings of integers, floats, `bool`, `char` and `()`: big-endian, with the sign bit flipped
//! so that negative numbers come first.

use super::{DecodeError, Key, Scratch, Value, measure_fixed};

/// Implements a value that is its own reference and owned form and takes `$length` bytes, with `$write` and
/// `$read`.
macro_rules! plain_value {
    ($type:ty, $length:expr, $expected:expr, $write:expr, $read:expr) => {
        impl Value for $type {
            type Ref<'a> = $type;
            type Owned = $type;
            const FIXED: Option<usize> = Some($length);

            #[inline]
            fn encode(value: $type, _: bool, out: &mut Vec<u8>) {
                let bytes: [u8; $length] = $write(value);
                out.extend_from_slice(&bytes);
            }

            #[inline]
            fn encode_owned(owned: &$type, last: bool, out: &mut Vec<u8>) {
                Self::encode(*owned, last, out);
            }

            #[inline]
            fn decode<'a>(
                input: &mut &'a [u8],
                _: bool,
                _: &'a Scratch,
            ) -> Result<$type, DecodeError> {
                match input.split_first_chunk::<{ $length }>() {
                    Some((bytes, rest)) => {
                        *input = rest;
                        let read: Option<$type> = $read(*bytes);
                        read.ok_or_else(|| DecodeError::new($expected, 0))
                    }
                    None => Err(DecodeError::new($expected, input.len())),
                }
            }

            #[inline]
            fn measure(bytes: &[u8], _: bool, _: u8) -> Result<usize, DecodeError> {
                measure_fixed(bytes, $length, $expected)
            }

            #[inline]
            fn to_owned(value: $type) -> $type {
                value
            }
        }
    };
}

/// Implements such a value that is a key with the same encoding.
macro_rules! plain_key {
    ($type:ty, $length:expr, $expected:expr, $write:expr, $read:expr) => {
        plain_value!($type, $length, $expected, $write, $read);

        impl Key for $type {}
    };
}

macro_rules! unsigned_keys {
    ($($type:ty: $expected:literal),*) => {$(
        plain_key!($type, size_of::<$type>(), $expected, <$type>::to_be_bytes, |bytes| Some(<$type>::from_be_bytes(bytes)));
    )*};
}

macro_rules! signed_keys {
    ($($type:ty: $expected:literal),*) => {$(
        plain_key!(
            $type,
            size_of::<$type>(),
            $expected,
            |value: $type| (value ^ <$type>::MIN).to_be_bytes(),
            |bytes| Some(<$type>::from_be_bytes(bytes) ^ <$type>::MIN)
        );
    )*};
}

/// Negative floats have all bits flipped, so that larger magnitudes come first; others only the sign bit.
macro_rules! float_keys {
    ($($type:ty, $bits:ty, $signed:ty: $expected:literal),*) => {$(
        plain_value!(
            $type,
            size_of::<$type>(),
            $expected,
            |value: $type| {
                // One encoding for every NaN, after all numbers.
                let bits = if value.is_nan() { <$type>::NAN.abs().to_bits() } else { value.to_bits() };
                let negative = ((bits as $signed) >> (<$bits>::BITS - 1)) as $bits;
                (bits ^ (negative | 1 << (<$bits>::BITS - 1))).to_be_bytes()
            },
            |bytes| {
                let bits = <$bits>::from_be_bytes(bytes);
                let positive = ((bits as $signed) >> (<$bits>::BITS - 1)) as $bits;
                Some(<$type>::from_bits(bits ^ (!positive | 1 << (<$bits>::BITS - 1))))
            }
        );

        impl Key for $type {
            #[inline]
            fn encode_key(key: $type, last: bool, out: &mut Vec<u8>) {
                // −0 + 0 is 0; any other number stays as it is.
                Self::encode(key + 0.0, last, out);
            }
        }
    )*};
}

unsigned_keys!(
    u8: "a u8 (1 byte)",
    u16: "a u16 (2 bytes)",
    u32: "a u32 (4 bytes)",
    u64: "a u64 (8 bytes)",
    u128: "a u128 (16 bytes)"
);
signed_keys!(
    i8: "an i8 (1 byte)",
    i16: "an i16 (2 bytes)",
    i32: "an i32 (4 bytes)",
    i64: "an i64 (8 bytes)",
    i128: "an i128 (16 bytes)"
);
float_keys!(f32, u32, i32: "an f32 (4 bytes)", f64, u64, i64: "an f64 (8 bytes)");

// Always 64 bits, so that a file does not depend on the machine that wrote it.
plain_key!(
    usize,
    8,
    "a usize (8 bytes)",
    |value: usize| (value as u64).to_be_bytes(),
    |bytes| { usize::try_from(u64::from_be_bytes(bytes)).ok() }
);
plain_key!(
    isize,
    8,
    "an isize (8 bytes)",
    |value: isize| (value as i64 ^ i64::MIN).to_be_bytes(),
    |bytes| { isize::try_from(i64::from_be_bytes(bytes) ^ i64::MIN).ok() }
);
plain_key!(
    bool,
    1,
    "a bool (0 or 1)",
    |value: bool| [u8::from(value)],
    |[byte]: [u8; 1]| match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
);
plain_key!(
    char,
    4,
    "a char (4 bytes, a Unicode scalar value)",
    |value: char| u32::from(value).to_be_bytes(),
    |bytes| { char::from_u32(u32::from_be_bytes(bytes)) }
);
plain_key!((), 0, "nothing", |()| [], |[]: [u8; 0]| Some(()));
