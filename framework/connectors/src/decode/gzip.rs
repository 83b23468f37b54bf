//! Gzip input.

use std::io::{ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::decoder::{Decoder, Garbage, Stored, TOO_SHORT, no_frame};
use crate::bytes::{ReadError, StoredFile};

/// Header of every member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The only compression method.
const DEFLATE: u8 = 8;
/// Flags that no member sets.
const RESERVED_FLAGS: u8 = 0xe0;
/// Bytes of a header up to its flags.
const FLAGGED_BYTES: usize = 4;

/// The decompressed bytes of a gzip file.
pub(crate) struct GzipStream {
    /// `None` after the last member.
    member: Option<GzDecoder<Stored>>,
    length: u64,
    garbage: Option<Garbage>,
}

impl GzipStream {
    pub(crate) fn open(file: StoredFile) -> Result<Self, ReadError> {
        let length = file.length();
        let mut stored = Stored::new(file);
        let first = stored.peek(MAGIC.len())?;
        if !first.starts_with(&MAGIC) && !MAGIC.starts_with(first) {
            return Err(no_frame("gzip", 0));
        }
        Ok(GzipStream {
            member: Some(GzDecoder::new(stored)),
            length,
            garbage: None,
        })
    }

    /// Continues after a member. Zeros are padding. Other data up to the end of the file is ignored with a
    /// warning.
    fn next_member(&mut self) -> Result<(), ReadError> {
        let Some(ended) = self.member.take() else {
            return Ok(());
        };
        let mut stored = ended.into_inner();
        skip_zeros(&mut stored)?;
        let offset = stored.position();
        let next = stored.peek(MAGIC.len())?;
        if next.is_empty() {
            return Ok(());
        }
        if next.starts_with(&MAGIC) {
            self.member = Some(GzDecoder::new(stored));
            return Ok(());
        }
        if MAGIC.starts_with(next) {
            stored.skip(1)?;
            return Err(stored.damaged(TOO_SHORT.to_owned()));
        }
        if a_member_follows(&mut stored)? {
            let reason = "is not valid (no member there, but members follow)".to_owned();
            return Err(ReadError::Damaged { offset, reason });
        }
        self.garbage = Some(Garbage {
            offset,
            bytes: self.length - offset,
        });
        Ok(())
    }
}

impl Decoder for GzipStream {
    fn position(&self) -> u64 {
        self.member
            .as_ref()
            .map_or(self.length, |member| member.get_ref().position())
    }

    fn take_garbage(&mut self) -> Option<Garbage> {
        self.garbage.take()
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, ReadError> {
        while let Some(member) = &mut self.member {
            match member.read(into) {
                Ok(0) if !into.is_empty() => self.next_member()?,
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_cut_off = error.kind() == ErrorKind::UnexpectedEof;
                    return Err(member.get_mut().failed(&error, is_cut_off));
                }
            }
        }
        Ok(0)
    }
}

fn skip_zeros(stored: &mut Stored) -> Result<(), ReadError> {
    loop {
        let bytes = stored.peek(1)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_last = zeros < bytes.len() || bytes.is_empty();
        stored.skip(zeros as u64)?;
        if is_last {
            return Ok(());
        }
    }
}

/// Returns whether the header of a member begins in the rest of the file.
fn a_member_follows(stored: &mut Stored) -> Result<bool, ReadError> {
    loop {
        let bytes = stored.peek(FLAGGED_BYTES)?;
        if bytes.len() < FLAGGED_BYTES {
            return Ok(false);
        }
        if bytes.windows(FLAGGED_BYTES).any(is_header) {
            return Ok(true);
        }
        let searched = bytes.len() - (FLAGGED_BYTES - 1);
        stored.skip(searched as u64)?;
    }
}

fn is_header(bytes: &[u8]) -> bool {
    let [first, second, method, flags] = *bytes else {
        return false;
    };
    [first, second] == MAGIC && method == DEFLATE && flags & RESERVED_FLAGS == 0
}
