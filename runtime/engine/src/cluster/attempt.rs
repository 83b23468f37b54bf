//! A live attempt: its state, its slot, and its work time, which excludes suspensions. Ended attempts are not
//! kept.

use serde::{Deserialize, Serialize};

use crate::effect::Start;
use crate::ids::{AttemptId, JobId, WorkerId};
use crate::pause::Hold;
use crate::preemption::{PreemptRequest, Requester};
use crate::sorted::SortedSet;
use crate::states::AttemptState;
use crate::time::{Span, Time};

/// A live try at a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) worker: WorkerId,
    pub(crate) from: Start,
    pub(crate) state: AttemptState,
    pub(crate) holds_slot: bool,
    pub(crate) wants_commit: bool,
    pub(crate) launched: Time,
    /// The number of the event that launched it.
    pub(crate) launched_at: u64,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
    /// Bytes per second of work, smoothed over its reports.
    #[serde(default)]
    pub(crate) smoothed_rate: Option<u64>,
    /// How its consumed input grew.
    #[serde(default)]
    pub(crate) movement: Movement,
    /// Its own work time until the last map output was ready, if it is a reduce.
    #[serde(default)]
    pub(crate) waited: Span,
    /// The bytes that it had consumed by then.
    #[serde(default)]
    pub(crate) consumed_while_waiting: u64,
    #[serde(default)]
    pub(crate) output_bytes: u64,
    #[serde(default)]
    pub(crate) output_digest: Option<u64>,
    pub(crate) suspends: u32,
    /// The slow attempt at the same task, if this is its duplicate.
    pub(crate) duplicate_of: Option<AttemptId>,
    /// It has or had a duplicate; it gets no second one.
    pub(crate) duplicated: bool,
    /// Another attempt completed its task: it is being killed, and its reports no longer affect the task.
    pub(crate) superseded: bool,
    /// Why its kill was ordered, unless by a request to preempt.
    pub(crate) kill_reason: Option<Box<str>>,
    #[serde(default)]
    pub(crate) hold: Option<Hold>,
    /// The current or last suspension.
    #[serde(default)]
    pub(crate) suspension: Option<Box<Suspension>>,
    /// The time of its last order other than the launch.
    #[serde(default)]
    pub(crate) ordered: Time,
    /// It is stopped inside a unit of work, which it must finish, in a slot, before it can save its work.
    #[serde(default)]
    pub(crate) is_at_work: bool,
    /// It gets the next free slot of its worker, to save its work.
    #[serde(default)]
    pub(crate) saving: Option<Box<Saving>>,
    /// Since when it has been suspended without a slot on its worker.
    #[serde(default)]
    pub(crate) waits_since: Option<Time>,
    /// The work time of earlier attempts that its checkpoint preserves.
    #[serde(default)]
    pub(crate) kept: Span,
    /// Workers from which it failed to read and was asked to retry.
    #[serde(default)]
    pub(crate) missed: SortedSet<WorkerId>,
    /// How long it must run without a suspension before a policy may take its slot.
    #[serde(default)]
    pub(crate) spared_for: Span,
    /// It is a job's master.
    #[serde(skip)]
    pub(crate) is_master: bool,
    active_before: Span,
    active_since: Option<Time>,
}

impl Attempt {
    pub(crate) fn new(
        id: AttemptId,
        worker: WorkerId,
        from: Start,
        now: Time,
        event: u64,
    ) -> Attempt {
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
            movement: Movement::default(),
            waited: Span::default(),
            consumed_while_waiting: 0,
            output_bytes: 0,
            output_digest: None,
            suspends: 0,
            duplicate_of: None,
            duplicated: false,
            superseded: false,
            kill_reason: None,
            hold: None,
            suspension: None,
            ordered: now,
            is_at_work: false,
            saving: None,
            waits_since: None,
            kept: Span::default(),
            missed: SortedSet::new(),
            spared_for: Span::default(),
            is_master: false,
            active_before: Span::default(),
            active_since: None,
        }
    }
}

/// Why a suspended attempt saves its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saving {
    pub by: Requester,
    pub reason: String,
}

/// Why an attempt is suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    /// When it was verified stopped.
    pub since: Time,
    /// The requester of the suspension, or of the latest decision to extend or end it.
    pub by: Requester,
    /// The job that its slot was freed for, if any.
    pub beneficiary: Option<JobId>,
    /// For people.
    pub reason: String,
}

impl Suspension {
    /// Creates the suspension of an attempt that was stopped for a request, if that is still open.
    pub(crate) fn new(since: Time, request: Option<&PreemptRequest>) -> Suspension {
        match request {
            Some(request) => Suspension {
                since,
                by: request.by,
                beneficiary: request.beneficiary,
                reason: request.reason.clone(),
            },
            None => Suspension {
                since,
                by: Requester::Policy,
                beneficiary: None,
                reason: "the reason for its suspension has ended".to_owned(),
            },
        }
    }
}

/// When the consumed input of an attempt grew, in work time. A command that reads all its input at once and
/// then works on it reports bytes that do not change: such an attempt has no rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Movement {
    /// How many reports had more bytes than the one before.
    pub count: u32,
    /// The last report without any consumed input.
    pub begun: Span,
    /// The last report with more bytes than the one before.
    pub last: Span,
    /// The longest time between two such reports.
    pub longest_gap: Span,
}

/// The work time that an attempt will have at its average rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projection {
    pub length: Span,
    pub remaining: Span,
    /// The share of the input that counts for the rate.
    pub share: f64,
}

impl Movement {
    /// How long an attempt may report the same bytes before its rate is unknown, at least.
    const PATIENCE: Span = Span::from_secs(3);

    /// Returns whether the bytes still grow, as far as is known after this work time.
    fn is_current(self, worked: Span) -> bool {
        let patience = Span(self.longest_gap.0.saturating_mul(3)).max(Self::PATIENCE);
        self.count > 0 && worked.0.saturating_sub(self.last.0) <= patience.0
    }

    fn grew(&mut self, worked: Span) {
        let before = if self.count == 0 {
            self.begun
        } else {
            self.last
        };
        let gap = Span(worked.0.saturating_sub(before.0));
        self.longest_gap = self.longest_gap.max(gap);
        self.last = worked;
        self.count += 1;
    }
}

/// The progress of an attempt when it saved its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedProgress {
    bytes_done: u64,
    bytes_total: u64,
    smoothed_rate: Option<u64>,
    #[serde(default)]
    movement: Movement,
}

impl Attempt {
    /// Returns its id.
    pub fn id(&self) -> AttemptId {
        self.id
    }

    /// Returns its worker.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Returns where its work started.
    pub fn from(&self) -> Start {
        self.from
    }

    /// Returns its state.
    pub fn state(&self) -> AttemptState {
        self.state
    }

    /// Returns whether its process may be using a slot: true until it has exited or is verified stopped.
    pub fn holds_slot(&self) -> bool {
        self.holds_slot
    }

    /// Returns when it was ordered to start.
    pub fn launched(&self) -> Time {
        self.launched
    }

    /// Returns the bytes of input consumed, as last reported.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    /// Returns the total bytes of input, as last reported; zero while unknown.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Returns its work time until `now`, without suspensions.
    pub fn active_time(&self, now: Time) -> Span {
        self.active_before
            + self
                .active_since
                .map_or(Span::default(), |since| now.since(since))
    }

    /// Returns the slow attempt at the same task that it duplicates, if any.
    pub fn duplicate_of(&self) -> Option<AttemptId> {
        self.duplicate_of
    }

    /// Returns the consumed share of its input, in millionths; `None` while the size of the input is unknown.
    pub fn progress_millionths(&self) -> Option<u32> {
        let done = u128::from(self.bytes_done.min(self.bytes_total)) * 1_000_000;
        done.checked_div(u128::from(self.bytes_total))
            .and_then(|share| u32::try_from(share).ok())
    }

    /// Returns the work time behind its progress: its own and that of earlier attempts whose work it
    /// continues.
    pub fn work_time(&self, now: Time) -> Span {
        self.kept + self.active_time(now)
    }

    /// Returns how long it has run since its last suspension; zero while it does not run.
    pub fn runs_for(&self, now: Time) -> Span {
        self.active_since
            .map_or(Span::default(), |since| now.since(since))
    }

    /// Returns whether it must not be a victim: masters never are, nor are tasks that were preempted
    /// repeatedly without progress and have not yet run long enough.
    pub fn is_spared(&self, now: Time) -> bool {
        self.is_master || (self.holds_slot && self.runs_for(now) < self.spared_for)
    }

    /// Returns whether an operator suspended it, so that no policy may resume it.
    pub fn is_held(&self) -> bool {
        self.hold == Some(Hold::Suspend)
    }

    /// Returns whether an operator resumed it, so that it gets the next free slot of its worker.
    pub fn is_recalled(&self) -> bool {
        self.hold == Some(Hold::Resume)
    }

    /// Forgets that an operator resumed it: it continues, or is given up.
    pub(crate) fn drop_recall(&mut self) {
        self.hold = self.hold.filter(|hold| *hold != Hold::Resume);
    }

    /// Returns whether it gets the next free slot of its worker: an operator resumed it, or it must finish a unit of
    /// work before its work can be saved.
    pub fn gets_next_slot(&self) -> bool {
        self.is_recalled() || self.saving.is_some()
    }

    /// Returns whether it was suspended and now saves its work, without a slot, so that its task can continue
    /// on another worker.
    pub fn is_converting(&self) -> bool {
        self.state == AttemptState::Checkpointing && !self.holds_slot
    }

    /// Returns its current suspension, or the one that it is given up from.
    pub fn suspension(&self) -> Option<&Suspension> {
        let stopped = !self.holds_slot && self.state != AttemptState::Killing;
        self.suspension.as_deref().filter(|_| stopped)
    }

    /// Returns its input rate in bytes per second of work; `None` before it has worked.
    pub fn rate(&self, now: Time) -> Option<u64> {
        let rate = u128::from(self.bytes_done) * 1_000_000;
        rate.checked_div(u128::from(self.work_time(now).0))
            .map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Estimates its remaining work time from the average rate of itself and the attempts whose work it
    /// continues. `None` before any input was consumed, and while the reported bytes do not change: then there
    /// is no rate.
    pub fn remaining(&self, now: Time) -> Option<Span> {
        if !self.movement.is_current(self.work_time(now)) {
            return None;
        }
        self.remaining_after(self.work_time(now))
    }

    /// Estimates its remaining work time by its smoothed rate, counted from its last report, with the same
    /// rules.
    pub fn smoothed_remaining(&self, now: Time) -> Option<Span> {
        if !self.movement.is_current(self.work_time(now)) {
            return None;
        }
        let left = u128::from(self.bytes_total.checked_sub(self.bytes_done)?) * 1_000_000;
        let remaining = left.checked_div(u128::from(self.smoothed_rate?))?;
        Some(Span(u64::try_from(remaining).unwrap_or(u64::MAX)))
    }

    /// Estimates its whole work time from its average rate, without the time that it waited for maps, and tells
    /// which share of its input the rate comes from. What it consumed while it waited tells nothing about its
    /// rate. The estimate is constant between reports. `None` before it has a rate; the first report alone is
    /// not one.
    pub(crate) fn projection(&self, now: Time) -> Option<Projection> {
        if self.movement.count < 2 || !self.movement.is_current(self.work_time(now)) {
            return None;
        }
        let left = self.bytes_total.checked_sub(self.bytes_done)?;
        let consumed = self.bytes_done.checked_sub(self.consumed_while_waiting)?;
        let waited_until = if self.waited.0 == 0 {
            Span(0)
        } else {
            self.kept + self.waited
        };
        let begun = self.movement.begun.max(waited_until);
        let took = self.movement.last.0.saturating_sub(begun.0);
        if took == 0 || consumed == 0 {
            return None;
        }
        let remaining = u128::from(took) * u128::from(left) / u128::from(consumed);
        let remaining = u64::try_from(remaining).unwrap_or(u64::MAX);
        let worked = self.movement.last.0.saturating_sub(self.waited.0);
        let length = Span(worked.saturating_add(remaining));
        let share = consumed as f64 / (consumed + left) as f64;
        Some(Projection {
            length,
            remaining: Span(remaining),
            share,
        })
    }

    /// Returns its work time without the time that it waited for maps.
    pub(crate) fn work_with_inputs(&self, now: Time) -> Span {
        Span(self.work_time(now).0.saturating_sub(self.waited.0))
    }

    /// Returns the time for the rest of its input, if the consumed part took until `worked`.
    fn remaining_after(&self, worked: Span) -> Option<Span> {
        let left = u128::from(self.bytes_total.checked_sub(self.bytes_done)?);
        let took = worked.0.saturating_sub(self.movement.begun.0);
        let remaining = (u128::from(took) * left).checked_div(u128::from(self.bytes_done))?;
        Some(Span(u64::try_from(remaining).unwrap_or(u64::MAX)))
    }

    /// Records a progress report: the smoothed rate is one quarter the new rate and three quarters the old
    /// one. Unchanged bytes are not a rate.
    pub(crate) fn progressed(&mut self, now: Time, bytes_done: u64, bytes_total: u64) {
        let worked = self.work_time(now);
        if bytes_done > self.bytes_done {
            let before = if self.movement.count == 0 {
                self.movement.begun
            } else {
                self.movement.last
            };
            let span = worked.0.saturating_sub(before.0);
            let more = u128::from(bytes_done - self.bytes_done) * 1_000_000;
            if let Some(rate) = more.checked_div(u128::from(span)) {
                let rate = u64::try_from(rate).unwrap_or(u64::MAX);
                let old = self.smoothed_rate.unwrap_or(rate);
                self.smoothed_rate = Some(old - old / 4 + rate / 4);
            }
            self.movement.grew(worked);
        } else if self.movement.count == 0 {
            self.movement.begun = worked;
        }
        self.bytes_done = bytes_done;
        self.bytes_total = bytes_total;
    }

    /// Starts from the contents of its checkpoint.
    pub(crate) fn continue_from(&mut self, saved: SavedProgress, kept: Span) {
        self.bytes_done = saved.bytes_done;
        self.bytes_total = saved.bytes_total;
        self.smoothed_rate = saved.smoothed_rate;
        self.movement = saved.movement;
        self.kept = kept;
    }

    /// Returns its progress, for its task to keep.
    pub(crate) fn progress(&self) -> SavedProgress {
        let Attempt {
            bytes_done,
            bytes_total,
            smoothed_rate,
            movement,
            ..
        } = *self;
        SavedProgress {
            bytes_done,
            bytes_total,
            smoothed_rate,
            movement,
        }
    }

    pub(crate) fn start_clock(&mut self, now: Time) {
        self.active_since.get_or_insert(now);
    }

    /// Records that it was verified stopped and gave up its slot.
    pub(crate) fn suspend(&mut self, suspension: Suspension) {
        self.active_before = self.active_time(suspension.since);
        self.active_since = None;
        self.suspends += 1;
        self.holds_slot = false;
        self.suspension = Some(Box::new(suspension));
    }

    /// Replaces the requester and the reason of its suspension.
    pub(crate) fn explain_suspension(&mut self, by: Requester, reason: String) {
        if let Some(suspension) = &mut self.suspension {
            suspension.by = by;
            suspension.reason = reason;
        }
    }

    /// Gives it a slot in which it continues, and which policies must not take for some time.
    pub(crate) fn take_slot(&mut self, spared_for: Span) {
        self.spared_for = spared_for;
        self.holds_slot = true;
        self.is_at_work = false;
        self.drop_recall();
        self.waits_since = None;
    }
}
