//! Events as rows, and what a head has no room for: parts, counters, a long reason.
//!
//! Owns their columns. Does not own when something is too long for a head (`head`).

use napreduce_protocol::{HistoryLine, PartReport};

use super::{kinds, or_empty};
use crate::files::recording::{Columns, ColumnsWriter, Row};

/// A counter of a job that has too many for its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterRow {
    pub(crate) name: String,
    pub(crate) value: u64,
}

/// Why a job did not succeed, when that is too long for its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReasonRow(pub(crate) String);

impl Row for HistoryLine {
    const KIND: u16 = kinds::EVENTS;
    const NAME: &'static str = "events";

    fn times(&self) -> Option<(u64, u64)> {
        let first = self.at_millis.saturating_mul(1_000);
        Some((first, first.saturating_add(999)))
    }

    fn text_bytes(&self) -> usize {
        self.text.len()
    }

    fn write(rows: &[HistoryLine], columns: &mut ColumnsWriter) {
        columns.differences("at_millis", rows.iter().map(|row| Some(row.at_millis)));
        columns.texts("text", rows.iter().map(|row| Some(row.text.as_str())));
    }

    fn read(columns: &Columns) -> Result<Vec<HistoryLine>, String> {
        let (times, mut texts) = (columns.all_numbers("at_millis")?, columns.texts("text")?);
        let row = |(row, at_millis): (usize, u64)| HistoryLine { at_millis, text: or_empty(&mut texts, row) };
        Ok(times.into_iter().enumerate().map(row).collect())
    }
}

impl Row for PartReport {
    const KIND: u16 = kinds::PARTS;
    const NAME: &'static str = "parts";

    fn text_bytes(&self) -> usize {
        self.name.len()
    }

    fn write(rows: &[PartReport], columns: &mut ColumnsWriter) {
        columns.texts("name", rows.iter().map(|row| Some(row.name.as_str())));
        columns.numbers("records", rows.iter().map(|row| Some(row.records)));
        columns.numbers("bytes", rows.iter().map(|row| Some(row.bytes)));
        columns.numbers("digest", rows.iter().map(|row| Some(row.digest)));
    }

    fn read(columns: &Columns) -> Result<Vec<PartReport>, String> {
        let mut names = columns.texts("name")?;
        let (records, bytes) = (columns.all_numbers("records")?, columns.all_numbers("bytes")?);
        let digests = columns.all_numbers("digest")?;
        let row = |row: usize| PartReport {
            name: or_empty(&mut names, row),
            records: records[row],
            bytes: bytes[row],
            digest: digests[row],
        };
        Ok((0..columns.rows()).map(row).collect())
    }
}

impl Row for CounterRow {
    const KIND: u16 = kinds::COUNTERS;
    const NAME: &'static str = "counters";

    fn text_bytes(&self) -> usize {
        self.name.len()
    }

    fn write(rows: &[CounterRow], columns: &mut ColumnsWriter) {
        columns.texts("name", rows.iter().map(|row| Some(row.name.as_str())));
        columns.numbers("value", rows.iter().map(|row| Some(row.value)));
    }

    fn read(columns: &Columns) -> Result<Vec<CounterRow>, String> {
        let (mut names, values) = (columns.texts("name")?, columns.all_numbers("value")?);
        let row = |(row, value): (usize, u64)| CounterRow { name: or_empty(&mut names, row), value };
        Ok(values.into_iter().enumerate().map(row).collect())
    }
}

impl Row for ReasonRow {
    const KIND: u16 = kinds::REASON;
    const NAME: &'static str = "reasons";

    fn text_bytes(&self) -> usize {
        self.0.len()
    }

    fn write(rows: &[ReasonRow], columns: &mut ColumnsWriter) {
        columns.texts("text", rows.iter().map(|row| Some(row.0.as_str())));
    }

    fn read(columns: &Columns) -> Result<Vec<ReasonRow>, String> {
        let mut texts = columns.texts("text")?;
        Ok((0..columns.rows()).map(|row| ReasonRow(or_empty(&mut texts, row))).collect())
    }
}
