//! The failure of a task that failed its job, in parts that a program can read.

use napreduce_engine::{AttemptId, FaultPlace};
use serde::{Deserialize, Serialize};

/// A longer message is cut; the reason of the job contains all of it.
const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// A longer record is cut.
const RECORD_BYTES_MAX: usize = 1 << 10;

/// The last failure of the task that failed its job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    pub attempt: AttemptId,
    /// Which component failed.
    pub place: FaultPlace,
    /// The event, its object and a remedy; at most 4 KiB.
    pub message: String,
    /// The record or group that the attempt was working on, if it is known.
    pub record: Option<FailedRecord>,
}

/// A record or group that an attempt failed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRecord {
    /// The path of the file or object; for a reduce, its partition, such as `partition 3`.
    pub input: String,
    /// The position in it: `line 12`, `byte 1048576`, `record 7` or `group 7`, all but lines counted from 0.
    pub position: String,
    /// The beginning of the record, quoted; at most 1 KiB. `None` if it is not known.
    pub text: Option<String>,
}

impl TaskFailure {
    /// Creates a failure; cuts a long message.
    pub fn new(
        attempt: AttemptId,
        place: FaultPlace,
        message: &str,
        record: Option<FailedRecord>,
    ) -> TaskFailure {
        TaskFailure {
            attempt,
            place,
            message: cut(message, MESSAGE_BYTES_MAX),
            record,
        }
    }
}

impl FailedRecord {
    /// Creates a record; cuts a long text.
    pub fn new(
        input: impl Into<String>,
        position: impl Into<String>,
        text: Option<&str>,
    ) -> FailedRecord {
        let text = text.map(|text| cut(text, RECORD_BYTES_MAX));
        FailedRecord {
            input: input.into(),
            position: position.into(),
            text,
        }
    }
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!(
        "{}…",
        &text[..text.floor_char_boundary(bytes_max - '…'.len_utf8())]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_letters() {
        let letters = "ä".repeat(RECORD_BYTES_MAX);
        let record = FailedRecord::new("a.txt", "line 1", Some(&letters));
        let text = record.text.expect("a text");
        assert!(
            text.len() <= RECORD_BYTES_MAX && text.ends_with("ä…"),
            "{} bytes",
            text.len()
        );
        let short = FailedRecord::new("a.txt", "line 1", Some("\"x\""));
        assert_eq!(short.text.as_deref(), Some("\"x\""));
    }
}
