//! Checks of files before a job begins, by their names and their first and last bytes: compressed or
//! container files read as text would silently give a wrong output.

use std::io;
use std::path::Path;

use napreduce_connectors::compression::{Compression, FIRST_BYTES, Support, skippable_bytes};

use super::error::InputError;
use super::opening::open_path;

/// Maximum number of skippable frames before the first other one.
const SKIPPED_FRAMES_MAX: usize = 1000;

/// The first bytes of a file of typed records.
pub(crate) const TYPED_RECORDS: [u8; 8] = *b"NAPRECS\n";

/// Rejects a file whose extension is that of an unsupported compression.
pub(super) fn check_name(path: &Path) -> Result<(), InputError> {
    match Support::of_name(path) {
        Some(Support::Refused {
            name,
            undo,
            feature,
        }) => Err(not_decompressed(path, name, undo, feature)),
        _ => Ok(()),
    }
}

/// Also rejects a file whose first bytes are those of an unsupported compression or do not match its
/// extension.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    check_name(path)?;
    let named = Compression::of(path);
    // Decoders recognize the others by their first bytes; Hadoop's block formats have no magic bytes.
    if named.is_some_and(|named| !matches!(named, Compression::Lz4 | Compression::Snappy)) {
        return Ok(());
    }
    let first = first_bytes(path).map_err(|error| InputError::unreadable(path, error))?;
    match Support::of_first_bytes(&first) {
        Some(Support::Read {
            compression,
            extension,
        }) if named != Some(compression) => Err(InputError::Misnamed {
            path: path.to_owned(),
            compression,
            extension,
        }),
        Some(Support::Refused {
            name,
            undo,
            feature,
        }) => Err(not_decompressed(path, name, undo, feature)),
        Some(Support::Read { .. }) => Ok(()),
        None if first.starts_with(&TYPED_RECORDS) => Err(InputError::TypedRecords {
            path: path.to_owned(),
        }),
        None => check_container(path, &first),
    }
}

/// Rejects a file of typed records.
pub(super) fn check_typed_records(path: &Path) -> Result<(), InputError> {
    let first = first_bytes(path).map_err(|error| InputError::unreadable(path, error))?;
    if first.starts_with(&TYPED_RECORDS) {
        return Err(InputError::TypedRecords {
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// A container file format.
struct Container {
    name: &'static str,
    first: &'static [u8],
    /// Empty if the first bytes suffice.
    last: &'static [u8],
    method: &'static str,
    feature: &'static str,
}

const CONTAINERS: [Container; 3] = [
    Container {
        name: "a Parquet file",
        first: b"PAR1",
        last: b"PAR1",
        method: "Job::parquet",
        feature: "parquet",
    },
    Container {
        name: "an Avro file",
        first: b"Obj\x01",
        last: b"",
        method: "Job::avro",
        feature: "avro",
    },
    Container {
        name: "a SequenceFile",
        first: b"SEQ\x06",
        last: b"",
        method: "Job::sequence_file",
        feature: "sequence-file",
    },
];

/// Rejects a container file; formats that read these have their own checks.
fn check_container(path: &Path, first: &[u8]) -> Result<(), InputError> {
    let Some(container) = CONTAINERS
        .iter()
        .find(|container| first.starts_with(container.first))
    else {
        return Ok(());
    };
    let unreadable = |error| InputError::unreadable(path, error);
    let bytes = open_path(path).map_err(unreadable)?;
    let mut last = vec![0; container.last.len()];
    let end = bytes
        .length()
        .map_err(unreadable)?
        .saturating_sub(last.len() as u64);
    bytes.read_exact_at(&mut last, end).map_err(unreadable)?;
    if last != container.last {
        return Ok(());
    }
    let &Container {
        name: format,
        method,
        feature,
        ..
    } = container;
    Err(InputError::OtherFormat {
        path: path.to_owned(),
        format,
        method,
        feature,
    })
}

fn not_decompressed(
    path: &Path,
    compression: &'static str,
    undo: &'static str,
    feature: Option<&'static str>,
) -> InputError {
    InputError::NotDecompressed {
        path: path.to_owned(),
        compression,
        undo,
        feature,
    }
}

/// Reads as many bytes as identify a compression, or fewer at the end of the file. Zstd and lz4 allow frames
/// without data before the first one with data.
fn first_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_path(path)?;
    let length = file.length()?;
    let mut at = 0;
    for _ in 0..SKIPPED_FRAMES_MAX {
        let mut first = vec![0; (length - at).min(FIRST_BYTES as u64) as usize];
        file.read_exact_at(&mut first, at)?;
        match skippable_bytes(&first) {
            Some(skipped) if skipped < length - at => at += skipped,
            _ => return Ok(first),
        }
    }
    Ok(Vec::new())
}
