//! The input position of an attempt, for panic messages: `data/a.log byte 1048576`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use napreduce_engine::listed;

listed! {
    /// What the numbers of a position count.
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

/// What an attempt reads now. Moving it is two relaxed stores, cheap enough for every record.
#[derive(Debug, Default)]
pub struct Position {
    source: Mutex<Option<(String, PositionUnit)>>,
    start: AtomicU64,
    end: AtomicU64,
}

impl Position {
    /// Names what is read from now on, such as a path, and what its positions count; starts at 0.
    pub fn enter(&self, source: impl Into<String>, unit: PositionUnit) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some((source.into(), unit));
        self.at(0);
    }

    /// Forgets what was read.
    pub fn leave(&self) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = None;
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

    /// The position for people, such as `data/a.log byte 1048576`; `None` when nothing is being read.
    pub fn describe(&self) -> Option<String> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, unit) = source.as_ref()?;
        let (start, end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        Some(if end > start.saturating_add(1) {
            format!("{name} {unit}s {start}..{end}")
        } else {
            format!("{name} {unit} {start}")
        })
    }
}
