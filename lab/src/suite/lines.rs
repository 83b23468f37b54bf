//! Owns what makes two outputs equal sets of lines, wherever the lines stand and into how many files they go.
//! Outputs that have to be equal byte for byte are compared by their digests.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::outputs::{READ, output_files};
use crate::workspace::WorkError;

/// A fingerprint of the lines of an output that does not depend on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineSet {
    lines: u64,
    pub(super) bytes: u64,
    /// Of the hashes of all lines, so that a line that comes twice counts twice.
    sum: u128,
}

impl LineSet {
    /// That of the files in `folder`, without those whose names begin with `_` or `.`.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(super) fn of(folder: &Path) -> Result<LineSet, WorkError> {
        let mut set = LineSet { lines: 0, bytes: 0, sum: 0 };
        for file in output_files(folder).map_err(WorkError::using(READ, folder))? {
            set.add(&file).map_err(WorkError::using(READ, &file))?;
        }
        Ok(set)
    }

    fn add(&mut self, file: &Path) -> std::io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 20, File::open(file)?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            self.bytes += line.len() as u64;
            self.lines += 1;
            self.sum = self.sum.wrapping_add(xxh3_128(&line));
            line.clear();
        }
        Ok(())
    }

    /// What is wrong with an output that should have these lines; `None` when nothing is.
    pub(super) fn difference(&self, found: &LineSet) -> Option<String> {
        if found == self {
            return None;
        }
        Some(if found.lines == self.lines {
            format!("some of {} lines are others than ours", self.lines)
        } else {
            format!("{} lines where ours have {}", found.lines, self.lines)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn set(parts: &[(&str, &str)]) -> LineSet {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in parts {
            fs::write(folder.path().join(name), text).unwrap();
        }
        LineSet::of(folder.path()).unwrap()
    }

    #[test]
    fn order_and_files_make_no_difference_and_every_line_does() {
        let one = set(&[("part-r-00000", "a\nb\n"), ("part-r-00001", "b\n"), ("_SUCCESS", "{}")]);
        assert_eq!(one.difference(&set(&[("lines", "b\na\nb\n")])), None);
        let fewer = one.difference(&set(&[("lines", "b\na\n")]));
        assert_eq!(fewer.as_deref(), Some("2 lines where ours have 3"));
        let other = one.difference(&set(&[("lines", "b\na\na\n")]));
        assert_eq!(other.as_deref(), Some("some of 3 lines are others than ours"));
        assert_eq!(one.bytes, 6);
    }
}
