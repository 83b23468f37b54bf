//! Reports of completed guest tasks.

use std::path::PathBuf;

use napreduce_engine::TaskId;
use napreduce_protocol::{CounterValues, NamedPart, PartOutput};
use serde::{Deserialize, Serialize};

use super::text_forms::{self, GuestTextError};

const FORMAT: &str = "napreduce-guest-report/1";

/// The report of a completed task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestReport {
    format: String,
    #[serde(with = "text_forms")]
    pub task: TaskId,
    pub counters: CounterValues,
    /// Frames written or read, without reports.
    pub frames: u64,
    /// Reports of maps that a reduce passes on.
    #[serde(default, skip_serializing_if = "MapsReport::is_empty")]
    pub maps: MapsReport,
    /// For a reduce, or the map of a map-only job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<GuestPart>,
}

/// Map reports that came with the frames of a reduce.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MapsReport {
    /// The maps, in ascending order.
    pub indices: Vec<u32>,
    /// The sum of their counters.
    pub counters: CounterValues,
    /// Frames that they wrote, for all reduces.
    pub frames: u64,
}

/// A part file waiting for commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPart {
    pub records: u64,
    pub bytes: u64,
    /// xxh3-64 of the file.
    #[serde(with = "text_forms::hexadecimal")]
    pub digest: u64,
    /// Parts of named outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<GuestNamedPart>,
    /// The location for the commit.
    pub pending: PendingPart,
}

/// A part of a named output, next to the part file, with `.` and this name appended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNamedPart {
    pub name: String,
    pub records: u64,
    pub bytes: u64,
    #[serde(with = "text_forms::hexadecimal")]
    pub digest: u64,
}

/// The location of a part before commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingPart {
    /// A file below the job's own directory.
    File(#[serde(with = "napreduce_protocol::path_bytes")] PathBuf),
}

impl MapsReport {
    fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

impl GuestReport {
    pub fn new(task: TaskId, counters: CounterValues, frames: u64) -> GuestReport {
        let format = FORMAT.to_owned();
        let maps = MapsReport::default();
        GuestReport {
            format,
            task,
            counters,
            frames,
            maps,
            part: None,
        }
    }

    pub fn to_json(&self) -> Result<Vec<u8>, GuestTextError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads the output of `to_json`.
    ///
    /// # Errors
    /// Fails if the text is invalid or has another version.
    pub fn from_json(text: &[u8]) -> Result<GuestReport, GuestTextError> {
        text_forms::read(text, &[FORMAT])
    }
}

impl GuestPart {
    /// Creates a part that its task has written to a file.
    pub fn in_file(part: PartOutput, path: PathBuf) -> GuestPart {
        let named = |NamedPart {
                         name,
                         records,
                         bytes,
                         digest,
                         ..
                     }| GuestNamedPart {
            name,
            records,
            bytes,
            digest,
        };
        let PartOutput {
            records,
            bytes,
            digest,
            named: with_names,
            ..
        } = part;
        let named = with_names.into_iter().map(named).collect();
        GuestPart {
            records,
            bytes,
            digest,
            named,
            pending: PendingPart::File(path),
        }
    }

    /// Returns the written output.
    pub fn output(&self) -> PartOutput {
        let named = |part: &GuestNamedPart| NamedPart {
            name: part.name.clone(),
            records: part.records,
            bytes: part.bytes,
            digest: part.digest,
            upload: None,
        };
        let GuestPart {
            records,
            bytes,
            digest,
            ..
        } = *self;
        PartOutput {
            records,
            bytes,
            digest,
            named: self.named.iter().map(named).collect(),
            upload: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_round_trips() {
        let task: TaskId = "job_0001_r_0003".parse().expect("a task");
        let mut counters = CounterValues::default();
        counters.add("REDUCE_INPUT_RECORDS", 7);
        counters.add("bad rows", 1);
        let named = vec![NamedPart {
            name: "errors".to_owned(),
            records: 1,
            bytes: 2,
            digest: 3,
            upload: None,
        }];
        let part = PartOutput {
            records: 4,
            bytes: 5,
            digest: u64::MAX,
            named,
            upload: None,
        };
        let report = GuestReport {
            maps: MapsReport {
                indices: vec![3, 7],
                counters: counters.clone(),
                frames: 9,
            },
            part: Some(GuestPart::in_file(part.clone(), "w/part".into())),
            ..GuestReport::new(task, counters, 11)
        };
        let text = report.to_json().expect("it can be written");
        let read = GuestReport::from_json(&text).expect("it can be read");
        assert_eq!(read, report);
        assert_eq!(read.part.map(|part| part.output()), Some(part));
        let text = String::from_utf8(text).expect("text");
        assert!(text.contains("\"digest\":\"ffffffffffffffff\""), "{text}");
        assert!(text.contains("\"pending\":{\"file\":\"w/part\"}"), "{text}");
        let error = GuestReport::from_json(text.replace("report/1", "report/0").as_bytes());
        assert!(error.is_err_and(|error| error.to_string().contains("report/0")));
    }
}
