//! The three 100-byte record layouts of the sort benchmark.

use super::{RECORD_BYTES, TeraRandom};
use std::fmt;

/// Two base-95 digits, least significant first, as printable characters: `BASE95_PAIRS[v] = [' ' + v % 95, '
/// ' + v / 95]`.
static BASE95_PAIRS: [[u8; 2]; 9025] = {
    let mut pairs = [[0; 2]; 9025];
    let mut value = 0;
    while value < 9025 {
        pairs[value] = [b' ' + (value % 95) as u8, b' ' + (value / 95) as u8];
        value += 1;
    }
    pairs
};

const HEX_DIGITS: [u8; 16] = *b"0123456789ABCDEF";

/// Two hex digits of a byte.
static HEX_PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [HEX_DIGITS[byte >> 4], HEX_DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Two hex digits of a byte, each repeated four times: the benchmark's filler.
static HEX_FILLER: [[u8; 8]; 256] = {
    let mut filler = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let high = HEX_DIGITS[byte >> 4];
        let low = HEX_DIGITS[byte & 15];
        filler[byte] = [high, high, high, high, low, low, low, low];
        byte += 1;
    }
    filler
};

/// Number of 10-byte parts of a gensort 1.5 record.
const TENTHS: usize = 10;

/// Masks of gensort 1.5, one per tenth of a record, each in the top 10 bytes of a number. The first is zero:
/// the key is the unmasked number.
const GENSORT_MASKS: [u128; TENTHS] = [
    0,
    0xF0E8_E4E2_E1D8_D4D2_D1CC_0000_0000_0000,
    0xCAC9_C6C5_C3B8_B4B2_B1AC_0000_0000_0000,
    0xAAA9_A6A5_A39C_9A99_9695_0000_0000_0000,
    0x938E_8D8B_8778_7472_716C_0000_0000_0000,
    0x6A69_6665_635C_5A59_5655_0000_0000_0000,
    0x534E_4D4B_473C_3A39_3635_0000_0000_0000,
    0x332E_2D2B_271E_1D1B_170F_0000_0000_0000,
    0xC8C4_C2C1_9894_9291_8CE0_0000_0000_0000,
    0x170F_332E_2D2B_271E_1D1B_0000_0000_0000,
];

/// Layout of a 100-byte record. All three start with a 10-byte key compared as unsigned bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// gensort `-a`: printable characters, each record a line that ends in CR LF.
    #[default]
    Ascii,
    /// Hadoop's TeraGen: a binary key, then a readable number and filler.
    Hadoop,
    /// gensort 1.5 binary: every byte is random, so it does not compress.
    Gensort,
}

impl Format {
    /// All formats, in the order of help texts.
    pub const ALL: [Format; 3] = [Format::Ascii, Format::Hadoop, Format::Gensort];

    /// Name on command lines: `ascii`, `hadoop` or `gensort`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ascii => "ascii",
            Format::Hadoop => "hadoop",
            Format::Gensort => "gensort",
        }
    }

    /// Returns whether the fixed bytes of this format are in place.
    ///
    /// gensort's binary records have no fixed bytes, so every record matches.
    pub fn matches(self, record: &[u8; RECORD_BYTES]) -> bool {
        match self {
            Format::Ascii => {
                record[10..12] == *b"  " && record[44..46] == *b"  " && record[98..100] == *b"\r\n"
            }
            Format::Hadoop => {
                record[10..12] == HADOOP_AFTER_KEY
                    && record[44..48] == HADOOP_AFTER_NUMBER
                    && record[96..100] == HADOOP_END
            }
            Format::Gensort => true,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

const HADOOP_AFTER_KEY: [u8; 2] = [0x00, 0x11];
const HADOOP_AFTER_NUMBER: [u8; 4] = [0x88, 0x99, 0xAA, 0xBB];
const HADOOP_END: [u8; 4] = [0xCC, 0xDD, 0xEE, 0xFF];

/// Writes record `number` (from 0) into `record`.
///
/// Each call finds its position in the random sequence; use [`write_records`] for consecutive records.
pub fn write_record(format: Format, number: u64, record: &mut [u8; RECORD_BYTES]) {
    write_records(format, number, record);
}

/// Fills `buffer` with consecutive records, starting with number `first`.
///
/// # Panics
///
/// Panics when the length of `buffer` is not a multiple of [`RECORD_BYTES`], or a number exceeds `u64::MAX`.
pub fn write_records(format: Format, first: u64, buffer: &mut [u8]) {
    let (records, rest) = buffer.as_chunks_mut::<RECORD_BYTES>();
    assert!(
        rest.is_empty(),
        "the buffer must hold whole records of {RECORD_BYTES} bytes"
    );
    assert!(
        first.checked_add(records.len() as u64).is_some(),
        "record numbers must not exceed u64::MAX"
    );
    let mut random = TeraRandom::new();
    random.jump(first);
    // The format is chosen once per buffer to keep branches out of the loops.
    match format {
        Format::Ascii => {
            for (number, record) in (first..).zip(records) {
                write_ascii(number, random.advance(), record);
            }
        }
        Format::Hadoop => {
            for (number, record) in (first..).zip(records) {
                write_hadoop(number, random.advance(), record);
            }
        }
        Format::Gensort => write_gensort(random, records),
    }
}

#[inline(always)]
fn write_ascii(number: u64, random: u128, record: &mut [u8; RECORD_BYTES]) {
    // Eight digits of the high half and two of the low half, two at a time. Dividing by 95^4 first makes the
    // divisions independent of each other.
    let high = (random >> 64) as u64;
    let low_digits = (high % 81_450_625) as u32;
    let high_digits = (high / 81_450_625 % 81_450_625) as u32;
    record[0..2].copy_from_slice(&BASE95_PAIRS[(low_digits % 9025) as usize]);
    record[2..4].copy_from_slice(&BASE95_PAIRS[(low_digits / 9025) as usize]);
    record[4..6].copy_from_slice(&BASE95_PAIRS[(high_digits % 9025) as usize]);
    record[6..8].copy_from_slice(&BASE95_PAIRS[(high_digits / 9025) as usize]);
    record[8..10].copy_from_slice(&BASE95_PAIRS[(random as u64 % 9025) as usize]);
    record[10..12].copy_from_slice(b"  ");
    write_number(number, &mut record[12..44]);
    record[44..46].copy_from_slice(b"  ");
    record[46..50].fill(HEX_DIGITS[(random >> 48 & 15) as usize]);
    write_filler(random, &mut record[50..98]);
    record[98..100].copy_from_slice(b"\r\n");
}

#[inline(always)]
fn write_hadoop(number: u64, random: u128, record: &mut [u8; RECORD_BYTES]) {
    record[0..10].copy_from_slice(&random.to_be_bytes()[..10]);
    record[10..12].copy_from_slice(&HADOOP_AFTER_KEY);
    write_number(number, &mut record[12..44]);
    record[44..48].copy_from_slice(&HADOOP_AFTER_NUMBER);
    write_filler(random, &mut record[48..96]);
    record[96..100].copy_from_slice(&HADOOP_END);
}

/// Records made together, so that the nine keys shared with the next record are computed once.
const GENSORT_BATCH: usize = 32;

/// Writes records without numbers: tenth `i` is the key of the `i`-th following record under a mask.
fn write_gensort(mut random: TeraRandom, records: &mut [[u8; RECORD_BYTES]]) {
    let mut keys = [0; GENSORT_BATCH + TENTHS - 1];
    for batch in records.chunks_mut(GENSORT_BATCH) {
        let mut ahead = random;
        for key in &mut keys[..batch.len() + TENTHS - 1] {
            *key = ahead.advance();
        }
        random.jump(batch.len() as u64);
        for (record, keys) in batch.iter_mut().zip(keys.windows(TENTHS)) {
            // Whole numbers are stored; the next tenth overwrites the six excess bytes.
            for tenth in 0..TENTHS - 1 {
                let masked = keys[tenth] ^ GENSORT_MASKS[tenth];
                record[10 * tenth..10 * tenth + 16].copy_from_slice(&masked.to_be_bytes());
            }
            let masked = keys[TENTHS - 1] ^ GENSORT_MASKS[TENTHS - 1];
            record[90..100].copy_from_slice(&masked.to_be_bytes()[..10]);
        }
    }
}

/// Writes the record number as 32 hex digits; for a `u64`, the first 16 are zero.
#[inline(always)]
fn write_number(number: u64, digits: &mut [u8]) {
    digits[..16].fill(b'0');
    for (index, byte) in number.to_be_bytes().into_iter().enumerate() {
        digits[16 + 2 * index..18 + 2 * index].copy_from_slice(&HEX_PAIRS[usize::from(byte)]);
    }
}

/// Writes the last 12 hex digits of the random number, each four times.
#[inline(always)]
fn write_filler(random: u128, filler: &mut [u8]) {
    let bytes = random.to_be_bytes();
    for (index, byte) in bytes[10..].iter().enumerate() {
        filler[8 * index..8 * index + 8].copy_from_slice(&HEX_FILLER[usize::from(*byte)]);
    }
}
