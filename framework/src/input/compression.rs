//! Which files are refused because of their compression, and which compressed files several tasks can read.

use std::io;
use std::path::Path;

use napreduce_connectors::bytes::{ReadError, StoredFile};
use napreduce_connectors::compression::{Compression, FIRST_BYTES, Support};
use napreduce_connectors::decode;

use super::opening::open_path;
use super::{InputError, InputFile, Splitting};

/// Where a file of lines may be cut: in a compression whose blocks are found from anywhere, if it has several.
pub(crate) fn lines_splitting(path: &Path) -> Splitting {
    let open = || StoredFile::whole(open_path(path).map_err(ReadError::Unreadable)?);
    match Compression::of(path) {
        Some(compression) if !decode::has_several_blocks(compression, open) => {
            Splitting::Compressed(compression)
        }
        _ => Splitting::Anywhere,
    }
}

/// Refuses a file whose name says that it is in a compression that is not undone while reading.
pub(super) fn check_name(path: &Path) -> Result<(), InputError> {
    match Support::of_name(path) {
        Some(Support::Refused { name, undo, feature }) => Err(not_decompressed(path, name, undo, feature)),
        _ => Ok(()),
    }
}

/// Refuses it also if its first bytes say so, or say that it should have another name.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    check_name(path)?;
    let named = Compression::of(path);
    // Decoders know the others by their first bytes, and blocks of Hadoop have none.
    if named.is_some_and(|named| !matches!(named, Compression::Lz4 | Compression::Snappy)) {
        return Ok(());
    }
    let first = first_bytes(path).map_err(|error| InputError::unreadable(path, error))?;
    match Support::of_first_bytes(&first) {
        Some(Support::Read { compression, extension }) if named != Some(compression) => {
            Err(InputError::Misnamed { path: path.to_owned(), compression, extension })
        }
        Some(Support::Refused { name, undo, feature }) => Err(not_decompressed(path, name, undo, feature)),
        _ => Ok(()),
    }
}

fn not_decompressed(
    path: &Path,
    compression: &'static str,
    undo: &'static str,
    feature: Option<&'static str>,
) -> InputError {
    InputError::NotDecompressed { path: path.to_owned(), compression, undo, feature }
}

/// A warning about compressed files without a byte, which no compressor writes.
pub(crate) fn about_empty(files: &[Vec<InputFile>]) -> Option<String> {
    let empty = files.iter().flatten().filter(|file| file.size == 0);
    let mut empty = empty.filter_map(|file| Some((file, Compression::of(&file.path)?)));
    let (first, compression) = empty.next()?;
    let others = match empty.count() {
        0 => String::new(),
        more => format!(" (and so have {more} more compressed files)"),
    };
    let first = first.path.display();
    Some(format!(
        "{first} has 0 bytes{others}, which is not valid {compression} data; it is read as an empty file"
    ))
}

/// As many as identify a compression, or as there are.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_path(path)?;
    let mut first = vec![0; file.length()?.min(FIRST_BYTES as u64) as usize];
    file.read_exact_at(&mut first, 0)?;
    Ok(first)
}
