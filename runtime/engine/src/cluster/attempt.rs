//! A live attempt as the engine knows it.
//!
//! Owns its state, its slot and its clock, which stands still while it is suspended. Attempts that ended are
//! not kept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::effect::Start;
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::preemption::Requester;
use crate::states::AttemptState;
use crate::time::{Span, Time};

/// One try at a task that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) worker: WorkerId,
    pub(crate) from: Start,
    pub(crate) state: AttemptState,
    pub(crate) holds_slot: bool,
    pub(crate) wants_commit: bool,
    pub(crate) launched: Time,
    /// The number of the event with which it was launched.
    pub(crate) launched_at: u64,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
    /// Bytes a second at work, smoothed over its reports.
    #[serde(default)]
    pub(crate) smoothed_rate: Option<u64>,
    /// How long it had been at work when it last reported progress.
    #[serde(default)]
    pub(crate) reported_at: Span,
    #[serde(default)]
    pub(crate) output_bytes: u64,
    pub(crate) suspends: u32,
    /// The slow attempt at the same task beside which it was launched.
    pub(crate) duplicate_of: Option<AttemptId>,
    /// It got a duplicate; it gets no other.
    pub(crate) duplicated: bool,
    /// Another attempt did its task: it is being killed, and nothing it says matters to the task.
    pub(crate) superseded: bool,
    /// Why its kill was ordered, if it was not by a request to preempt.
    pub(crate) kill_reason: Option<Box<str>>,
    /// An operator wants it suspended until he says otherwise.
    #[serde(default)]
    pub(crate) held: bool,
    /// An operator wants it to go on with the next free slot of its worker.
    #[serde(default)]
    pub(crate) recalled: bool,
    /// Since when and why it is suspended, or was last.
    #[serde(default)]
    pub(crate) suspension: Option<Box<Suspension>>,
    /// When it was last ordered to do something other than to start.
    #[serde(default)]
    pub(crate) ordered: Time,
    /// Since when it is suspended and its worker has no slot for it.
    #[serde(default)]
    pub(crate) waits_since: Option<Time>,
    /// How long attempts before it were at work for what the checkpoint holds that it goes on from.
    #[serde(default)]
    pub(crate) kept: Span,
    /// Workers from which it could not read, and was asked to try again.
    #[serde(default)]
    pub(crate) missed: BTreeSet<WorkerId>,
    /// How long it must run without being stopped before a policy may take its slot.
    #[serde(default)]
    pub(crate) spared_for: Span,
    /// It is the master of a job.
    #[serde(skip)]
    pub(crate) is_master: bool,
    active_before: Span,
    active_since: Option<Time>,
}

impl Attempt {
    pub(crate) fn new(id: AttemptId, worker: WorkerId, from: Start, now: Time, event: u64) -> Attempt {
        Attempt {
            id,
            worker,
            from,
            state: AttemptState::Launching,
            holds_slot: true,
            wants_commit: false,
            launched: now,
            launched_at: event,
            bytes_done: 0,
            bytes_total: 0,
            smoothed_rate: None,
            reported_at: Span::default(),
            output_bytes: 0,
            suspends: 0,
            duplicate_of: None,
            duplicated: false,
            superseded: false,
            kill_reason: None,
            held: false,
            recalled: false,
            suspension: None,
            ordered: now,
            waits_since: None,
            kept: Span::default(),
            missed: BTreeSet::new(),
            spared_for: Span::default(),
            is_master: false,
            active_before: Span::default(),
            active_since: None,
        }
    }
}

/// Why an attempt is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// When it was verified stopped.
    pub since: Time,
    /// Who wanted that, or wants now that it stays so or is given up.
    pub by: Requester,
    /// The job that its slot was freed for, if it was for one.
    pub beneficiary: Option<JobId>,
    /// Why, for people.
    pub reason: String,
}

/// How far an attempt was when it saved its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedProgress {
    bytes_done: u64,
    bytes_total: u64,
    smoothed_rate: Option<u64>,
}

impl Attempt {
    /// Which attempt.
    pub fn id(&self) -> AttemptId {
        self.id
    }

    /// Where it runs, or is stopped.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Where its work started.
    pub fn from(&self) -> Start {
        self.from
    }

    /// Where it is.
    pub fn state(&self) -> AttemptState {
        self.state
    }

    /// Whether its process may be using a slot: true until it is gone or verified stopped.
    pub fn holds_slot(&self) -> bool {
        self.holds_slot
    }

    /// When it was ordered to start.
    pub fn launched(&self) -> Time {
        self.launched
    }

    /// Bytes of input consumed, as last reported.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    /// Bytes of input in all, as last reported; zero while unknown.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// How long its process has been at work until `now`, without the time it was suspended.
    pub fn active_time(&self, now: Time) -> Span {
        self.active_before + self.active_since.map_or(Span::default(), |since| now.since(since))
    }

    /// The attempt at the same task that was slow, when it is a duplicate of one.
    pub fn duplicate_of(&self) -> Option<AttemptId> {
        self.duplicate_of
    }

    /// How much of its input it has consumed, in millionths; unknown while its input is.
    pub fn progress_millionths(&self) -> Option<u32> {
        let done = u128::from(self.bytes_done.min(self.bytes_total)) * 1_000_000;
        done.checked_div(u128::from(self.bytes_total)).and_then(|share| u32::try_from(share).ok())
    }

    /// How long attempts were at work for what it has done: itself, and those before it whose work
    /// it goes on with.
    pub fn work_time(&self, now: Time) -> Span {
        self.kept + self.active_time(now)
    }

    /// How long it runs without having been suspended in between; not at all while it does not.
    pub fn runs_for(&self, now: Time) -> Span {
        self.active_since.map_or(Span::default(), |since| now.since(since))
    }

    /// Whether it is no victim: a master never is, and no task yet that was preempted again and again without
    /// progress.
    pub fn is_spared(&self, now: Time) -> bool {
        self.is_master || (self.holds_slot && self.runs_for(now) < self.spared_for)
    }

    /// Whether an operator wants it suspended, so that no policy resumes it.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether an operator wants it resumed, so that it gets the next free slot of its worker.
    pub fn is_recalled(&self) -> bool {
        self.recalled
    }

    /// Whether it was suspended and saves its work now, without a slot, so that its task can go on elsewhere.
    pub fn is_converting(&self) -> bool {
        self.state == AttemptState::Checkpointing && !self.holds_slot
    }

    /// Why it is suspended, or is given up where it was suspended.
    pub fn suspension(&self) -> Option<&Suspension> {
        let stopped = !self.holds_slot && self.state != AttemptState::Killing;
        self.suspension.as_deref().filter(|_| stopped)
    }

    /// Bytes of input a second while it was at work; unknown before it was.
    pub fn rate(&self, now: Time) -> Option<u64> {
        let rate = u128::from(self.bytes_done) * 1_000_000;
        rate.checked_div(u128::from(self.work_time(now).0))
            .map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// How long it will be at work yet if it goes on as it, and those whose work it goes on with, did so far;
    /// unknown before anything was consumed.
    pub fn remaining(&self, now: Time) -> Option<Span> {
        let left = u128::from(self.bytes_total.checked_sub(self.bytes_done)?);
        let remaining =
            (u128::from(self.work_time(now).0) * left).checked_div(u128::from(self.bytes_done))?;
        Some(Span(u64::try_from(remaining).unwrap_or(u64::MAX)))
    }

    /// How long it will be at work yet by its smoothed rate, counted from its last report; unknown before it
    /// has one.
    pub fn smoothed_remaining(&self) -> Option<Span> {
        let left = u128::from(self.bytes_total.checked_sub(self.bytes_done)?) * 1_000_000;
        let remaining = left.checked_div(u128::from(self.smoothed_rate?))?;
        Some(Span(u64::try_from(remaining).unwrap_or(u64::MAX)))
    }

    /// Takes in a report of progress: a quarter of the new rate and three of the old one make the
    /// smoothed rate.
    pub(crate) fn progressed(&mut self, now: Time, bytes_done: u64, bytes_total: u64) {
        let active = self.active_time(now);
        let (more, span) = (bytes_done.saturating_sub(self.bytes_done), active.0 - self.reported_at.0);
        if let Some(rate) = (u128::from(more) * 1_000_000).checked_div(u128::from(span)) {
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            let old = self.smoothed_rate.unwrap_or(rate);
            self.smoothed_rate = Some(old - old / 4 + rate / 4);
            self.reported_at = active;
        }
        (self.bytes_done, self.bytes_total) = (bytes_done, bytes_total);
    }

    /// Begins with what its checkpoint holds.
    pub(crate) fn goes_on_from(&mut self, saved: SavedProgress, kept: Span) {
        (self.bytes_done, self.bytes_total) = (saved.bytes_done, saved.bytes_total);
        self.smoothed_rate = saved.smoothed_rate;
        self.kept = kept;
    }

    /// How far it is, for its task to remember.
    pub(crate) fn progress(&self) -> SavedProgress {
        let Attempt { bytes_done, bytes_total, smoothed_rate, .. } = *self;
        SavedProgress { bytes_done, bytes_total, smoothed_rate }
    }

    pub(crate) fn start_clock(&mut self, now: Time) {
        self.active_since.get_or_insert(now);
    }

    pub(crate) fn stop_clock(&mut self, now: Time) {
        self.active_before = self.active_time(now);
        self.active_since = None;
    }
}
