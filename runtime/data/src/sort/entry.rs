//! The layout of a sort entry's 128 bits, chosen per task so that it holds as many key bytes as possible:
//!
//! ```text
//! high                                                                       low
//! partition | first bytes of the key, padded | min(length, bytes + 1) | locator
//! ```
//!
//! The length code sorts a key before one that only adds zero bytes, and shows whether the entry holds the
//! whole key: two entries of whole keys that differ only in their locators have equal keys. Fixed-length keys
//! need no length code.

use crate::key;
use crate::record::RecordEncoding;

const LEN_BITS: u32 = 4;
/// The longest prefix for which the length code also has a value for longer keys.
const PREFIX_BYTES_MAX: u32 = (1 << LEN_BITS) - 2;

#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryLayout {
    pub(crate) encoding: RecordEncoding,
    /// Width of the partition number; 0 for a single partition.
    partition_bits: u32,
    prefix_bytes: u32,
    len_bits: u32,
    locator_bits: u32,
    locator_mask: u128,
}

impl EntryLayout {
    /// Computes the layout for records at offsets below `arena_len`.
    pub(crate) fn new(partitions: u32, encoding: RecordEncoding, arena_len: usize) -> EntryLayout {
        let partition_bits = 32 - (partitions - 1).leading_zeros();
        let locator_bits = usize::BITS - arena_len.leading_zeros();
        let free = u128::BITS - partition_bits - locator_bits;
        let (len_bits, prefix_bytes) = match encoding {
            RecordEncoding::Fixed { key, .. } => (0, (free / 8).min(key)),
            RecordEncoding::Variable => (LEN_BITS, ((free - LEN_BITS) / 8).min(PREFIX_BYTES_MAX)),
        };
        let locator_mask = (1 << locator_bits) - 1;
        EntryLayout {
            encoding,
            partition_bits,
            prefix_bytes,
            len_bits,
            locator_bits,
            locator_mask,
        }
    }

    /// Returns how many bytes of a key an entry holds.
    pub(crate) fn prefix_bytes(self) -> usize {
        self.prefix_bytes as usize
    }

    /// Builds the entry of a record in `partition` at offset `locator`, whose key has `head` and `len` bytes.
    #[inline(always)]
    pub(crate) fn entry(self, partition: u32, head: u128, len: usize, locator: usize) -> u128 {
        let key = self.key_bits(head, len);
        let low = key << self.locator_bits | locator as u128;
        // Two shifts, because without partition bits one shift would be by the full width.
        u128::from(partition) << (127 - self.partition_bits) << 1 | low
    }

    /// Returns the entry with its key bits replaced by the first bytes of `rest`.
    pub(crate) fn rekeyed(self, entry: u128, rest: &[u8]) -> u128 {
        let key_bits = self.prefix_bytes * 8 + self.len_bits;
        let key_mask = ((1u128 << key_bits) - 1) << self.locator_bits;
        entry & !key_mask | self.key_bits(key::head(rest), rest.len()) << self.locator_bits
    }

    #[inline(always)]
    fn key_bits(self, head: u128, len: usize) -> u128 {
        // Two shifts, because without prefix bytes one shift would be by the full width.
        let prefix = head >> 1 >> (127 - 8 * self.prefix_bytes);
        match self.encoding {
            RecordEncoding::Fixed { .. } => prefix,
            RecordEncoding::Variable => {
                prefix << LEN_BITS | len.min(self.prefix_bytes as usize + 1) as u128
            }
        }
    }

    #[inline(always)]
    pub(crate) fn partition(self, entry: u128) -> u32 {
        (entry >> 1 >> (127 - self.partition_bits)) as u32
    }

    #[inline(always)]
    pub(crate) fn locator(self, entry: u128) -> usize {
        (entry & self.locator_mask) as usize
    }

    #[inline(always)]
    pub(crate) fn without_locator(self, entry: u128) -> u128 {
        entry >> self.locator_bits
    }

    /// Whether the entry holds only a prefix of the key, so that equal entries may have different keys.
    #[inline(always)]
    pub(crate) fn is_truncated(self, entry: u128) -> bool {
        match self.encoding {
            RecordEncoding::Fixed { key, .. } => key > self.prefix_bytes,
            RecordEncoding::Variable => {
                let code = self.without_locator(entry) & ((1 << LEN_BITS) - 1);
                code > u128::from(self.prefix_bytes)
            }
        }
    }
}
