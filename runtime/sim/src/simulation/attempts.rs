//! Virtual attempts: their phase, the progress of their work in integer microseconds, and their storage.

use napreduce_engine::{AttemptId, Span, TaskKind, Time};

use super::checkpoints::Checkpoint;
use super::pace::Pace;
use crate::job::SimulatedJob;
use crate::slot_time::SlotTime;

/// The periodic progress reports of an attempt that works without a pause.
const REPORTS_PER_TASK: u64 = 1_000;

/// The phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The launch order is in transit.
    Ordered,
    /// The process starts and reads its checkpoint.
    Starting,
    Working,
    /// A master: holds its container until its job ends.
    Managing,
    /// A reduce that fetches map outputs as they appear.
    Fetching,
    /// The work is done; waits for the report or the commit grant.
    Ended,
    Suspending,
    /// Stopped. It holds its slot until the coordinator knows.
    Suspended,
    /// The resume order is in transit.
    ResumeOrdered,
    Resuming,
    /// Writing a checkpoint.
    Saving,
    /// Cleanup after a kill.
    Cleaning,
    /// The process has exited; the coordinator does not know yet.
    Gone,
}

/// The number of maps with an available output, from a time on.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapsDone {
    pub since: Time,
    pub count: u32,
}

/// An attempt on a virtual worker.
#[derive(Debug)]
pub(super) struct VirtualAttempt {
    pub id: AttemptId,
    pub worker: u32,
    /// Number of earlier attempts in this place.
    pub generation: u32,
    /// Changes with the phase: queue entries with another stamp are stale.
    pub stamp: u32,
    pub phase: Phase,
    /// Start of the phase.
    pub phase_began: Time,
    /// Time up to which its slot time is accounted.
    charged_until: Time,
    /// In the view of the coordinator.
    pub holds_slot: bool,
    /// Completed and total work of the task.
    pub done: u64,
    pub total: u64,
    /// The first part of the work, which needs map outputs.
    pub shuffle: u64,
    /// Work at which it fails.
    pub fails_at: u64,
    /// Its speed with limited bandwidth.
    pub pace: Pace,
    /// Work completed by earlier attempts.
    pub done_before: u64,
    /// The time of its last progress report.
    pub reported: Time,
    /// Whether the next periodic report is in the queue.
    pub report_is_scheduled: bool,
    /// Work done at its last suspend; a later suspend preserves only the difference.
    pub preserved: u64,
    /// Input bytes, for progress reports.
    pub bytes: u64,
    /// Bytes swapped out by its last suspend.
    pub swapped: u64,
    pub pages: Pages,
    /// For a reduce: its position in the history of finished maps, and their number there.
    history_position: usize,
    maps_seen: u32,
    /// The worker that wrote the checkpoint it started from.
    pub restores: Option<u32>,
    /// Whether its process occupies a slot of the machine.
    pub occupies_slot: bool,
    pub commit_requested: bool,
    /// The position of a reduce in its job's list of live reduces.
    pub reduce_position: u32,
}

impl VirtualAttempt {
    /// Creates an attempt that is about to start, from a checkpoint if there is one.
    pub fn ordered(
        id: AttemptId,
        worker: u32,
        now: Time,
        plan: &SimulatedJob,
        checkpoint: Option<Checkpoint>,
    ) -> VirtualAttempt {
        let done = checkpoint.map_or(0, |checkpoint| checkpoint.done);
        let index = id.task.index as usize;
        let shuffle = match id.task.kind {
            TaskKind::Map => 0,
            TaskKind::Reduce => plan.reduces[index].shuffle.0,
        };
        let bytes = match id.task.kind {
            TaskKind::Map => plan.maps[index].bytes,
            TaskKind::Reduce => plan.reduces[index].bytes,
        };
        VirtualAttempt {
            id,
            worker,
            generation: 0,
            stamp: 0,
            phase: Phase::Ordered,
            phase_began: now,
            charged_until: now,
            holds_slot: true,
            done,
            total: plan.work_of(id.task.kind, id.task.index),
            shuffle,
            fails_at: u64::MAX,
            pace: Pace::FULL,
            done_before: done,
            reported: now,
            report_is_scheduled: false,
            preserved: done,
            bytes,
            swapped: 0,
            pages: Pages::default(),
            history_position: 0,
            maps_seen: 0,
            restores: checkpoint.map(|checkpoint| checkpoint.worker),
            occupies_slot: true,
            commit_requested: false,
            reduce_position: 0,
        }
    }
}

/// The memory of an attempt, with paging.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    /// Bytes in memory, and bytes paged out.
    pub resident: u64,
    pub paged_out: u64,
    pub suspended_since: Option<Time>,
}

impl Pages {
    /// Pages out up to `bytes`; returns how many.
    pub fn page_out(&mut self, bytes: u64) -> u64 {
        let paged_out = bytes.min(self.resident);
        self.resident -= paged_out;
        self.paged_out += paged_out;
        paged_out
    }
}

/// Done and total progress, in bytes or microseconds of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub done: u64,
    pub total: u64,
}

impl VirtualAttempt {
    pub fn kind(&self) -> TaskKind {
        self.id.task.kind
    }

    /// Returns the work done by this attempt.
    pub fn executed(&self) -> u64 {
        self.done - self.done_before
    }

    /// Whether it still needs map outputs for its work.
    pub fn is_in_shuffle(&self) -> bool {
        self.done < self.shuffle
    }

    /// Whether it works or fetches.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Working | Phase::Fetching)
    }

    /// Returns the work at which it ends or fails.
    pub fn stops_at(&self) -> u64 {
        self.total.min(self.fails_at)
    }

    /// Begins a phase.
    pub fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.phase_began = now;
        self.renew_stamp();
    }

    /// Makes the events stale that are in the queue for this phase.
    pub fn renew_stamp(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
    }

    /// Preserves its work by a suspend. Returns the work that was not preserved before.
    pub fn preserve(&mut self) -> u64 {
        let more = self.done - self.preserved;
        self.preserved = self.done;
        more
    }

    /// Accounts the slot time since the last call to the current phase. Fetching reduces use
    /// [`VirtualAttempt::fetch`] instead.
    pub fn charge(&mut self, now: Time, slot_time: &mut SlotTime) {
        let span = now.since(self.charged_until).0;
        self.charged_until = now;
        if self.phase == Phase::Working {
            let left = self.stops_at() - self.done;
            let worked = self.pace.done_in(span).min(left);
            self.done += worked;
            slot_time.sharing += span - worked;
            return;
        }
        if !self.holds_slot {
            return;
        }
        match self.phase {
            Phase::Working | Phase::Fetching => {}
            Phase::Ordered | Phase::ResumeOrdered => slot_time.orders += span,
            Phase::Starting => slot_time.launch += span,
            Phase::Managing => slot_time.masters += span,
            Phase::Ended | Phase::Gone | Phase::Suspended => slot_time.reports += span,
            Phase::Suspending => slot_time.suspend += span,
            Phase::Resuming => slot_time.resume += span,
            Phase::Saving => slot_time.checkpoint += span,
            Phase::Cleaning => slot_time.kill += span,
        }
    }

    /// Starts to fetch map outputs, with `history` of their number and `count` available now.
    pub fn begin_fetching(&mut self, history: &[MapsDone], count: u32) {
        self.history_position = history.len();
        self.maps_seen = count;
    }

    /// Updates the work of a fetching reduce of a job with `maps` maps. Returns the time for which it waited
    /// for them.
    pub fn fetch(&mut self, now: Time, history: &[MapsDone], maps: u32) -> u64 {
        let done_before = self.done;
        let began = self.charged_until;
        while let Some(change) = history.get(self.history_position) {
            self.fetch_until(change.since, maps);
            self.maps_seen = change.count;
            self.history_position += 1;
        }
        self.fetch_until(now, maps);
        let fetched = self.done - done_before;
        now.since(began).0 - fetched
    }

    /// Fetches at full rate, limited by the available outputs.
    fn fetch_until(&mut self, time: Time, maps: u32) {
        let available = if maps == 0 {
            self.shuffle
        } else {
            let share = u128::from(self.shuffle) * u128::from(self.maps_seen) / u128::from(maps);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let limit = available.min(self.fails_at).max(self.done);
        let at_full_rate = self.done.saturating_add(time.since(self.charged_until).0);
        self.done = limit.min(at_full_rate);
        self.charged_until = time;
    }

    /// Returns the earliest time of the next periodic report. The interval grows with the length of the task, and
    /// with the time for which it has worked or fetched: a reduce that waits for maps reports less and less.
    pub fn next_report(&self, now: Time) -> Time {
        let age = now.since(self.phase_began).0;
        let interval = self.total.max(age) / REPORTS_PER_TASK;
        now.max(self.reported + Span(interval.max(1)))
    }

    /// Returns the progress to report: input bytes if known, otherwise microseconds of work. Rounded up.
    pub fn progress(&self, now: Time) -> Progress {
        let mut done = self.done;
        if self.phase == Phase::Working {
            let since_charged = now.since(self.charged_until).0;
            done = (done + self.pace.done_in(since_charged)).min(self.stops_at());
        }
        if self.bytes == 0 || self.total == 0 {
            return Progress {
                done,
                total: self.total,
            };
        }
        let read = (u128::from(self.bytes) * u128::from(done)).div_ceil(u128::from(self.total));
        Progress {
            done: u64::try_from(read).unwrap_or(u64::MAX),
            total: self.bytes,
        }
    }
}

/// The live attempts, by place: a number that a later attempt gets again.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    all: Vec<VirtualAttempt>,
    vacant: Vec<u32>,
}

impl Attempts {
    /// Stores an attempt and returns its place.
    pub fn insert(&mut self, mut attempt: VirtualAttempt) -> u32 {
        match self.vacant.pop() {
            Some(place) => {
                let old = &mut self.all[place as usize];
                attempt.generation = old.generation;
                attempt.stamp = old.stamp;
                *old = attempt;
                place
            }
            None => {
                self.all.push(attempt);
                u32::try_from(self.all.len() - 1).expect("fewer live attempts than tasks")
            }
        }
    }

    /// Frees a place.
    pub fn remove(&mut self, place: u32) {
        let old = &mut self.all[place as usize];
        old.generation += 1;
        old.stamp += 1;
        self.vacant.push(place);
    }

    pub fn at(&self, place: u32) -> &VirtualAttempt {
        &self.all[place as usize]
    }

    pub fn at_mut(&mut self, place: u32) -> &mut VirtualAttempt {
        &mut self.all[place as usize]
    }
}
