//! Checks of a coordinator in a simulation: what it keeps must lead to the state that it has.

use napreduce_engine::AttemptState;
use napreduce_local::coordinator::CoordinatorState;
use napreduce_local::world::{Situation, reached};
use serde_json::Value;

use super::ClusterCoordinator;
use super::recovery::{Policy, RecoveryError, RestoreRules, Snapshot, replay};
use crate::journal::{Journal, JournalError};

/// A snapshot of the state is restored after this many written batches.
const RESTORE_INTERVAL: u64 = 40;
/// More of a difference is not logged.
const DIFFERENCE_BYTES_MAX: usize = 300;

impl ClusterCoordinator {
    /// Restores a snapshot of the present state now and then, and reports a difference to the oracle.
    pub(super) fn check_snapshot(&mut self) {
        self.concluded += 1;
        if !self.concluded.is_multiple_of(RESTORE_INTERVAL) {
            return;
        }
        let rules = self.journal.header().rules.clone();
        let present = Snapshot::new(self.local.state());
        let restored = present.restore(
            self.journal.header().epoch_micros,
            RestoreRules {
                settings: rules.settings,
                scheduler: &*self.configuration.scheduler,
                policy: Policy::AsBefore,
            },
        );
        match restored {
            Ok(restored) => self.compare("a restored snapshot", &restored),
            Err(why) => tracing::error!(target: "oracle", "a snapshot cannot be restored: {why}"),
        }
    }

    /// Replays the journal, and reports a difference to the present state to the oracle.
    pub(super) fn check_replay(&self) {
        let directory = self.configuration.directory.coordinator_directory();
        let disk = self.configuration.directory.disk();
        // The disk of the simulation may fail.
        let Ok(Some((header, recovered))) = Journal::read(&**disk, &directory) else {
            return;
        };
        let read_policy = self.configuration.read_policy;
        match replay(&directory, recovered, &header, read_policy, |state| state) {
            Ok(replayed) => self.compare("the replayed journal", &replayed),
            // The snapshot is read when it is decoded.
            Err(RecoveryError::Journal(JournalError::Io { .. })) => {}
            Err(error) => tracing::error!(target: "oracle", "{error}"),
        }
    }

    fn compare(&self, what: &str, other: &CoordinatorState) {
        let present = content(self.local.state());
        let other = content(other);
        if present == other {
            return;
        }
        let mut differences = Vec::new();
        find_differences("", &present, &other, &mut differences);
        differences.truncate(3);
        tracing::error!(
            target: "oracle",
            "{what} differs from the state of the coordinator: {}",
            differences.join("; ")
        );
    }
}

/// Returns the content of a state's snapshot that follows from the journal alone. The acknowledgements of workers and
/// the departure of those that may leave are not journaled.
fn content(state: &CoordinatorState) -> Value {
    let mut content = serde_json::to_value(Snapshot::new(state)).unwrap_or_default();
    content["shown"] = shown(state);
    let links = &mut content["state"]["links"];
    let Some(links) = links.as_array_mut() else {
        return content;
    };
    links.retain(|link| link[1]["leaving"] != true);
    for link in links {
        let orders = &mut link[1]["orders"];
        let kept = orders["kept"].as_array().map_or(0, Vec::len) as u64;
        *orders = Value::from(orders["acknowledged"].as_u64().unwrap_or(0) + kept);
    }
    content
}

/// Returns what the coordinator tells operators of its jobs and attempts.
fn shown(state: &CoordinatorState) -> Value {
    let mut lines = Vec::new();
    for job in state.view().jobs() {
        lines.push(Value::from(format!(
            "{}: pause {:?}",
            job.id(),
            job.pause()
        )));
    }
    for attempt in state.view().attempts() {
        let line = format!(
            "{} on {} is {}",
            attempt.id(),
            attempt.worker(),
            attempt.state()
        );
        lines.push(Value::from(line));
    }
    Value::from(lines)
}

/// Lists the places where two values differ, with both values.
fn find_differences(place: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for (key, value) in one {
                find_differences(&format!("{place}/{key}"), value, &other[key], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, value) in one.iter().enumerate() {
                find_differences(&format!("{place}/{index}"), value, &other[index], found);
            }
        }
        _ if one == other => {}
        _ => {
            let mut difference = format!("{place} is {one}, not {other}");
            difference.truncate(difference.floor_char_boundary(DIFFERENCE_BYTES_MAX));
            found.push(difference);
        }
    }
}

/// Notes what a coordinator finds after its start.
pub(super) fn note_recovered(state: &CoordinatorState) {
    for attempt in state.view().attempts() {
        let situation = match attempt.state() {
            AttemptState::Launching => Situation::RecoveredLaunching,
            AttemptState::Running => Situation::RecoveredRunning,
            AttemptState::Suspending => Situation::RecoveredSuspending,
            AttemptState::Suspended => Situation::RecoveredSuspended,
            AttemptState::Resuming => Situation::RecoveredResuming,
            AttemptState::Checkpointing => Situation::RecoveredCheckpointing,
            AttemptState::Killing => Situation::RecoveredKilling,
            AttemptState::Finished(_) => continue,
        };
        reached(situation);
    }
    for job in state.view().jobs() {
        if job.pause().is_some() {
            reached(Situation::RecoveredPaused);
        }
    }
}
