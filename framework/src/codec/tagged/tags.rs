//! The bytes that begin a value, and integers of variable length.

/// Ends the items of a sequence, tuple, map or struct.
pub(super) const END: u8 = 0;
pub(super) const NONE: u8 = 1;
pub(super) const SOME: u8 = 2;
pub(super) const UNIT: u8 = 3;
pub(super) const FALSE: u8 = 4;
pub(super) const TRUE: u8 = 5;
pub(super) const U8: u8 = 6;
pub(super) const U16: u8 = 7;
pub(super) const U32: u8 = 8;
pub(super) const U64: u8 = 9;
pub(super) const U128: u8 = 10;
pub(super) const I8: u8 = 11;
pub(super) const I16: u8 = 12;
pub(super) const I32: u8 = 13;
pub(super) const I64: u8 = 14;
pub(super) const I128: u8 = 15;
pub(super) const F32: u8 = 16;
pub(super) const F64: u8 = 17;
pub(super) const CHAR: u8 = 18;
pub(super) const STR: u8 = 19;
pub(super) const BYTES: u8 = 20;
pub(super) const SEQ: u8 = 21;
pub(super) const TUPLE: u8 = 22;
pub(super) const MAP: u8 = 23;
pub(super) const STRUCT: u8 = 24;
pub(super) const UNIT_VARIANT: u8 = 25;
pub(super) const VARIANT: u8 = 26;
/// This bit and a `u8` below 128 are that number, so that a list of small bytes has one byte for each.
pub(super) const SMALL_U8: u8 = 0x80;

/// Appends an integer, seven bits in a byte, the lowest first.
#[inline]
pub(super) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maps small numbers of either sign to small unsigned ones.
#[inline]
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Reverses [`zigzag`].
#[inline]
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
