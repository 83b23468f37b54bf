//! Gzip input.

use std::io::{ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::decoder::{Decoder, Garbage, Stored, TOO_SHORT, no_frame};
use crate::bytes::{ReadError, StoredFile};

/// Header of every member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The decompressed bytes of a gzip file.
pub(crate) struct GzipStream {
    /// `None` after the last member.
    member: Option<GzDecoder<Stored>>,
    length: u64,
    garbage: Option<Garbage>,
}

/// The data after a member.
enum Next {
    Member,
    End,
    Garbage,
}

impl GzipStream {
    pub(crate) fn open(file: StoredFile) -> Result<Self, ReadError> {
        let length = file.length();
        let mut stored = Stored::new(file);
        let first = stored.peek(MAGIC.len())?;
        if !first.starts_with(&MAGIC) && !MAGIC.starts_with(first) {
            return Err(no_frame("gzip", 0));
        }
        Ok(GzipStream { member: Some(GzDecoder::new(stored)), length, garbage: None })
    }

    /// Continues after a member. As in gzip(1), zeros up to the end are padding; other data is ignored with a
    /// warning.
    fn next_member(&mut self) -> Result<(), ReadError> {
        let Some(ended) = self.member.take() else { return Ok(()) };
        let mut stored = ended.into_inner();
        let offset = stored.position();
        match next(&mut stored)? {
            Next::Member => self.member = Some(GzDecoder::new(stored)),
            Next::End => {}
            Next::Garbage => self.garbage = Some(Garbage { offset, bytes: self.length - offset }),
        }
        Ok(())
    }
}

impl Decoder for GzipStream {
    fn position(&self) -> u64 {
        self.member.as_ref().map_or(self.length, |member| member.get_ref().position())
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

fn next(stored: &mut Stored) -> Result<Next, ReadError> {
    let first = stored.peek(MAGIC.len())?;
    if first.starts_with(&MAGIC) {
        return Ok(Next::Member);
    }
    if first == &MAGIC[..1] {
        stored.skip(1)?;
        return Err(stored.damaged(TOO_SHORT.to_owned()));
    }
    loop {
        let bytes = stored.peek(1)?;
        if bytes.is_empty() {
            return Ok(Next::End);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros < bytes.len() {
            return Ok(Next::Garbage);
        }
        stored.skip(zeros as u64)?;
    }
}
