//! The order-independent checksum of a set of records.
//!
//! Owns the sum of the records' CRC-32 that the sort benchmark's tools print. Does not own reading or
//! comparing records.

use std::fmt;
use std::ops::AddAssign;

/// The sum of the CRC-32 (zlib's) of every record, in 128 bits, printed as hex without leading zeros.
///
/// Two sets of records with the same checksum are, for practical purposes, permutations of one another.
///
/// ```
/// let mut checksum = datagen::tera::Checksum::default();
/// checksum.add_record(b"123456789");
/// assert_eq!(checksum.to_string(), "cbf43926");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(pub u128);

impl Checksum {
    #[inline]
    pub fn add_record(&mut self, record: &[u8]) {
        self.0 = self.0.wrapping_add(u128::from(crc32fast::hash(record)));
    }
}

impl AddAssign for Checksum {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}", self.0)
    }
}
