//! Who is next, what is known of each, and how many are kept.
//!
//! Owns these bounds, and that what was removed meanwhile leaves nothing. Does not own how one is run.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use napreduce_engine::JobId;
use rustix::process::Pid;
use thiserror::Error;

use super::child;
use super::folder::{KeptWhatIf, PartialRun, WhatIfFolder, number_of};
use super::said::Said;
use super::{WhatIf, WhatIfRequest, WhatIfState};
use crate::clock::now_millis;
use crate::lock::lock;
use crate::shown::Shown;

/// Those that wait for the one that runs.
pub const WAITING_MAX: usize = 4;
/// Those that have ended; the oldest go.
const ENDED_MAX: usize = 8;

/// Why one cannot be removed.
#[derive(Debug, Error)]
pub enum RemoveError {
    #[error("there is no {0:?}")]
    Absent(String),
    #[error("cannot remove all of {0}: {1}; try again")]
    Io(String, io::Error),
}

/// What is to be run.
pub struct Next {
    pub name: String,
    pub request: WhatIfRequest,
}

/// All what-ifs of a server.
#[derive(Debug)]
pub struct Queue {
    folder: WhatIfFolder,
    known: Mutex<Known>,
    /// One was asked for, or there will be no more.
    changed: Condvar,
}

#[derive(Debug)]
struct Known {
    /// Oldest first.
    entries: VecDeque<Entry>,
    last_number: u64,
    /// Of the child, while it may be killed.
    process: Option<Pid>,
    is_closed: bool,
}

#[derive(Debug)]
struct Entry {
    told: WhatIf,
    /// While it waits.
    request: Option<WhatIfRequest>,
    recordings: Vec<Arc<Shown>>,
}

impl Queue {
    /// With what was kept.
    pub fn over(folder: WhatIfFolder, kept: Vec<KeptWhatIf>) -> Queue {
        let last_number = kept.iter().map(|(told, _)| number_of(told)).max().unwrap_or(0);
        let entry = |(told, recordings)| Entry { told, request: None, recordings };
        let entries = kept.into_iter().map(entry).collect();
        let known = Known { entries, last_number, process: None, is_closed: false };
        Queue { folder, known: Mutex::new(known), changed: Condvar::new() }
    }

    pub fn folder(&self) -> &WhatIfFolder {
        &self.folder
    }

    /// Has one wait for its turn, under a name of its own. None if too many do.
    pub fn add(&self, request: WhatIfRequest, recording: Option<String>, by: &str) -> Option<WhatIf> {
        let mut known = lock(&self.known);
        if known.entries.iter().filter(|entry| entry.request.is_some()).count() >= WAITING_MAX {
            return None;
        }
        known.last_number += 1;
        let told = WhatIf {
            what_if: format!("what-if-{}", known.last_number),
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
        known.entries.push_back(Entry { told: told.clone(), request: Some(request), recordings: Vec::new() });
        self.changed.notify_all();
        Some(told)
    }

    /// The next one, which runs from then on; none when the server ends.
    pub fn next(&self) -> Option<Next> {
        let mut known = lock(&self.known);
        loop {
            if known.is_closed {
                return None;
            }
            let waiting =
                known.entries.iter_mut().find_map(|entry| Some((entry.request.take()?, &mut entry.told)));
            if let Some((request, told)) = waiting {
                (told.state, told.begun_millis) = (WhatIfState::Running, Some(now_millis()));
                return Some(Next { name: told.what_if.clone(), request });
            }
            known = self.changed.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Which process that is, while it may be killed. What nobody wants any more is killed at once.
    pub fn running(&self, process: Option<Pid>) {
        let mut known = lock(&self.known);
        known.process = process;
        let is_wanted = known.entries.iter().any(|entry| entry.told.state == WhatIfState::Running);
        if known.is_closed || !is_wanted {
            known.kill();
        }
    }

    /// What came of it.
    pub fn ended(&self, name: &str, ran: Result<(PartialRun, Said), String>) {
        let mut known = lock(&self.known);
        // Nobody wants what was removed while it ran, and its files go with it.
        let Some(entry) = known.entries.iter_mut().find(|entry| entry.told.what_if == name) else { return };
        entry.told.ended_millis = Some(now_millis());
        let kept = ran.and_then(|(run, said)| {
            let Said { fidelity, remarks } = said;
            let told = WhatIf { state: WhatIfState::Done, fidelity, remarks, ..entry.told.clone() };
            self.folder.keep(run, told).map_err(|error| {
                format!("cannot keep what it made: {error}; see that the machine has room, and try again")
            })
        });
        match kept {
            Ok((told, recordings)) => (entry.told, entry.recordings) = (told, recordings),
            Err(error) => (entry.told.state, entry.told.error) = (WhatIfState::Failed, Some(error)),
        }
        known.forget_oldest(&self.folder);
    }

    /// Removes one and what it made; one that runs is killed, and removed by whoever waits for its end.
    pub fn remove(&self, name: &str) -> Result<(), RemoveError> {
        let mut known = lock(&self.known);
        let place = known.entries.iter().position(|entry| entry.told.what_if == name);
        let at = place.ok_or_else(|| RemoveError::Absent(name.to_owned()))?;
        match known.entries[at].told.state {
            WhatIfState::Running => known.kill(),
            WhatIfState::Queued => {}
            WhatIfState::Done | WhatIfState::Failed => {
                self.folder.remove(name).map_err(|error| RemoveError::Io(name.to_owned(), error))?;
            }
        }
        known.entries.remove(at);
        Ok(())
    }

    /// All that are known, newest first.
    pub fn all(&self) -> Vec<WhatIf> {
        let mut all: Vec<WhatIf> =
            lock(&self.known).entries.iter().rev().map(|entry| entry.told.clone()).collect();
        for told in all.iter_mut().filter(|told| told.state == WhatIfState::Running) {
            told.percent = self.folder.percent(&told.what_if);
        }
        all
    }

    /// What those that are done have made, newest first.
    pub fn recordings(&self) -> Vec<Arc<Shown>> {
        lock(&self.known).entries.iter().rev().flat_map(|entry| entry.recordings.iter().cloned()).collect()
    }

    /// Ends the one that runs, and runs no other.
    pub fn close(&self) {
        let mut known = lock(&self.known);
        known.is_closed = true;
        known.kill();
        self.changed.notify_all();
    }
}

impl Known {
    fn kill(&self) {
        if let Some(process) = self.process {
            child::kill(process);
        }
    }

    fn forget_oldest(&mut self, folder: &WhatIfFolder) {
        let has_ended = |entry: &Entry| entry.told.ended_millis.is_some();
        while self.entries.iter().filter(|entry| has_ended(entry)).count() > ENDED_MAX {
            let Some(oldest) = self.entries.iter().position(has_ended) else { return };
            if let Some(gone) = self.entries.remove(oldest)
                && let Err(error) = folder.remove(&gone.told.what_if)
            {
                tracing::warn!("{}: {error}; remove it", gone.told.what_if);
            }
        }
    }
}
