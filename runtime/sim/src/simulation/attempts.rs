//! Virtual attempts: what each does now, how far its work is, and where they are kept.
//!
//! Owns the progress of work in integer microseconds. Does not own what an attempt does next, nor the sums
//! over all.

use napreduce_engine::{AttemptId, TaskKind, Time, fields};

use super::bandwidth::Pace;
use crate::books::Books;
use crate::job::SimulatedJob;

/// What an attempt is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The order to start is on its way.
    Ordered,
    /// Its process starts and reads its checkpoint.
    Starting,
    Working,
    /// A master: it holds its container until its job has ended.
    Managing,
    /// A reduce at work or waiting: it fetches map outputs as they appear.
    Fetching,
    /// Its work is done; it waits to be heard or to be allowed to commit.
    Ended,
    Suspending,
    /// Stopped; it has no slot when the coordinator knows.
    Suspended,
    /// The order to go on is on its way.
    ResumeOrdered,
    Resuming,
    /// Writes a checkpoint.
    Saving,
    /// Killed; what it left is removed.
    Cleaning,
    /// The process is gone; the coordinator does not know yet.
    Gone,
}

fields! {
    /// An attempt on a virtual worker.
    #[derive(Debug)]
    pub(super) struct VirtualAttempt {
        pub id: AttemptId = id,
        pub worker: u32 = worker,
        /// Counts the attempts that had this place.
        pub life: u32,
        /// Changes with the phase: an entry of the queue with another stamp is out of date.
        pub stamp: u32,
        pub phase: Phase = Phase::Ordered,
        /// When that began.
        pub phase_began: Time = now,
        /// Up to when its time is entered in the books.
        pub since: Time = now,
        /// As far as the coordinator knows.
        pub holds_slot: bool = true,
        /// The work of its task that is done, and all of it.
        pub done: u64 = done,
        pub total: u64 = plan.work_of(id.task.kind, id.task.index),
        /// The first part of the work that needs map outputs.
        pub shuffle: u64 = shuffle,
        /// Where it fails, if it does.
        pub fails_at: u64 = u64::MAX,
        /// How fast it works, where machines have a bandwidth.
        pub pace: Pace = Pace::FULL,
        /// What of the work done was not done by this attempt.
        pub done_before: u64 = done,
        /// Work done when it was last suspended: what a later kill loses again is counted from here.
        pub preserved: u64 = done,
        /// Bytes of input, to tell progress in.
        pub bytes: u64 = bytes,
        /// Bytes that were swapped out when it was last suspended.
        pub swapped: u64,
        pub pages: Pages,
        /// For a reduce: how much of the history of its job's maps it has seen, and how many maps were done
        /// then.
        pub seen: usize,
        pub maps_seen: u32,
        /// It started from the checkpoint of an attempt of this worker, or of another.
        pub restores: Option<u32> = restores,
        /// Its process runs in a slot of the machine.
        pub occupies: bool = true,
        /// It asked to commit.
        pub asked: bool,
        /// Its place in the list of its job's live reduces.
        pub place: u32,
    }

    /// One that is to start, with so much of its work done.
    pub fn ordered(
        id: AttemptId,
        worker: u32,
        now: Time,
        plan: &SimulatedJob,
        done: u64,
        restores: Option<u32>
    ) {
        let index = id.task.index as usize;
        let (shuffle, bytes) = match id.task.kind {
            TaskKind::Map => (0, plan.maps[index].bytes),
            TaskKind::Reduce => (plan.reduces[index].shuffle.0, plan.reduces[index].bytes),
        };
    }
}

/// Where machines have a memory, what an attempt has of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    /// Bytes of its own that are in memory, and that were paged out.
    pub resident: u64,
    pub paged_out: u64,
    pub suspended_since: Option<Time>,
}

impl VirtualAttempt {
    /// Work done by this attempt.
    pub fn executed(&self) -> u64 {
        self.done - self.done_before
    }

    /// Where it stops working by itself: at the end or where it fails.
    pub fn stops_at(&self) -> u64 {
        self.total.min(self.fails_at)
    }

    /// Enters the time since the last entry in the books, as what it was spent on. The work of a reduce that
    /// fetches is to be brought up to date before: see `fetch`.
    pub fn charge(&mut self, now: Time, books: &mut Books) {
        let span = now.since(self.since).0;
        self.since = now;
        if self.phase == Phase::Working {
            let done = self.pace.done_in(span).min(self.stops_at() - self.done);
            self.done += done;
            books.sharing += span - done;
            return;
        }
        if !self.holds_slot {
            return;
        }
        let account = match self.phase {
            Phase::Working | Phase::Fetching => return,
            Phase::Ordered | Phase::ResumeOrdered => &mut books.orders,
            Phase::Starting => &mut books.launch,
            Phase::Managing => &mut books.masters,
            Phase::Ended | Phase::Gone | Phase::Suspended => &mut books.reports,
            Phase::Suspending => &mut books.suspend,
            Phase::Resuming => &mut books.resume,
            Phase::Saving => &mut books.checkpoint,
            Phase::Cleaning => &mut books.kill,
        };
        *account += span;
    }

    /// Brings the work of a reduce that fetches up to date. `history` are the times at which the number of
    /// finished maps changed, and what it was then.
    pub fn fetch(&mut self, now: Time, history: &[(Time, u32)], maps: u32, books: &mut Books) {
        let before = self.done;
        let began = self.since;
        while let Some(&(time, finished)) = history.get(self.seen) {
            self.fetch_until(time, maps);
            self.maps_seen = finished;
            self.seen += 1;
        }
        self.fetch_until(now, maps);
        books.waiting += now.since(began).0 - (self.done - before);
    }

    /// Fetches at the rate of one, but not more than the outputs that are there.
    fn fetch_until(&mut self, time: Time, maps: u32) {
        let there = if maps == 0 {
            self.shuffle
        } else {
            let share = u128::from(self.shuffle) * u128::from(self.maps_seen) / u128::from(maps);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let there = there.min(self.fails_at).max(self.done);
        self.done = there.min(self.done.saturating_add(time.since(self.since).0));
        self.since = time;
    }

    /// Progress as a worker tells it: bytes of input if it has any, else microseconds of work; never less
    /// than there is.
    pub fn progress(&self, now: Time) -> (u64, u64) {
        let done = match self.phase {
            Phase::Working => (self.done + self.pace.done_in(now.since(self.since).0)).min(self.stops_at()),
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

/// The attempts that live, by their place.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    all: Vec<VirtualAttempt>,
    vacant: Vec<u32>,
}

impl Attempts {
    /// Keeps an attempt and says where.
    pub fn insert(&mut self, mut attempt: VirtualAttempt) -> u32 {
        match self.vacant.pop() {
            Some(place) => {
                let old = &mut self.all[place as usize];
                attempt.life = old.life;
                attempt.stamp = old.stamp;
                *old = attempt;
                place
            }
            None => {
                self.all.push(attempt);
                u32::try_from(self.all.len() - 1).expect("fewer attempts live at once than there are tasks")
            }
        }
    }

    /// Gives a place free.
    pub fn remove(&mut self, place: u32) {
        let old = &mut self.all[place as usize];
        old.life += 1;
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
