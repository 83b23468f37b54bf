//! Container files whose header defines a random sync marker, which separates blocks: reading of the header,
//! and the search for the first marker of a split.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::bytes::{ReadAt, ReadError};

pub(crate) const MARKER_BYTES: usize = 16;
pub(crate) const TOO_SHORT: &str = "it ends early; the file is incomplete";
/// Bytes read at a time while searching.
pub(crate) const SEARCH_BYTES: usize = 64 << 10;

/// Returns the first bytes of a file; `None` if the file is empty, and zeros after the end of a shorter file.
pub(crate) fn magic<const N: usize>(bytes: &dyn ReadAt) -> Result<Option<[u8; N]>, ReadError> {
    let length = bytes.length().map_err(ReadError::Unreadable)?;
    if length == 0 {
        return Ok(None);
    }
    let mut magic = [0; N];
    let there = usize::try_from(length).unwrap_or(N).min(N);
    let read = bytes.read_exact_at(&mut magic[..there], 0);
    read.map_err(|error| ReadError::of_read(length, 0, error))?;
    Ok(Some(magic))
}

/// Parses the header of a file of `length` bytes, of which `read` returns those at an offset, up to a
/// maximum. `parse` returns `None` if the header continues after its bytes. A header may have `memory` bytes.
pub(crate) fn read_header<T>(
    length: u64,
    memory: usize,
    read: impl Fn(u64, usize) -> Result<Vec<u8>, ReadError>,
    parse: impl Fn(&[u8]) -> Option<Result<T, String>>,
) -> Result<T, ReadError> {
    let mut wanted = SEARCH_BYTES;
    loop {
        let bytes = read(0, wanted)?;
        if let Some(header) = parse(&bytes) {
            return header.map_err(|reason| ReadError::damaged(0, reason));
        }
        if bytes.len() as u64 == length {
            return Err(ReadError::damaged(length, TOO_SHORT));
        }
        if wanted >= memory {
            return Err(ReadError::TooLarge {
                offset: 0,
                what: "its header".to_owned(),
            });
        }
        wanted = wanted.saturating_mul(4).min(memory);
    }
}

/// Returns the first marker that begins in `range`.
pub(crate) fn find_marker(
    marker: &[u8; MARKER_BYTES],
    range: Range<u64>,
    read: impl Fn(u64, usize) -> Result<Vec<u8>, ReadError>,
) -> Result<Option<u64>, ReadError> {
    let finder = Finder::new(marker);
    let mut at = range.start;
    while at < range.end {
        let bytes = read(at, SEARCH_BYTES + MARKER_BYTES - 1)?;
        if let Some(found) = finder.find(&bytes) {
            return Ok(Some(at + found as u64).filter(|found| *found < range.end));
        }
        at += SEARCH_BYTES as u64;
    }
    Ok(None)
}
