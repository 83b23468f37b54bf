//! Byte order marks, with which some programs begin files of text.

use std::path::Path;

use super::InputError;

/// The mark of UTF-8, and its length.
pub(crate) const UTF_8_MARK: &[u8] = b"\xef\xbb\xbf";
pub(crate) const MARK_BYTES: usize = UTF_8_MARK.len();

/// Encodings that are not read, each with its mark. No UTF-8 text begins with one of these.
const OTHERS: [(&str, &[u8]); 4] = [
    ("UTF-32", b"\xff\xfe\0\0"),
    ("UTF-32", b"\0\0\xfe\xff"),
    ("UTF-16", b"\xff\xfe"),
    ("UTF-16", b"\xfe\xff"),
];

/// The length of the UTF-8 mark that `start`, the start of a file, begins with.
///
/// # Errors
/// `OtherEncoding` if it begins with a mark of UTF-16 or UTF-32.
pub(crate) fn mark_length(path: &Path, start: &[u8]) -> Result<usize, InputError> {
    if start.starts_with(UTF_8_MARK) {
        return Ok(MARK_BYTES);
    }
    match OTHERS.iter().find(|(_, mark)| start.starts_with(mark)) {
        Some((encoding, _)) => Err(InputError::OtherEncoding { path: path.to_owned(), encoding }),
        None => Ok(0),
    }
}
