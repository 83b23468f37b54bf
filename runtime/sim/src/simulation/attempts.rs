//! Virtual attempts: their phase, the progress of their work in integer microseconds, and their storage.

use napreduce_engine::{AttemptId, Span, TaskKind, Time};

use super::pace::Pace;
use crate::job::SimulatedJob;
use crate::slot_time::SlotTime;

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
    pub since: Time,
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
    pub history_position: usize,
    pub maps_seen: u32,
    /// The worker that wrote the checkpoint it started from.
    pub restores: Option<u32>,
    /// Whether its process occupies a slot of the machine.
    pub occupies_slot: bool,
    pub commit_requested: bool,
    /// The position of a reduce in its job's list of live reduces.
    pub reduce_position: u32,
}

impl VirtualAttempt {
    /// Creates an attempt with `done` completed work, about to start.
    pub fn ordered(
        id: AttemptId,
        worker: u32,
        now: Time,
        plan: &SimulatedJob,
        done: u64,
        restores: Option<u32>,
    ) -> VirtualAttempt {
        let index = id.task.index as usize;
        let (shuffle, bytes) = match id.task.kind {
            TaskKind::Map => (0, plan.maps[index].bytes),
            TaskKind::Reduce => (plan.reduces[index].shuffle.0, plan.reduces[index].bytes),
        };
        VirtualAttempt {
            id,
            worker,
            generation: 0,
            stamp: 0,
            phase: Phase::Ordered,
            phase_began: now,
            since: now,
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
            restores,
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

impl VirtualAttempt {
    /// Returns the work done by this attempt.
    pub fn executed(&self) -> u64 {
        self.done - self.done_before
    }

    /// Whether it still needs map outputs for its work.
    pub fn is_in_shuffle(&self) -> bool {
        self.done < self.shuffle
    }

    /// Returns the work at which it ends or fails.
    pub fn stops_at(&self) -> u64 {
        self.total.min(self.fails_at)
    }

    /// Accounts the slot time since the last call to the current phase. Fetching reduces use
    /// [`VirtualAttempt::fetch`] instead.
    pub fn charge(&mut self, now: Time, slot_time: &mut SlotTime) {
        let span = now.since(self.since).0;
        self.since = now;
        if self.phase == Phase::Working {
            let done = self.pace.done_in(span).min(self.stops_at() - self.done);
            self.done += done;
            slot_time.sharing += span - done;
            return;
        }
        if !self.holds_slot {
            return;
        }
        let account = match self.phase {
            Phase::Working | Phase::Fetching => return,
            Phase::Ordered | Phase::ResumeOrdered => &mut slot_time.orders,
            Phase::Starting => &mut slot_time.launch,
            Phase::Managing => &mut slot_time.masters,
            Phase::Ended | Phase::Gone | Phase::Suspended => &mut slot_time.reports,
            Phase::Suspending => &mut slot_time.suspend,
            Phase::Resuming => &mut slot_time.resume,
            Phase::Saving => &mut slot_time.checkpoint,
            Phase::Cleaning => &mut slot_time.kill,
        };
        *account += span;
    }

    /// Updates the work of a fetching reduce.
    pub fn fetch(&mut self, now: Time, history: &[MapsDone], maps: u32, slot_time: &mut SlotTime) {
        let before = self.done;
        let began = self.since;
        while let Some(change) = history.get(self.history_position) {
            self.fetch_until(change.since, maps);
            self.maps_seen = change.count;
            self.history_position += 1;
        }
        self.fetch_until(now, maps);
        slot_time.waiting += now.since(began).0 - (self.done - before);
    }

    /// Fetches at full rate, limited by the available outputs.
    fn fetch_until(&mut self, time: Time, maps: u32) {
        let available = if maps == 0 {
            self.shuffle
        } else {
            let share = u128::from(self.shuffle) * u128::from(self.maps_seen) / u128::from(maps);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let available = available.min(self.fails_at).max(self.done);
        self.done = available.min(self.done.saturating_add(time.since(self.since).0));
        self.since = time;
    }

    /// Returns the earliest time of the next periodic report. The interval grows with the length of the task, and
    /// with the time for which it has worked or fetched: a reduce that waits for maps reports less and less.
    pub fn next_report(&self, now: Time) -> Time {
        let age = now.since(self.phase_began).0;
        let interval = self.total.max(age) / REPORTS_PER_TASK;
        now.max(self.reported + Span(interval.max(1)))
    }

    /// Returns the progress to report: input bytes if known, otherwise microseconds of work. Rounded up.
    pub fn progress(&self, now: Time) -> (u64, u64) {
        let done = match self.phase {
            Phase::Working => {
                (self.done + self.pace.done_in(now.since(self.since).0)).min(self.stops_at())
            }
            _ => self.done,
        };
        if self.bytes == 0 || self.total == 0 {
            return (done, self.total);
        }
        let read = (u128::from(self.bytes) * u128::from(done)).div_ceil(u128::from(self.total));
        (u64::try_from(read).unwrap_or(u64::MAX), self.bytes)
    }

    pub fn kind(&self) -> TaskKind {
        self.id.task.kind
    }
}

/// The periodic progress reports of an attempt that works without a pause.
const REPORTS_PER_TASK: u64 = 1_000;

/// The live attempts, by place.
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
