//! Tasks that were done as rows, which recordings had before attempts said what they have moved.
//!
//! Owns reading them, for ever. Nothing writes them any more.

use std::collections::HashMap;

use napreduce_engine::AttemptId;
use napreduce_protocol::{AttemptFigures, AttemptSummary};

use super::{kinds, read_attempts, write_attempts};
use crate::files::recording::{Columns, ColumnsWriter, Row};

/// What the attempt that did a task has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskRow {
    attempt: AttemptId,
    input_bytes: u64,
    output_bytes: u64,
}

impl TaskRow {
    /// Tells attempts what they have moved.
    pub(crate) fn tell(rows: Vec<TaskRow>, attempts: &mut [AttemptSummary]) {
        if rows.is_empty() {
            return;
        }
        let moved: HashMap<AttemptId, TaskRow> = rows.into_iter().map(|row| (row.attempt, row)).collect();
        for attempt in attempts {
            if let Some(&TaskRow { input_bytes, output_bytes, .. }) = moved.get(&attempt.attempt) {
                let figures = AttemptFigures { input_bytes, output_bytes, ..AttemptFigures::default() };
                attempt.figures.get_or_insert(figures);
            }
        }
    }
}

impl Row for TaskRow {
    const KIND: u16 = kinds::TASKS;
    const NAME: &'static str = "tasks";

    fn write(rows: &[TaskRow], columns: &mut ColumnsWriter) {
        write_attempts("", rows.iter().map(|row| row.attempt), columns);
        columns.numbers("input_bytes", rows.iter().map(|row| Some(row.input_bytes)));
        columns.numbers("output_bytes", rows.iter().map(|row| Some(row.output_bytes)));
    }

    fn read(columns: &Columns) -> Result<Vec<TaskRow>, String> {
        let attempts = read_attempts("", columns)?;
        let (inputs, outputs) = (columns.numbers("input_bytes")?, columns.numbers("output_bytes")?);
        let row = |(row, attempt): (usize, _)| TaskRow {
            attempt,
            input_bytes: inputs[row].unwrap_or(0),
            output_bytes: outputs[row].unwrap_or(0),
        };
        Ok(attempts.into_iter().enumerate().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use napreduce_engine::{JobId, TaskId, TaskKind, WorkerId};

    use super::*;
    use crate::files::recording::{RecordingReader, RecordingWriter};

    #[test]
    fn what_earlier_recordings_say_of_tasks_is_told_their_attempts() {
        let attempt = |index| {
            let task = TaskId { job: JobId(1), kind: TaskKind::Map, index };
            AttemptId { task, number: 1 }
        };
        let rows: Vec<TaskRow> = (0..3)
            .map(|index| TaskRow { attempt: attempt(index), input_bytes: 9, output_bytes: 4 })
            .collect();
        let mut file = Vec::new();
        let mut recording = RecordingWriter::begin(&mut file).expect("begun");
        recording.add(&rows[1..]).expect("written");
        recording.finish().expect("finished");
        let read = RecordingReader::new(Cursor::new(file)).expect("a recording").all();
        assert_eq!(read, rows[1..]);
        let mut attempts: Vec<AttemptSummary> = (0..3)
            .map(|index| AttemptSummary {
                attempt: attempt(index),
                worker: WorkerId(1),
                worker_name: "w1".to_owned(),
                launched_millis: 0,
                ended_millis: None,
                end: None,
                figures: None,
                moments: None,
            })
            .collect();
        TaskRow::tell(read, &mut attempts);
        let moved =
            attempts.iter().map(|one| one.figures.map(|figures| (figures.input_bytes, figures.output_bytes)));
        assert_eq!(moved.collect::<Vec<_>>(), [None, Some((9, 4)), Some((9, 4))]);
    }
}
