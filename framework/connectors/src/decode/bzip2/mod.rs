//! Bzip2 input, also of splits: a mark of 48 bits begins each block, at any bit.
//!
//! A mark that occurs in compressed data by chance (one in 2^48 bits) is detected and skipped, as in Hadoop.

mod marks;

use std::ops::Range;

use bzip2::{Decompress, Status};

use self::marks::{Bits, CRC_BITS, Kind, MARK_BITS, Mark};
use super::decoder::{Decoder, Garbage, SplitBlocks, TOO_SHORT};
use crate::bytes::{ReadError, StoredFile};

/// Maximum bytes of a compressed block: 900,000 symbols of 20 bits, and the tables.
const BLOCK_BYTES_MAX: u64 = 3 << 20;
const HEAD_BYTES: u64 = 4;
/// Bytes searched for marks at a time.
const SEARCHED_BYTES: usize = 256 << 10;

/// The decompressed bytes of the blocks of a split and beyond.
pub(crate) struct Bzip2Stream {
    bits: Bits,
    block: Option<Block>,
    /// The data after the block.
    next: Option<Mark>,
    blocks: SplitBlocks,
    position: u64,
    /// Checksum of the stream so far, if it was read from its start.
    combined: Option<u32>,
    garbage: Option<Garbage>,
}

struct Block {
    mark: u64,
    decoder: Decompress,
    /// A file that contains only this block.
    file: Vec<u8>,
    taken: usize,
    /// A block returns no byte before all of it was taken.
    given: bool,
    /// Whether the whole block was returned and matches its checksum.
    whole: bool,
}

/// The data after a header or an end of a stream.
enum Behind {
    Mark(Mark),
    Nothing,
    Garbage(u64),
}

impl Bzip2Stream {
    pub(crate) fn open(file: StoredFile, range: &Range<u64>) -> Result<Self, ReadError> {
        let mut stream = Bzip2Stream {
            bits: Bits::new(file),
            block: None,
            next: None,
            blocks: SplitBlocks::of(range, false),
            position: range.start,
            combined: None,
            garbage: None,
        };
        let first = stream.first_block()?;
        let from = range.start * 8;
        let until = range.end.saturating_mul(8);
        let starts_file =
            first.map_or(range.start == 0, |first| (from..until).contains(&first.bit));
        stream.blocks.starts_file = starts_file;
        if starts_file {
            stream.next = first;
        } else {
            stream.combined = None;
            stream.garbage = None;
            if let Some(first) = first.filter(|first| first.bit < from) {
                stream.search(from.max(first.bit + 1), until)?;
            }
            if stream.block.is_none() {
                stream.position = range.end;
            }
        }
        Ok(stream)
    }

    /// Finds the first block of the file, after any empty streams.
    fn first_block(&mut self) -> Result<Option<Mark>, ReadError> {
        match self.behind_head(0)? {
            Behind::Mark(Mark {
                kind: Kind::End,
                bit,
            }) => self.end_stream(bit)?,
            Behind::Mark(block) => self.next = Some(block),
            Behind::Nothing => return Err(self.damaged(0, TOO_SHORT)),
            Behind::Garbage(_) => {
                return Err(self.damaged(0, "is not valid (BZh and a digit expected)"));
            }
        }
        while let Some(Mark {
            kind: Kind::End,
            bit,
        }) = self.next
        {
            self.end_stream(bit)?;
        }
        Ok(self.next.take())
    }

    /// Starts with the first block whose mark is in this range of bits; skips false marks.
    fn search(&mut self, from: u64, until: u64) -> Result<(), ReadError> {
        let mut from = from;
        self.bits.go_to(from / 8);
        while let Some(mark) = self.bits.find(from, until)? {
            from = mark.bit + 1;
            let begun = match mark.kind {
                Kind::Block => self.begin(mark.bit),
                Kind::End => continue,
            };
            match begun {
                Ok(()) if self.is_block()? => return Ok(()),
                // The reader of the previous block reaches this one and decides.
                Ok(()) | Err(ReadError::Damaged { .. }) => {}
                Err(trouble) => return Err(trouble),
            }
            self.block = None;
            self.next = None;
            self.bits.go_to(from / 8);
        }
        Ok(())
    }

    /// Checks the started block as far as possible before its first byte.
    fn is_block(&mut self) -> Result<bool, ReadError> {
        loop {
            match self.decode(&mut []) {
                Ok(Decoded::Wanting) => {}
                Ok(_) => return Ok(true),
                Err(_) => return Ok(false),
            }
            if !self.extend()? {
                return Ok(false);
            }
        }
    }

    /// Reads the header of a stream.
    fn behind_head(&mut self, byte: u64) -> Result<Behind, ReadError> {
        let head = self.bits.peek(byte, HEAD_BYTES as usize)?;
        match head {
            [] => return Ok(Behind::Nothing),
            [b'B', b'Z', b'h', b'1'..=b'9'] => {}
            _ if b"BZh".starts_with(head) => return Err(self.cut_off()),
            _ => return Ok(Behind::Garbage(byte)),
        }
        self.combined = Some(0);
        let bit = (byte + HEAD_BYTES) * 8;
        match self.bits.mark_at(bit)? {
            Some(mark) => Ok(Behind::Mark(mark)),
            None if self.bits.bits(bit, MARK_BITS)?.is_none() => Err(self.cut_off()),
            None => Err(self.damaged(bit / 8, "is not valid (no block there)")),
        }
    }

    /// Checks the end of a stream and continues after it.
    fn end_stream(&mut self, mark: u64) -> Result<(), ReadError> {
        let Some(crc) = self.bits.bits(mark + MARK_BITS, CRC_BITS)? else {
            return Err(self.cut_off());
        };
        if self
            .combined
            .is_some_and(|combined| u64::from(combined) != crc)
        {
            return Err(self.damaged(mark / 8, "does not match its checksum"));
        }
        let behind = (mark + MARK_BITS + CRC_BITS).div_ceil(8);
        self.bits.go_to(behind);
        self.position = behind;
        self.next = None;
        match self.behind_head(behind)? {
            Behind::Mark(mark) => self.next = Some(mark),
            Behind::Nothing => {}
            Behind::Garbage(offset) => {
                let length = self.bits.file_length();
                self.check_garbage(offset, length)?;
                self.position = length;
                self.garbage = Some(Garbage {
                    offset,
                    bytes: length - offset,
                });
            }
        }
        Ok(())
    }

    /// Rejects other data before further blocks, which tasks with later splits would read.
    fn check_garbage(&mut self, offset: u64, length: u64) -> Result<(), ReadError> {
        for from in (offset..length).step_by(SEARCHED_BYTES) {
            self.bits.go_to(from);
            let mut bit = from * 8;
            while let Some(mark) = self.bits.find(bit, (from + SEARCHED_BYTES as u64) * 8)? {
                if mark.kind == Kind::Block {
                    return Err(
                        self.damaged(offset, "is not valid (no stream there, but blocks follow)")
                    );
                }
                bit = mark.bit + 1;
            }
        }
        Ok(())
    }

    /// Starts the block at this bit.
    fn begin(&mut self, mark: u64) -> Result<(), ReadError> {
        self.bits.go_to(mark / 8);
        self.block = None;
        let next = self.find_next(mark, mark + MARK_BITS + CRC_BITS)?;
        self.start(mark, next)
    }

    fn start(&mut self, mark: u64, next: Mark) -> Result<(), ReadError> {
        let file = self.bits.stand_alone(mark, next.bit)?;
        self.block = Some(Block {
            mark,
            decoder: Decompress::new(false),
            file,
            taken: 0,
            given: false,
            whole: false,
        });
        self.position = next.bit / 8;
        self.next = Some(next);
        Ok(())
    }

    fn find_next(&mut self, mark: u64, from: u64) -> Result<Mark, ReadError> {
        let until = mark + BLOCK_BYTES_MAX * 8;
        match self.bits.find(from, until)? {
            Some(next) => Ok(next),
            None if self.bits.read_up_to() * 8 < until => Err(self.cut_off()),
            None => Err(self.damaged(mark / 8, "is not valid (a block has no end)")),
        }
    }

    /// Treats the mark after an incomplete block as part of the block; returns false if there is no later
    /// mark.
    fn extend(&mut self) -> Result<bool, ReadError> {
        let (Some(block), Some(next)) = (&self.block, self.next) else {
            return Ok(false);
        };
        let mark = block.mark;
        match self.bits.find(next.bit + 1, mark + BLOCK_BYTES_MAX * 8)? {
            Some(later) => self.start(mark, later).map(|()| true),
            None => Ok(false),
        }
    }

    fn decode(&mut self, into: &mut [u8]) -> Result<Decoded, ()> {
        let Some(block) = &mut self.block else {
            return Ok(Decoded::Whole);
        };
        while !block.whole {
            let taken = block.decoder.total_in();
            let given = block.decoder.total_out();
            let status = block
                .decoder
                .decompress(&block.file[block.taken..], into)
                .map_err(drop)?;
            let took = (block.decoder.total_in() - taken) as usize;
            let gave = (block.decoder.total_out() - given) as usize;
            block.taken += took;
            block.whole = status == Status::StreamEnd;
            if gave > 0 {
                block.given = true;
                return Ok(Decoded::Bytes(gave));
            }
            if took == 0 && !block.whole {
                let is_ready = block.taken < block.file.len();
                return Ok(if is_ready {
                    Decoded::Ready
                } else {
                    Decoded::Wanting
                });
            }
        }
        Ok(Decoded::Whole)
    }

    /// Handles the end of a complete block with the right checksum.
    fn end_block(&mut self) -> Result<(), ReadError> {
        let Some(block) = self.block.take() else {
            return Ok(());
        };
        let crc = self
            .bits
            .bits(block.mark + MARK_BITS, CRC_BITS)?
            .unwrap_or_default();
        self.combined = self
            .combined
            .map(|combined| combined.rotate_left(1) ^ crc as u32);
        Ok(())
    }

    #[cold]
    fn cut_off(&self) -> ReadError {
        self.damaged(self.bits.file_length(), TOO_SHORT)
    }

    #[cold]
    fn damaged(&self, offset: u64, reason: &str) -> ReadError {
        ReadError::Damaged {
            offset,
            reason: reason.to_owned(),
        }
    }
}

enum Decoded {
    Bytes(usize),
    /// There are bytes to return.
    Ready,
    /// All bytes were taken, and none returned.
    Wanting,
    /// The block is complete.
    Whole,
}

impl Decoder for Bzip2Stream {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            let Some(block) = &self.block else {
                match self.next {
                    None => return Ok(0),
                    Some(Mark {
                        kind: Kind::End,
                        bit,
                    }) => self.end_stream(bit)?,
                    Some(Mark {
                        kind: Kind::Block,
                        bit,
                    }) => {
                        self.blocks.begin(bit / 8);
                        self.begin(bit)?;
                    }
                }
                continue;
            };
            let mark = block.mark;
            let given = block.given;
            match self.decode(into) {
                Ok(Decoded::Bytes(bytes)) => {
                    self.blocks.read(bytes);
                    return Ok(bytes);
                }
                Ok(Decoded::Whole) => self.end_block()?,
                Ok(Decoded::Ready) => return Ok(0),
                Ok(Decoded::Wanting) | Err(()) if !given && self.extend()? => {}
                Ok(Decoded::Wanting) | Err(()) => {
                    return Err(
                        self.damaged(mark / 8, "is not valid, or does not match its checksum")
                    );
                }
            }
        }
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn take_garbage(&mut self) -> Option<Garbage> {
        self.garbage.take()
    }

    fn blocks(&self) -> Option<&SplitBlocks> {
        Some(&self.blocks)
    }
}
