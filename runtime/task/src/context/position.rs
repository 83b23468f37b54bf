//! The input position of an attempt, for panic messages: `data/a.log byte 1048576`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use napreduce_engine::listed;
use napreduce_protocol::{FailedRecord, lock};

listed! {
    /// The unit of a position.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PositionUnit {
        /// Bytes of an input file, from 0.
        Byte = "byte",
        /// Records, from 0.
        Record = "record",
        /// Groups of keys, from 0.
        Group = "group",
    }
}

#[derive(Debug)]
enum Source {
    /// The name of an input; the numbers are places in it.
    Input { name: String, unit: PositionUnit },
    /// The whole position, and the record there if there is one.
    Place {
        text: String,
        record: Option<FailedRecord>,
    },
}

/// The input that an attempt reads now. An update is two relaxed stores, cheap enough for every record.
#[derive(Debug, Default)]
pub struct Position {
    source: Mutex<Option<Source>>,
    start: AtomicU64,
    end: AtomicU64,
}

impl Position {
    /// Sets the name of the input, such as a path, and the unit of its positions; starts at 0.
    pub fn enter(&self, source: impl Into<String>, unit: PositionUnit) {
        self.set(Source::Input {
            name: source.into(),
            unit,
        });
        self.at(0);
    }

    /// Sets the whole position, such as `after group 3`, until the next input is entered.
    pub fn set_text(&self, position: impl Into<String>) {
        self.set(Source::Place {
            text: position.into(),
            record: None,
        });
    }

    /// Sets the whole position, such as `data/a.log line 3`, and the record there, until the next input is entered.
    pub fn set_record(&self, position: impl Into<String>, record: FailedRecord) {
        self.set(Source::Place {
            text: position.into(),
            record: Some(record),
        });
    }

    fn set(&self, source: Source) {
        *lock(&self.source) = Some(source);
    }

    /// Clears the position.
    pub fn leave(&self) {
        *lock(&self.source) = None;
    }

    /// Moves to one unit of the source.
    #[inline]
    pub fn at(&self, start: u64) {
        self.at_range(start, start);
    }

    /// Moves to the units `start..end` of the source.
    #[inline]
    pub fn at_range(&self, start: u64, end: u64) {
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// Returns the record at this position; the first one of a range. `None` if nothing is being read, or the
    /// position is between two records.
    pub fn record(&self) -> Option<FailedRecord> {
        let source = lock(&self.source);
        match source.as_ref()? {
            Source::Input { name, unit } => {
                let start = self.start.load(Ordering::Relaxed);
                Some(FailedRecord::new(name, format!("{unit} {start}"), None))
            }
            Source::Place { record, .. } => record.clone(),
        }
    }

    /// Returns the position for people, such as `data/a.log byte 1048576`; `None` if nothing is being read.
    pub fn describe(&self) -> Option<String> {
        let source = lock(&self.source);
        let (name, unit) = match source.as_ref()? {
            Source::Input { name, unit } => (name, unit),
            Source::Place { text, .. } => return Some(text.clone()),
        };
        let start = self.start.load(Ordering::Relaxed);
        let end = self.end.load(Ordering::Relaxed);
        Some(if end > start.saturating_add(1) {
            format!("{name} {unit}s {start}..{end}")
        } else {
            format!("{name} {unit} {start}")
        })
    }
}
