//! Planning of splits: files are checked, cut by size, and combined if they are small.

use napreduce_connectors::compression::Compression;
use napreduce_protocol::{InputSplit, Split};

use super::error::InputError;
use super::format::{InputFormat, Splitting};
use super::paths::InputFile;

/// Concurrent checks of objects in stores.
const CHECKS_AT_ONCE: usize = 16;

/// Cost of opening a file, in bytes read, so that very many tiny files make more than one split. Measured:
/// opening and closing two or three files takes about as long as starting a task.
const OPENING_BYTES: u64 = 32 << 10;
/// Minimum number of splits to keep when combining files. A constant independent of the slots, so that the
/// same input makes the same splits and part files everywhere.
const SPLITS_MIN: u64 = 8;

/// Checks each file with its format; objects in stores concurrently, because of their latency.
pub(crate) fn check_files<F: InputFormat>(
    files: &[InputFile],
    format: &F,
) -> Result<(), InputError> {
    let check = |files: &[InputFile]| files.iter().try_for_each(|file| format.check(&file.path));
    if files.iter().all(|file| file.version.is_none()) {
        return check(files);
    }
    std::thread::scope(|scope| {
        let share = files.len().div_ceil(CHECKS_AT_ONCE).max(1);
        let begun: Vec<_> = files
            .chunks(share)
            .map(|files| scope.spawn(move || check(files)))
            .collect();
        // Report the first error in the order of the files.
        begun.into_iter().try_for_each(|check| {
            check
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Returns a warning about compressed files of zero bytes, which no compressor writes.
pub(crate) fn about_empty(files: &[Vec<InputFile>]) -> Option<String> {
    let empty = files.iter().flatten().filter(|file| file.size == 0);
    let mut empty = empty.filter_map(|file| Some((file, Compression::of(&file.path)?)));
    let (first, compression) = empty.next()?;
    let others = match empty.count() {
        0 => String::new(),
        more => format!(" ({more} more compressed files, too)"),
    };
    let first = first.path.display();
    Some(format!(
        "{first} has 0 bytes{others}, which is not valid {compression} data; it is read as an empty file"
    ))
}

/// Cuts `files` into splits of about `split_size` bytes, in the order of the files. A last piece of at most a
/// tenth of `split_size` is merged into the one before. An empty file has no split, unless a file is a
/// record.
pub fn plan_splits<F: InputFormat>(
    files: &[InputFile],
    split_size: u64,
    format: &F,
) -> Result<Vec<InputSplit>, InputError> {
    let mut splits = Vec::new();
    for file in files {
        match format.splitting(&file.path) {
            Splitting::Anywhere => cut(file, split_size.max(1), &mut splits),
            Splitting::Multiples(length) => {
                cut(
                    file,
                    checked_multiple(file, split_size, length)?,
                    &mut splits,
                );
            }
            Splitting::Compressed(_) | Splitting::FromStart if file.size == 0 => {}
            Splitting::Compressed(_) | Splitting::FromStart | Splitting::Whole => {
                splits.push(file.whole());
            }
        }
    }
    Ok(splits.into_iter().map(InputSplit::from).collect())
}

/// Combines consecutive splits while their total, with the cost of opening each file, is at most one split
/// size and at most an eighth of the whole input. The order of the input is preserved.
pub fn combine(splits: Vec<InputSplit>, split_size: u64) -> Vec<InputSplit> {
    let cost = |split: &InputSplit| split.length().saturating_add(OPENING_BYTES);
    if splits.len() as u64 <= SPLITS_MIN {
        return splits;
    }
    let all = splits
        .iter()
        .fold(0, |sum: u64, split| sum.saturating_add(cost(split)));
    let limit = split_size.min(all.div_ceil(SPLITS_MIN));
    let mut combined: Vec<InputSplit> = Vec::new();
    let mut filled = 0;
    for split in splits {
        let more = cost(&split);
        match combined.last_mut() {
            Some(last) if more.saturating_add(filled) <= limit => {
                last.parts.extend(split.parts);
                filled += more;
            }
            _ => {
                combined.push(split);
                filled = more;
            }
        }
    }
    combined
}

/// Returns the split size in whole records, at least one.
fn checked_multiple(file: &InputFile, split_size: u64, length: usize) -> Result<u64, InputError> {
    if length == 0 {
        return Err(InputError::NoRecordLength);
    }
    let bytes = length as u64;
    if !file.size.is_multiple_of(bytes) {
        return Err(InputError::PartialRecord {
            path: file.path.clone(),
            size: file.size,
            length,
        });
    }
    Ok((split_size / bytes).max(1) * bytes)
}

fn cut(file: &InputFile, split_size: u64, splits: &mut Vec<Split>) {
    let mut offset = 0;
    while offset < file.size {
        let rest = file.size - offset;
        let length = if rest > split_size.saturating_add(split_size / 10) {
            split_size
        } else {
            rest
        };
        splits.push(Split {
            offset,
            length,
            ..file.whole()
        });
        offset += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::input::{FixedRecords, TextLines, WholeFiles};

    /// Returns the offset and length of each split of one file.
    fn plan<F: InputFormat>(name: &str, size: u64, split_size: u64, format: &F) -> Vec<(u64, u64)> {
        let file = InputFile {
            path: name.into(),
            size,
            version: None,
        };
        let splits = plan_splits(&[file], split_size, format).expect("it can be planned");
        let parts: Vec<Split> = splits.into_iter().flat_map(|split| split.parts).collect();
        assert!(
            parts
                .iter()
                .all(|part| part.file_length == size && part.path == Path::new(name))
        );
        parts
            .iter()
            .map(|part| (part.offset, part.length))
            .collect()
    }

    #[test]
    fn small_remainder_joins_last_split() {
        assert_eq!(plan("a", 0, 100, &TextLines), []);
        assert_eq!(plan("a", 99, 100, &TextLines), [(0, 99)]);
        assert_eq!(plan("a", 110, 100, &TextLines), [(0, 110)]);
        assert_eq!(plan("a", 111, 100, &TextLines), [(0, 100), (100, 11)]);
        assert_eq!(
            plan("a", 310, 100, &TextLines),
            [(0, 100), (100, 100), (200, 110)]
        );
        assert_eq!(plan("a", 2, 0, &TextLines), [(0, 1), (1, 1)]);
        assert_eq!(
            plan("a", u64::MAX, u64::MAX - 1, &TextLines),
            [(0, u64::MAX)]
        );
    }

    #[test]
    fn every_byte_is_in_exactly_one_split() {
        for size in 0..400 {
            for split_size in [1, 3, 7, 64, 100] {
                let mut end = 0;
                for (offset, length) in plan("a", size, split_size, &FixedRecords { length: 1 }) {
                    assert_eq!(offset, end);
                    assert!(length > 0 && length <= split_size + split_size / 10);
                    end = offset + length;
                }
                assert_eq!(end, size);
            }
        }
    }

    #[test]
    fn fixed_record_splits_end_between_records() {
        assert_eq!(
            plan("a", 1000, 250, &FixedRecords { length: 100 }),
            [(0, 200), (200, 200), (400, 200), (600, 200), (800, 200)]
        );
        assert_eq!(
            plan("a", 300, 10, &FixedRecords { length: 100 }),
            [(0, 100), (100, 100), (200, 100)]
        );

        let file = InputFile {
            path: "data/x".into(),
            size: 1050,
            version: None,
        };
        let error = plan_splits(&[file], 500, &FixedRecords { length: 100 })
            .expect_err("half a record is left");
        assert_eq!(
            error.to_string(),
            "data/x has 1050 bytes, which is not a multiple of the record length 100"
        );
    }

    #[test]
    fn compressed_and_whole_files_are_not_split() {
        for (name, compression) in [("a.gz", "gzip"), ("b/a.ZST", "zstd")] {
            assert_eq!(plan(name, 1000, 100, &TextLines), [(0, 1000)]);
            assert_eq!(
                plan(name, 1001, 100, &FixedRecords { length: 100 }),
                [(0, 1001)]
            );
            assert_eq!(plan(name, 0, 100, &TextLines), []);
            let path = Path::new(name);
            assert_eq!(
                TextLines.splitting(path).refusal(path),
                Some(format!(
                    "{name} is compressed with {compression} and cannot be split"
                ))
            );
        }
        assert_eq!(plan("a", 1000, 100, &WholeFiles), [(0, 1000)]);
        assert_eq!(
            plan("a", 0, 100, &WholeFiles),
            [(0, 0)],
            "an empty file is a record too"
        );
    }

    /// Returns the number of parts of each combined split, for files of these sizes.
    fn combined(sizes: &[u64], split_size: u64) -> Vec<usize> {
        let file = |(number, size): (usize, &u64)| InputFile {
            path: format!("{number}").into(),
            size: *size,
            version: None,
        };
        let files: Vec<InputFile> = sizes.iter().enumerate().map(file).collect();
        let plain = plan_splits(&files, split_size, &WholeFiles).expect("it can be planned");
        let splits = combine(plain.clone(), split_size);
        let flat = |splits: &[InputSplit]| {
            splits
                .iter()
                .flat_map(|split| split.parts.clone())
                .collect::<Vec<_>>()
        };
        assert!(
            flat(&splits) == flat(&plain),
            "the order of the input stays"
        );
        splits.iter().map(|split| split.parts.len()).collect()
    }

    #[test]
    fn small_files_are_combined_in_order() {
        let megabyte = 1 << 20;
        assert_eq!(
            combined(&[10; 8], 64 * megabyte),
            [1; 8],
            "few files keep a task each"
        );
        assert_eq!(combined(&[10; 2000], 64 * megabyte), [250; 8]);
        assert_eq!(
            combined(&[10; 2000], megabyte).len(),
            2000_usize.div_ceil(31)
        );
        let twenty_thousand = combined(&[1_000; 20_000], 64 * megabyte);
        assert!(
            (8..20).contains(&twenty_thousand.len()),
            "{twenty_thousand:?}"
        );
        let mixed = combined(
            &[[megabyte; 9].as_slice(), &[10; 40]].concat(),
            64 * megabyte,
        );
        assert_eq!(mixed, [1, 1, 1, 1, 1, 1, 1, 1, 10, 31]);
        assert_eq!(
            combined(&[megabyte; 20], megabyte),
            [1; 20],
            "none is small"
        );
        assert_eq!(combined(&[u64::MAX; 10], u64::MAX), [1; 10]);
    }
}
