//! The queue of what-ifs: waiting, running and finished ones, with limits for the first and the last.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use napreduce_engine::JobId;
use napreduce_protocol::lock;
use rustix::process::Pid;
use thiserror::Error;

use super::child;
use super::folder::{KeptWhatIf, PartialRun, WhatIfFolder, number_of};
use super::output::SimOutput;
use super::{WhatIf, WhatIfRequest, WhatIfState};
use crate::clock::now_millis;
use crate::shown::Shown;

/// Limit of waiting what-ifs.
pub const WAITING_MAX: usize = 4;
/// Limit of finished what-ifs; the oldest are deleted.
const ENDED_MAX: usize = 8;

/// A what-if cannot be removed.
#[derive(Debug, Error)]
pub enum RemoveError {
    #[error("no such what-if: {0:?}")]
    Absent(String),
    #[error("cannot delete {0} completely: {1}; try again")]
    Io(String, io::Error),
}

/// The what-if to run next.
pub struct Next {
    pub name: String,
    pub request: WhatIfRequest,
}

#[derive(Debug)]
pub struct Queue {
    folder: WhatIfFolder,
    state: Mutex<QueueState>,
    /// Notified when a what-if is added and when the queue is closed.
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState {
    /// Oldest first.
    entries: VecDeque<Entry>,
    last_number: u64,
    /// The running child, while it can be killed.
    process: Option<Pid>,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    what_if: WhatIf,
    /// Present while it waits.
    request: Option<WhatIfRequest>,
    recordings: Vec<Arc<Shown>>,
}

impl Queue {
    /// A queue with the what-ifs of an earlier server.
    pub fn new(folder: WhatIfFolder, kept: Vec<KeptWhatIf>) -> Queue {
        let last_number = kept
            .iter()
            .map(|(what_if, _)| number_of(what_if))
            .max()
            .unwrap_or(0);
        let mut entries = VecDeque::new();
        for (what_if, recordings) in kept {
            entries.push_back(Entry {
                what_if,
                request: None,
                recordings,
            });
        }
        let state = QueueState {
            entries,
            last_number,
            process: None,
            is_closed: false,
        };
        Queue {
            folder,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub fn folder(&self) -> &WhatIfFolder {
        &self.folder
    }

    /// Queues a request under a new name. Returns `None` if too many are waiting.
    pub fn add(
        &self,
        request: WhatIfRequest,
        recording: Option<String>,
        by: &str,
    ) -> Option<WhatIf> {
        let mut state = lock(&self.state);
        if state
            .entries
            .iter()
            .filter(|entry| entry.request.is_some())
            .count()
            >= WAITING_MAX
        {
            return None;
        }
        state.last_number += 1;
        let what_if = WhatIf {
            what_if: format!("what-if-{}", state.last_number),
            by: by.to_owned(),
            asked_millis: now_millis(),
            recording,
            from_millis: request.window.from_millis,
            until_millis: request.window.until_millis,
            jobs: request.jobs.iter().map(JobId::to_string).collect(),
            schedulers: request.schedulers.clone(),
            configuration: request.configuration.clone(),
            ..WhatIf::default()
        };
        state.entries.push_back(Entry {
            what_if: what_if.clone(),
            request: Some(request),
            recordings: Vec::new(),
        });
        self.changed.notify_all();
        Some(what_if)
    }

    /// Waits for the next request and marks it as running. Returns `None` once the queue is closed.
    pub fn next(&self) -> Option<Next> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            let waiting = state
                .entries
                .iter_mut()
                .find_map(|entry| Some((entry.request.take()?, &mut entry.what_if)));
            if let Some((request, what_if)) = waiting {
                what_if.state = WhatIfState::Running;
                what_if.begun_millis = Some(now_millis());
                return Some(Next {
                    name: what_if.what_if.clone(),
                    request,
                });
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sets the running child while it can be killed. Kills it at once if it was removed in the meantime.
    pub fn set_process(&self, process: Option<Pid>) {
        let mut state = lock(&self.state);
        state.process = process;
        let is_wanted = state
            .entries
            .iter()
            .any(|entry| entry.what_if.state == WhatIfState::Running);
        if state.is_closed || !is_wanted {
            state.kill();
        }
    }

    /// Records the outcome of a run.
    pub fn finish(&self, name: &str, outcome: Result<(PartialRun, SimOutput), String>) {
        let mut state = lock(&self.state);
        // A what-if that was removed while it ran has no entry; dropping the run deletes its files.
        let Some(entry) = state
            .entries
            .iter_mut()
            .find(|entry| entry.what_if.what_if == name)
        else {
            return;
        };
        entry.what_if.ended_millis = Some(now_millis());
        let kept = outcome.and_then(|(run, output)| {
            let SimOutput { fidelity, remarks } = output;
            let done = WhatIf { state: WhatIfState::Done, fidelity, remarks, ..entry.what_if.clone() };
            self.folder.keep(run, done).map_err(|error| {
                format!("cannot keep the results: {error}; check the free space of the disk, then try again")
            })
        });
        match kept {
            Ok((what_if, recordings)) => {
                entry.what_if = what_if;
                entry.recordings = recordings;
            }
            Err(error) => {
                entry.what_if.state = WhatIfState::Failed;
                entry.what_if.error = Some(error);
            }
        }
        state.remove_oldest(&self.folder);
    }

    /// Removes a what-if and its results. A running one is killed; its thread deletes the files.
    pub fn remove(&self, name: &str) -> Result<(), RemoveError> {
        let mut state = lock(&self.state);
        let place = state
            .entries
            .iter()
            .position(|entry| entry.what_if.what_if == name);
        let at = place.ok_or_else(|| RemoveError::Absent(name.to_owned()))?;
        match state.entries[at].what_if.state {
            WhatIfState::Running => state.kill(),
            WhatIfState::Queued => {}
            WhatIfState::Done | WhatIfState::Failed => {
                self.folder
                    .remove(name)
                    .map_err(|error| RemoveError::Io(name.to_owned(), error))?;
            }
        }
        state.entries.remove(at);
        Ok(())
    }

    /// Returns all what-ifs, newest first.
    pub fn all(&self) -> Vec<WhatIf> {
        let mut all: Vec<WhatIf> = lock(&self.state)
            .entries
            .iter()
            .rev()
            .map(|entry| entry.what_if.clone())
            .collect();
        for what_if in all
            .iter_mut()
            .filter(|what_if| what_if.state == WhatIfState::Running)
        {
            what_if.percent = self.folder.percent(&what_if.what_if);
        }
        all
    }

    /// Returns the recordings of finished what-ifs, newest first.
    pub fn recordings(&self) -> Vec<Arc<Shown>> {
        lock(&self.state)
            .entries
            .iter()
            .rev()
            .flat_map(|entry| entry.recordings.iter().cloned())
            .collect()
    }

    /// Kills the running what-if and starts no other.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.kill();
        self.changed.notify_all();
    }
}

impl QueueState {
    fn kill(&self) {
        if let Some(process) = self.process {
            child::kill(process);
        }
    }

    fn remove_oldest(&mut self, folder: &WhatIfFolder) {
        let has_ended = |entry: &Entry| entry.what_if.ended_millis.is_some();
        while self.entries.iter().filter(|entry| has_ended(entry)).count() > ENDED_MAX {
            let Some(oldest) = self.entries.iter().position(has_ended) else {
                return;
            };
            if let Some(removed) = self.entries.remove(oldest)
                && let Err(error) = folder.remove(&removed.what_if.what_if)
            {
                tracing::warn!("cannot delete {}: {error}", removed.what_if.what_if);
            }
        }
    }
}
