//! Consolidated files: one worker's small segments in one file, grouped by partition, so that a reduce opens
//! one file instead of many. The segments stay, and a missing or damaged consolidated file is ignored. The
//! idea is that of Spark's consolidated shuffle files and of Riffle (Zhang et al., EuroSys 2018), without
//! rewriting blocks.
//! ```text
//! head       magic, version, partitions, segments, head length; per segment: name, length, header, trailer; crc32c
//! table      start of each partition's rows, and the end of the last
//! rows       per partition: entry, block index and blocks of each segment; crc32c
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::Ends;
use super::error::{SegmentError, WriteError};
use super::format::{
    CRC_BYTES, PARTITION_ENTRY_BYTES, PartitionEntry, TRAILER_BYTES, u32_at, u64_at,
};
use super::index::read_range;
use super::reader::Segment;
use super::seal::{PartialFile, Seal};

const MAGIC: [u8; 8] = *b"NAPRCON\n";
const VERSION: u32 = 1;
/// Magic, version, partitions, segments, length of the head.
const FIXED_BYTES: usize = 24;
const OFFSET_BYTES: usize = 8;
/// Enough for the head of most files.
const START_BYTES: u64 = 16 << 10;
/// The longest head that is written, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 20;

/// Why segments were not consolidated.
#[derive(Debug, thiserror::Error)]
pub enum ConsolidationError {
    /// A segment cannot be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The segments do not match.
    #[error("{}: {what}", path.display())]
    Unfit { path: PathBuf, what: &'static str },
}

/// Writes whole segments of one directory to `target` in the same directory and returns its size. The file is
/// either complete or absent.
///
/// # Errors
/// See [`ConsolidationError`]; the segments are unchanged.
pub fn consolidate(segments: &[PathBuf], target: &Path) -> Result<u64, ConsolidationError> {
    let opened = segments
        .iter()
        .map(|path| Segment::open(path))
        .collect::<Result<Vec<_>, _>>()?;
    let partitions = opened.first().map_or(0, |segment| segment.partitions());
    let unfit = |path: &Path, what| ConsolidationError::Unfit {
        path: path.to_owned(),
        what,
    };
    for segment in &opened {
        if segment.partitions() != partitions || !segment.is_whole() {
            return Err(unfit(
                segment.path(),
                "has different partitions than the other segments",
            ));
        }
        if segment.path().parent() != target.parent() {
            return Err(unfit(segment.path(), "is in another directory"));
        }
    }
    let mut start = encode_head(&opened, partitions)
        .ok_or_else(|| unfit(target, "the head would be too long"))?;
    start.extend(encode_table(&opened, partitions, start.len())?);
    let mut partial = PartialFile::new(target);
    let file = partial.create()?;
    let bytes = write(&opened, &start, &file, &partial.path)?;
    partial.publish(&file, Seal { durable: false })?;
    Ok(bytes)
}

fn encode_head(segments: &[Arc<Segment>], partitions: u32) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(FIXED_BYTES + segments.len() * 256);
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&VERSION.to_le_bytes());
    head.extend_from_slice(&partitions.to_le_bytes());
    head.extend_from_slice(&u32::try_from(segments.len()).ok()?.to_le_bytes());
    head.extend_from_slice(&[0; 4]);
    for segment in segments {
        let name = segment.path().file_name()?.as_bytes();
        let (header, trailer) = segment.ends();
        head.extend_from_slice(&segment.file_len().to_le_bytes());
        for part in [name, &header] {
            head.extend_from_slice(&u16::try_from(part.len()).ok()?.to_le_bytes());
            head.extend_from_slice(part);
        }
        head.extend_from_slice(&trailer);
    }
    let length = u32::try_from(head.len() + CRC_BYTES)
        .ok()
        .filter(|len| *len as usize <= HEAD_BYTES_MAX)?;
    head[FIXED_BYTES - 4..FIXED_BYTES].copy_from_slice(&length.to_le_bytes());
    head.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
    Some(head)
}

fn encode_table(
    segments: &[Arc<Segment>],
    partitions: u32,
    head: usize,
) -> Result<Vec<u8>, SegmentError> {
    let length = (partitions as usize + 1) * OFFSET_BYTES;
    let mut table = Vec::with_capacity(length);
    let mut at = (head + length) as u64;
    for partition in 0..partitions {
        table.extend_from_slice(&at.to_le_bytes());
        for segment in segments {
            let entry = segment.partition(partition)?;
            at += (PARTITION_ENTRY_BYTES + entry.index_len()) as u64 + entry.stored_len;
        }
        at += CRC_BYTES as u64;
    }
    table.extend_from_slice(&at.to_le_bytes());
    Ok(table)
}

/// Writes head and table, then the rows of each partition; returns the size of the file.
fn write(
    segments: &[Arc<Segment>],
    start: &[u8],
    file: &File,
    path: &Path,
) -> Result<u64, ConsolidationError> {
    let failed = |source| WriteError::new("write", path, source);
    let partitions = segments.first().map_or(0, |segment| segment.partitions());
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut row = Vec::new();
    file.write_all(start).map_err(failed)?;
    let mut bytes = start.len() as u64;
    for partition in 0..partitions {
        row.clear();
        for segment in segments {
            for part in segment.row(partition)? {
                row.extend_from_slice(part);
            }
        }
        row.extend_from_slice(&crc32c::crc32c(&row).to_le_bytes());
        file.write_all(&row).map_err(failed)?;
        bytes += row.len() as u64;
    }
    file.flush().map_err(failed)?;
    Ok(bytes)
}

/// Reads one partition of all segments of a consolidated file into memory; returns nothing if that exceeds
/// `bytes_max` bytes.
///
/// # Errors
/// The damage; the caller ignores the file.
pub(crate) fn read_consolidated(
    path: &Path,
    partition: u32,
    bytes_max: u64,
) -> Result<Vec<Arc<Segment>>, String> {
    let io = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(io)?;
    let file_len = file.metadata().map_err(io)?.len();
    let mut start = read_range(&file, 0, file_len.min(START_BYTES)).map_err(io)?;
    let head_len = head_len(&start)?;
    if head_len > start.len() {
        start = read_range(&file, 0, file_len.min(head_len as u64)).map_err(io)?;
    }
    let head = start
        .get(..head_len)
        .ok_or("the file ends inside the head")?;
    let (covered, crc) = head.split_at(head_len - CRC_BYTES);
    if crc32c::crc32c(covered) != u32_at(crc, 0) {
        return Err("checksum mismatch in the head".to_owned());
    }
    let partitions = u32_at(covered, 12);
    let count = u32_at(covered, 16);
    if partition >= partitions {
        return Err(format!(
            "it has {partitions} partitions; partition {partition} was requested"
        ));
    }
    let mut place = [0; 2 * OFFSET_BYTES];
    let table_at = head_len as u64 + u64::from(partition) * OFFSET_BYTES as u64;
    file.read_exact_at(&mut place, table_at).map_err(io)?;
    let begin = u64_at(&place, 0);
    let end = u64_at(&place, OFFSET_BYTES);
    if begin > end || end > file_len || end - begin < CRC_BYTES as u64 {
        return Err(format!(
            "partition {partition} spans bytes {begin} to {end} of {file_len}"
        ));
    }
    if end - begin > bytes_max {
        return Ok(Vec::new());
    }
    let rows = read_range(&file, begin, end - begin).map_err(io)?;
    let (rows, crc) = rows.split_at(rows.len() - CRC_BYTES);
    if crc32c::crc32c(rows) != u32_at(crc, 0) {
        return Err(format!("checksum mismatch in partition {partition}"));
    }
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut reader = Reader {
        head: &covered[FIXED_BYTES..],
        rows,
    };
    let segments: Result<Vec<_>, String> = (0..count)
        .map(|_| reader.segment(directory, partition).ok_or_else(mismatch)?)
        .collect();
    if reader.head.is_empty() && reader.rows.is_empty() {
        segments
    } else {
        Err(mismatch())
    }
}

fn head_len(start: &[u8]) -> Result<usize, String> {
    let fixed = start
        .get(..FIXED_BYTES)
        .ok_or("the file ends inside the head")?;
    if fixed[..8] != MAGIC {
        return Err("not a file of consolidated segments".to_owned());
    }
    let version = u32_at(fixed, 8);
    let len = u32_at(fixed, 20) as usize;
    if version != VERSION {
        return Err(format!(
            "version {version}; this program reads version {VERSION}"
        ));
    }
    if !(FIXED_BYTES + CRC_BYTES..=HEAD_BYTES_MAX).contains(&len) {
        return Err(format!("invalid head length {len}"));
    }
    Ok(len)
}

/// The unread rest of a head and of one partition's rows.
struct Reader<'a> {
    head: &'a [u8],
    rows: &'a [u8],
}

fn mismatch() -> String {
    "head and rows do not match".to_owned()
}

impl Reader<'_> {
    /// Reads the next segment; `None` if the rest is too short.
    fn segment(
        &mut self,
        directory: &Path,
        partition: u32,
    ) -> Option<Result<Arc<Segment>, String>> {
        let file_len = u64_at(take(&mut self.head, 8)?, 0);
        let name = take_counted(&mut self.head)?;
        let header = take_counted(&mut self.head)?;
        let trailer = take(&mut self.head, TRAILER_BYTES)?;
        let ends = Ends::check(header, trailer, file_len).and_then(|ends| {
            let entry = ends.entry(
                partition,
                self.rows
                    .get(..PARTITION_ENTRY_BYTES)
                    .ok_or_else(mismatch)?,
            )?;
            Ok((ends, entry))
        });
        let (ends, entry): (Ends, PartitionEntry) = match ends {
            Ok(found) => found,
            Err(what) => return Some(Err(what)),
        };
        take(&mut self.rows, PARTITION_ENTRY_BYTES)?;
        let length = entry
            .index_len()
            .checked_add(usize::try_from(entry.stored_len).ok()?)?;
        let bytes = take(&mut self.rows, length)?;
        if let Err(what) = ends.check_index(&entry, &bytes[..entry.index_len()]) {
            return Some(Err(what));
        }
        let path = directory.join(OsStr::from_bytes(name));
        Some(Ok(Segment::in_memory(path, ends, partition, entry, bytes)))
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn take_counted<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(from, 2)?;
    take(
        from,
        usize::from(u16::from_le_bytes([length[0], length[1]])),
    )
}
