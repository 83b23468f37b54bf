//! Lines of unequal length, each made from its number alone, as part files.
//!
//! Owns how many there are (so many rows, or as many as fill so many bytes), where each block of them begins
//! and where files end. Does not own what stands in a line.

use std::ops::Range;

use crate::output::{self, OutputError, OutputSettings, Units, Written};
use crate::units;

/// Rows that are made in one piece.
const BLOCK_ROWS: u64 = 512;

/// Blocks that are measured at once, at first, when bytes are asked for.
const BLOCKS_AT_FIRST: u64 = 16;

/// How much to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many rows.
    Rows(u64),
    /// As many rows as it takes to reach so many bytes: the last one may go beyond.
    Bytes(u64),
}

/// Why rows were not written.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// A setting that cannot be had.
    #[error("{given} {what} asked for; choose {allowed}")]
    Setting { what: &'static str, given: String, allowed: String },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// A setting within its range.
pub(crate) fn within(
    what: &'static str,
    given: u64,
    allowed: std::ops::RangeInclusive<u64>,
) -> Result<(), RowsError> {
    if allowed.contains(&given) {
        return Ok(());
    }
    let allowed = format!("{} to {}", allowed.start(), allowed.end());
    Err(RowsError::Setting { what, given: given.to_string(), allowed })
}

/// An exponent that makes a distribution.
pub(crate) fn exponent_within(given: f64) -> Result<(), RowsError> {
    use crate::text::EXPONENT_MAX;
    if (0.0..=EXPONENT_MAX).contains(&given) {
        return Ok(());
    }
    let allowed = format!("0 to {EXPONENT_MAX}");
    Err(RowsError::Setting { what: "as exponent", given: given.to_string(), allowed })
}

/// Lines by their numbers.
pub(crate) trait Rows: Sync {
    /// Appends row `index` (from 0), with its newline.
    fn append(&self, index: u64, lines: &mut Vec<u8>);
}

/// Writes rows into part files, each of which ends with a row.
///
/// What is written depends on the rows and the amount alone; a smaller amount is the beginning of a
/// larger one.
pub(crate) fn write(
    rows: &impl Rows,
    amount: Amount,
    settings: &OutputSettings,
) -> Result<Written, OutputError> {
    let files = settings.part_count()?;
    output::write_planned(settings, || {
        let blocks = Blocks::measure(rows, amount, settings)?;
        let ends =
            (1..=files).map(|file| blocks.end_of(output::share(blocks.bytes(), file, files))).collect();
        Ok((blocks, ends))
    })
}

/// All rows in blocks whose places are known.
struct Blocks<'r, R> {
    rows: &'r R,
    count: u64,
    /// Where each block begins, and where the last one ends.
    starts: Vec<u64>,
}

impl<'r, R: Rows> Blocks<'r, R> {
    fn measure(rows: &'r R, amount: Amount, settings: &OutputSettings) -> Result<Self, OutputError> {
        let mut blocks = Self { rows, count: 0, starts: vec![0] };
        match amount {
            Amount::Rows(count) => {
                blocks.count = count;
                blocks.extend(0..count.div_ceil(BLOCK_ROWS), settings)?;
            }
            Amount::Bytes(bytes) => {
                // Blocks are whole until it is known where the end is.
                blocks.count = u64::MAX;
                let (mut done, mut more) = (0, BLOCKS_AT_FIRST);
                while blocks.bytes() < bytes {
                    blocks.extend(done..done + more, settings)?;
                    (done, more) = (done + more, (done + more).min(1 << 20));
                }
                blocks.cut(bytes);
            }
        }
        Ok(blocks)
    }

    /// Makes blocks to see how long they are.
    fn extend(&mut self, range: Range<u64>, settings: &OutputSettings) -> Result<(), OutputError> {
        let count = range.end - range.start;
        let step = |(buffer, lengths): &mut (Vec<u8>, Vec<(u64, u64)>), index: u64| {
            self.fill(range.start + index, buffer);
            lengths.push((index, buffer.len() as u64));
            Ok(())
        };
        let interrupted = || settings.interrupted();
        let (threads, watch) = (settings.threads, &settings.watch);
        let measured = units::run(threads, count, watch, interrupted, Default::default, step)?;
        let mut lengths: Vec<_> = measured.into_iter().flat_map(|(_, lengths)| lengths).collect();
        lengths.sort_unstable();
        for (_, length) in lengths {
            self.starts.push(self.bytes() + length);
        }
        Ok(())
    }

    /// Ends behind the first row that ends at or behind `bytes`.
    fn cut(&mut self, bytes: u64) {
        let block = self.starts.partition_point(|start| *start < bytes).saturating_sub(1);
        let start = self.starts[block];
        let mut lines = Vec::new();
        let first = block as u64 * BLOCK_ROWS;
        self.count = first;
        while start + (lines.len() as u64) < bytes {
            self.rows.append(self.count, &mut lines);
            self.count += 1;
        }
        self.starts.truncate(block + 1);
        if !lines.is_empty() {
            self.starts.push(start + lines.len() as u64);
        }
    }

    fn bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn fill(&self, block: u64, buffer: &mut Vec<u8>) {
        buffer.clear();
        let first = block * BLOCK_ROWS;
        for index in first..self.count.min(first + BLOCK_ROWS) {
            self.rows.append(index, buffer);
        }
    }

    /// The first end of a row at or behind `goal`.
    fn end_of(&self, goal: u64) -> u64 {
        let block = self.starts.partition_point(|start| *start < goal).saturating_sub(1);
        let start = self.starts[block];
        let Some(before) = (goal - start).checked_sub(1) else { return goal };
        let mut buffer = Vec::new();
        self.fill(block as u64, &mut buffer);
        let newline = buffer.iter().skip(before as usize).position(|byte| *byte == b'\n');
        goal + newline.expect("a block ends with a newline") as u64
    }
}

impl<R: Rows> Units for Blocks<'_, R> {
    fn count(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn make(&self, unit: u64, buffer: &mut Vec<u8>) -> u64 {
        self.fill(unit, buffer);
        self.starts[unit as usize]
    }
}
