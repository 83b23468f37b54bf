//! The trailer: where the frames are, how many rows they have and of which time.
//!
//! Owns its columns. Does not own where it stands in the file.

use super::TRAILER;
use super::columns::{Columns, ColumnsWriter};

/// A frame of a recording, as the trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedFrame {
    /// What its rows are.
    pub kind: u16,
    /// Where it begins.
    pub offset: u64,
    /// How many rows it has.
    pub rows: u64,
    /// The earliest and the latest moment of its rows, in microseconds since 1970; `None` when that is not
    /// known.
    pub times: Option<(u64, u64)>,
}

pub(super) fn write(frames: &[RecordedFrame]) -> ColumnsWriter {
    let mut columns = ColumnsWriter::new(frames.len());
    columns.numbers("kind", frames.iter().map(|frame| Some(frame.kind.into())));
    columns.differences("offset", frames.iter().map(|frame| Some(frame.offset)));
    columns.numbers("rows", frames.iter().map(|frame| Some(frame.rows)));
    columns.differences("first_micros", frames.iter().map(|frame| Some(frame.times?.0)));
    columns.differences("last_micros", frames.iter().map(|frame| Some(frame.times?.1)));
    columns
}

pub(super) fn read(kind: u16, columns: &Columns) -> Result<Vec<RecordedFrame>, String> {
    if kind != TRAILER {
        return Err("it is no trailer".to_owned());
    }
    let (kinds, offsets) = (columns.all_small_numbers("kind")?, columns.all_numbers("offset")?);
    let (rows, firsts) = (columns.all_numbers("rows")?, columns.numbers("first_micros")?);
    let lasts = columns.numbers("last_micros")?;
    let frame = |row: usize| {
        let kind = u16::try_from(kinds[row]).map_err(|_| format!("it has the kind {}", kinds[row]))?;
        let times = firsts[row].zip(lasts[row]);
        Ok(RecordedFrame { kind, offset: offsets[row], rows: rows[row], times })
    };
    // A frame that is named twice would be read twice.
    match offsets.is_sorted_by(|one, next| one < next) {
        true => (0..columns.rows()).map(frame).collect(),
        false => Err("its frames are not in order".to_owned()),
    }
}
