//! Part files of lines of unequal length, each made from its index alone.
//!
//! Lines are made in blocks, which are measured first to know the offset of each block and the ends of the
//! files.

use std::ops::Range;

use crate::output::{self, OutputError, OutputSettings, Units, WrittenFiles};
use crate::units::Workers;

/// Rows per block.
const BLOCK_ROWS: u64 = 512;

/// Blocks measured in the first round when the amount is given in bytes.
const BLOCKS_AT_FIRST: u64 = 16;

/// Amount of data to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Number of rows.
    Rows(u64),
    /// As many rows as it takes to reach this size; the last one may exceed it.
    Bytes(u64),
}

/// Error of a generator of rows.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// A setting that is out of range.
    #[error("invalid {what}: {given}; choose {allowed}")]
    Setting {
        what: &'static str,
        given: String,
        allowed: String,
    },
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Fails when a setting is out of range.
pub(crate) fn check_range(
    what: &'static str,
    given: u64,
    allowed: std::ops::RangeInclusive<u64>,
) -> Result<(), RowsError> {
    if allowed.contains(&given) {
        return Ok(());
    }
    let allowed = format!("{} to {}", allowed.start(), allowed.end());
    Err(RowsError::Setting {
        what,
        given: given.to_string(),
        allowed,
    })
}

/// Fails when the exponent is out of range.
pub(crate) fn check_exponent(given: f64) -> Result<(), RowsError> {
    use crate::text::EXPONENT_MAX;
    if (0.0..=EXPONENT_MAX).contains(&given) {
        return Ok(());
    }
    let allowed = format!("0 to {EXPONENT_MAX}");
    Err(RowsError::Setting {
        what: "exponent",
        given: given.to_string(),
        allowed,
    })
}

/// Lines by index.
pub(crate) trait Rows: Sync {
    /// Appends row `index` (from 0) with its newline.
    fn append(&self, index: u64, lines: &mut Vec<u8>);
}

/// Writes rows into part files that end at row ends.
///
/// The rows depend on their indices alone, so a smaller amount is a prefix of a larger one.
pub(crate) fn write(
    rows: &impl Rows,
    amount: Amount,
    settings: &OutputSettings,
) -> Result<WrittenFiles, OutputError> {
    let files = settings.part_count()?;
    output::write_planned(settings, || {
        let blocks = Blocks::measure(rows, amount, settings)?;
        let ends = (1..=files)
            .map(|file| blocks.end_of(output::share(blocks.bytes(), file, files)))
            .collect();
        Ok((blocks, ends))
    })
}

/// Blocks of rows with their offsets.
struct Blocks<'r, R> {
    rows: &'r R,
    count: u64,
    /// Offset of each block, and the end of the last one.
    starts: Vec<u64>,
}

impl<'r, R: Rows> Blocks<'r, R> {
    fn measure(
        rows: &'r R,
        amount: Amount,
        settings: &OutputSettings,
    ) -> Result<Self, OutputError> {
        let mut blocks = Self {
            rows,
            count: 0,
            starts: vec![0],
        };
        match amount {
            Amount::Rows(count) => {
                blocks.count = count;
                blocks.extend(0..count.div_ceil(BLOCK_ROWS), settings)?;
            }
            Amount::Bytes(bytes) => {
                // The number of rows is unknown until the blocks reach the size, so all blocks are full.
                blocks.count = u64::MAX;
                let mut done = 0;
                let mut more = BLOCKS_AT_FIRST;
                while blocks.bytes() < bytes {
                    blocks.extend(done..done + more, settings)?;
                    (done, more) = (done + more, (done + more).min(1 << 20));
                }
                blocks.cut(bytes);
            }
        }
        Ok(blocks)
    }

    /// Makes blocks to measure their lengths.
    fn extend(&mut self, range: Range<u64>, settings: &OutputSettings) -> Result<(), OutputError> {
        let count = range.end - range.start;
        #[derive(Default)]
        struct Measurements {
            buffer: Vec<u8>,
            lengths: Vec<(u64, u64)>,
        }
        let step = |measured: &mut Measurements, index: u64| {
            self.fill(range.start + index, &mut measured.buffer);
            measured.lengths.push((index, measured.buffer.len() as u64));
            Ok(())
        };
        let workers = Workers {
            threads: settings.threads,
            units: count,
            watch: &settings.watch,
        };
        let measured = workers.run(|| settings.interrupted(), Measurements::default, step)?;
        let mut lengths: Vec<_> = measured
            .into_iter()
            .flat_map(|thread| thread.lengths)
            .collect();
        lengths.sort_unstable();
        for (_, length) in lengths {
            self.starts.push(self.bytes() + length);
        }
        Ok(())
    }

    /// Drops the rows after the first one that ends at or after `bytes`.
    fn cut(&mut self, bytes: u64) {
        let block = self
            .starts
            .partition_point(|start| *start < bytes)
            .saturating_sub(1);
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

    /// Returns the first end of a row at or after `goal`.
    fn end_of(&self, goal: u64) -> u64 {
        let block = self
            .starts
            .partition_point(|start| *start < goal)
            .saturating_sub(1);
        let start = self.starts[block];
        let Some(before) = (goal - start).checked_sub(1) else {
            return goal;
        };
        let mut buffer = Vec::new();
        self.fill(block as u64, &mut buffer);
        let newline = buffer
            .iter()
            .skip(before as usize)
            .position(|byte| *byte == b'\n');
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
