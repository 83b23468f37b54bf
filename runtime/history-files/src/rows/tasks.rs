//! Tasks that were done as rows: what they moved.
//!
//! Owns their columns. Does not own how long they took, which attempts say.

use super::{kinds, read_attempts, write_attempts};
use crate::recording::{Columns, ColumnsWriter, Row};
use napreduce_history::DoneTask;

impl Row for DoneTask {
    const KIND: u16 = kinds::TASKS;
    const NAME: &'static str = "tasks";

    fn write(rows: &[DoneTask], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.numbers("input_bytes", rows.iter().map(|row| Some(row.input_bytes)));
        columns.numbers("output_bytes", rows.iter().map(|row| Some(row.output_bytes)));
    }

    fn read(columns: &Columns) -> Result<Vec<DoneTask>, String> {
        let attempts = read_attempts("", columns)?;
        let (inputs, outputs) = (columns.numbers("input_bytes")?, columns.numbers("output_bytes")?);
        let row = |(row, attempt): (usize, _)| DoneTask {
            attempt,
            input_bytes: inputs[row].unwrap_or(0),
            output_bytes: outputs[row].unwrap_or(0),
        };
        Ok(attempts.into_iter().enumerate().map(row).collect())
    }
}
