//! What attempts that failed have printed, as rows.
//!
//! Owns their columns. Does not own how much is kept (live).

use super::{kinds, or_empty, read_attempts, write_attempts};
use crate::KeptLog;
use crate::files::recording::{Columns, ColumnsWriter, Row};

impl Row for KeptLog {
    const KIND: u16 = kinds::LOGS;
    const NAME: &'static str = "logs";

    fn text_bytes(&self) -> usize {
        self.stderr.len()
    }

    fn write(rows: &[KeptLog], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.texts("stderr", rows.iter().map(|row| Some(&*row.stderr)));
    }

    fn read(columns: &Columns) -> Result<Vec<KeptLog>, String> {
        let mut texts = columns.texts("stderr")?;
        let row = |(row, attempt): (usize, _)| KeptLog { attempt, stderr: or_empty(&mut texts, row).into() };
        Ok(read_attempts("", columns)?.into_iter().enumerate().map(row).collect())
    }
}
