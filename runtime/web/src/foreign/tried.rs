//! Where an attempt is, and for how long it was suspended.
//!
//! Owns both. No dialect of others knows suspension: such an attempt runs, and its naptime stands beside it.

use std::collections::HashMap;

use napreduce_engine::AttemptId;
use napreduce_history_files::Timeline;
use napreduce_protocol::{AttemptSummary, JobDetail};
use schemars::JsonSchema;
use serde::Serialize;

/// Where a task or an attempt is, in MapReduce's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum TriedState {
    Scheduled,
    Running,
    Succeeded,
    Failed,
    Killed,
}

impl TriedState {
    pub fn of(attempt: &AttemptSummary) -> TriedState {
        match attempt.end.as_deref() {
            None if attempt.ended_millis.is_none() => TriedState::Running,
            Some("done") => TriedState::Succeeded,
            Some(end) if end.starts_with("failed") => TriedState::Failed,
            // Whatever else ended it, the task was not at fault.
            _ => TriedState::Killed,
        }
    }
}

/// For how long the attempts of a job were suspended.
#[derive(Debug, Default)]
pub struct Naptimes {
    micros: HashMap<AttemptId, u64>,
}

impl Naptimes {
    /// What still naps does so until `now_millis`.
    pub fn of(job: &JobDetail, now_millis: u64) -> Naptimes {
        let mut micros: HashMap<AttemptId, u64> = HashMap::new();
        let naps = Timeline::of(job, now_millis.saturating_mul(1_000)).naps;
        for nap in naps.iter().filter(|nap| nap.is_suspended()) {
            *micros.entry(nap.attempt).or_default() += nap.until_micros.saturating_sub(nap.from_micros);
        }
        Naptimes { micros }
    }

    /// In milliseconds.
    pub fn millis(&self, attempt: AttemptId) -> u64 {
        self.micros.get(&attempt).map_or(0, |micros| micros / 1_000)
    }
}
