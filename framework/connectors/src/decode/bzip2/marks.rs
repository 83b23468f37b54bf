//! The bits of a bzip2 file: marks of blocks, and one block as a file.

use crate::bytes::{ReadError, StoredFile};

/// Bits of a mark.
pub(crate) const MARK_BITS: u64 = 48;
/// Bits of the checksum after each mark.
pub(crate) const CRC_BITS: u64 = 32;
const BLOCK_MARK: u64 = 0x3141_5926_5359;
const END_MARK: u64 = 0x1772_4538_5090;
const MASK: u64 = (1 << MARK_BITS) - 1;
const READ_BYTES: usize = 256 << 10;

/// The kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Block,
    /// The end of a stream.
    End,
}

/// A mark and its bit position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) bit: u64,
    pub(crate) kind: Kind,
}

/// For each value of a byte: the shifts (a bit each) at which a mark may end in a window of 64 bits.
const CANDIDATES: [u8; 256] = candidates();

const fn candidates() -> [u8; 256] {
    let mut table = [0; 256];
    let mut shift = 0;
    while shift < 8 {
        table[((BLOCK_MARK >> (16 - shift)) & 0xff) as usize] |= 1 << shift;
        table[((END_MARK >> (16 - shift)) & 0xff) as usize] |= 1 << shift;
        shift += 1;
    }
    table
}

/// A part of the file in memory.
pub(crate) struct Bits {
    file: StoredFile,
    bytes: Vec<u8>,
    /// Offset of `bytes` in the file.
    base: u64,
}

impl Bits {
    pub(crate) fn new(file: StoredFile) -> Self {
        let base = file.position();
        Bits {
            file,
            bytes: Vec::new(),
            base,
        }
    }

    /// Moves to `byte`, which lies in the file, and discards earlier bytes.
    pub(crate) fn go_to(&mut self, byte: u64) {
        match usize::try_from(byte.wrapping_sub(self.base)) {
            Ok(done) if byte >= self.base && done <= self.bytes.len() => {
                self.bytes.drain(..done);
            }
            _ => {
                self.bytes.clear();
                self.file.seek(byte);
            }
        }
        self.base = byte;
    }

    /// Returns the end of the bytes in memory.
    pub(crate) fn read_up_to(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Returns the length of the file.
    pub(crate) fn file_length(&self) -> u64 {
        self.file.length()
    }

    fn read_more(&mut self) -> Result<bool, ReadError> {
        let filled = self.bytes.len();
        let unread = self.file.length().saturating_sub(self.file.position());
        let wanted = unread.min(READ_BYTES as u64);
        self.bytes.resize(filled + wanted as usize, 0);
        let read = self.file.read(&mut self.bytes[filled..]);
        self.bytes
            .truncate(filled + read.as_ref().map_or(0, |read| *read));
        Ok(read? > 0)
    }

    /// Returns `wanted` bytes from `byte` on, or fewer at the end of the file.
    pub(crate) fn peek(&mut self, byte: u64, wanted: usize) -> Result<&[u8], ReadError> {
        while self.read_up_to() < byte + wanted as u64 && self.read_more()? {}
        let from = self.bytes.len().min((byte - self.base) as usize);
        Ok(&self.bytes[from..self.bytes.len().min(from + wanted)])
    }

    /// Returns `count` bits from `bit` on, at most 57; `None` at the end of the file.
    pub(crate) fn bits(&mut self, bit: u64, count: u64) -> Result<Option<u64>, ReadError> {
        let bytes = (bit % 8 + count).div_ceil(8) as usize;
        let found = self.peek(bit / 8, bytes)?;
        if found.len() < bytes {
            return Ok(None);
        }
        let all = found
            .iter()
            .fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
        Ok(Some(
            (all >> (bytes as u64 * 8 - bit % 8 - count)) & ((1 << count) - 1),
        ))
    }

    /// Returns the mark at this bit, if there is one.
    pub(crate) fn mark_at(&mut self, bit: u64) -> Result<Option<Mark>, ReadError> {
        Ok(match self.bits(bit, MARK_BITS)? {
            Some(BLOCK_MARK) => Some(Mark {
                bit,
                kind: Kind::Block,
            }),
            Some(END_MARK) => Some(Mark {
                bit,
                kind: Kind::End,
            }),
            _ => None,
        })
    }

    /// Returns the first mark that begins at `from` or later and before `until`.
    pub(crate) fn find(&mut self, from: u64, until: u64) -> Result<Option<Mark>, ReadError> {
        let mut at = from / 8;
        let mut window = 0u64;
        loop {
            let base = self.base;
            let start = (at - self.base) as usize;
            for (byte, index) in self
                .bytes
                .get(start..)
                .unwrap_or_default()
                .iter()
                .zip(start as u64..)
            {
                window = window << 8 | u64::from(*byte);
                let mut shifts = CANDIDATES[(window >> 16) as u8 as usize];
                // The earliest mark has the largest shift.
                while shifts != 0 {
                    let shift = 7 - u64::from(shifts.leading_zeros());
                    shifts &= !(1 << shift);
                    let kind = match (window >> shift) & MASK {
                        BLOCK_MARK => Kind::Block,
                        END_MARK => Kind::End,
                        _ => continue,
                    };
                    let Some(bit) = ((base + index + 1) * 8 - shift).checked_sub(MARK_BITS) else {
                        continue;
                    };
                    if bit >= until {
                        return Ok(None);
                    }
                    if bit >= from {
                        return Ok(Some(Mark { bit, kind }));
                    }
                }
            }
            at = self.read_up_to();
            if at * 8 >= until.saturating_add(MARK_BITS) || !self.read_more()? {
                return Ok(None);
            }
        }
    }

    /// Returns the block between two marks as a bzip2 file: a header, the block, and an end with the block's
    /// checksum.
    pub(crate) fn stand_alone(&mut self, block: u64, next: u64) -> Result<Vec<u8>, ReadError> {
        let crc = self.bits(block + MARK_BITS, CRC_BITS)?.unwrap_or_default();
        let first = block / 8;
        let shift = block % 8;
        let stored = self.peek(first, (next.div_ceil(8) - first) as usize)?;
        let mut file = b"BZh9".to_vec();
        file.reserve(stored.len() + 16);
        let length = next - block;
        let whole = (length / 8) as usize;
        let aligned = |at: usize| {
            let pair =
                u16::from(stored[at]) << 8 | u16::from(stored.get(at + 1).copied().unwrap_or(0));
            (pair >> (8 - shift)) as u8
        };
        file.extend((0..whole).map(aligned));
        let rest = length % 8;
        let mut tail = if rest > 0 {
            u128::from(aligned(whole) >> (8 - rest))
        } else {
            0
        };
        tail = (tail << MARK_BITS | u128::from(END_MARK)) << CRC_BITS | u128::from(crc);
        let bits = rest + MARK_BITS + CRC_BITS;
        let padding = (8 - bits % 8) % 8;
        let bytes = ((bits + padding) / 8) as usize;
        file.extend_from_slice(&(tail << padding).to_be_bytes()[16 - bytes..]);
        Ok(file)
    }
}
