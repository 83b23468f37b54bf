//! The progress and liveness of an attempt: cells that the work sets and the control thread reads.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_protocol::lock;

/// Calls of [`progress`] in this process, which runs one attempt.
static SIGNS: AtomicU64 = AtomicU64::new(0);

/// Reports progress for a task that neither reads nor writes for a long time: one relaxed atomic addition.
/// For user code that works longer on one record, value or group than the job's task timeout, and in hooks
/// such as `setup` and `finish`.
///
/// ```
/// fn settle(mut distance: f64) -> f64 {
///     while distance > 0.001 {
///         distance /= 1.000_001;
///         napreduce_task::progress();
///     }
///     distance
/// }
/// # assert!(settle(0.002) < 0.002);
/// ```
#[inline]
pub fn progress() {
    SIGNS.fetch_add(1, Ordering::Relaxed);
}

/// The progress of an attempt in bytes of input.
#[derive(Debug, Default)]
pub struct TaskProgress {
    done: AtomicU64,
    total: AtomicU64,
    /// Incremented when the work has advanced and was asked for a report.
    signs: AtomicU64,
    /// The current read position and the bytes done before it.
    reading: Mutex<Option<(u64, ReadPosition)>>,
    given: Mutex<Given>,
}

/// Maximum marks; beyond it every other one is dropped.
const MARKS_MAX: usize = 1024;

/// Input passed to an external program, in units that the program acknowledges.
#[derive(Debug, Default)]
struct Given {
    /// Units passed and the bytes of input done then. The first mark is acknowledged.
    marks: VecDeque<Mark>,
    answered: u64,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    units: u64,
    bytes: u64,
}

impl Given {
    fn give(&mut self, mark: Mark) {
        match self.marks.back_mut() {
            Some(last) if last.bytes == mark.bytes => *last = mark,
            _ => self.marks.push_back(mark),
        }
        if self.marks.len() > MARKS_MAX {
            let mut is_odd = true;
            self.marks.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
        }
    }

    /// Acknowledges units, at most those passed.
    fn answer(&mut self, units: u64) {
        let given = self.marks.back().map_or(0, |mark| mark.units);
        self.answered = self.answered.max(units.min(given));
        while self
            .marks
            .get(1)
            .is_some_and(|next| next.units <= self.answered)
        {
            self.marks.pop_front();
        }
    }

    /// Returns the acknowledged bytes of input; `None` if none were passed.
    fn bytes(&self) -> Option<u64> {
        let from = self.marks.front()?;
        let Some(to) = self.marks.get(1) else {
            return Some(from.bytes);
        };
        let passed = u128::from(self.answered.saturating_sub(from.units));
        let span = u128::from(to.bytes.saturating_sub(from.bytes));
        let share = (span * passed).checked_div(u128::from(to.units.saturating_sub(from.units)));
        // Less than `span`.
        Some(from.bytes + share.unwrap_or(0) as u64)
    }
}

/// The liveness counters of an attempt as seen by the control thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs {
    pub bytes_done: u64,
    pub bytes_total: u64,
    /// Incremented by activity that does not change the bytes.
    pub others: u64,
}

impl TaskProgress {
    /// Sets the total bytes; 0 while unknown.
    pub fn set_total(&self, bytes: u64) {
        self.total.store(bytes, Ordering::Relaxed);
    }

    /// Sets the bytes consumed so far.
    #[inline]
    pub fn set_done(&self, bytes: u64) {
        self.done.store(bytes, Ordering::Relaxed);
    }

    /// Adds to the bytes consumed so far.
    #[inline]
    pub fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the position of an active reader that starts after `before` bytes; `None` when it has ended.
    pub fn set_reading(&self, before: u64, position: Option<ReadPosition>) {
        *self.reading() = position.map(|position| (before, position));
    }

    /// Records the total units passed to an external program. From the first call on, input counts as
    /// consumed when that program has acknowledged it.
    pub(super) fn give(&self, units: u64) {
        let bytes = self.read();
        self.given().give(Mark { units, bytes });
    }

    /// Records the total units that the program has acknowledged.
    pub(super) fn answer(&self, units: u64) {
        self.given().answer(units);
    }

    /// Ends the acknowledgement by an external program.
    pub(super) fn take_back(&self) {
        *self.given() = Given::default();
    }

    /// Reports that the task is alive while it waits for another party.
    pub fn still_waiting(&self) {
        self.moved_on(None);
    }

    /// Reports an advance of the work, with the bytes done if known.
    pub(super) fn moved_on(&self, bytes_done: Option<u64>) {
        if let Some(bytes) = bytes_done {
            self.set_done(bytes);
        }
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns counters that change with every sign of life: of the attempt, of user code, and of the data
    /// plane, which may spill and merge for a long time.
    pub fn signs_of_life(&self) -> Signs {
        let others = [&self.signs, &SIGNS].map(|signs| signs.load(Ordering::Relaxed));
        let others = others
            .into_iter()
            .fold(napreduce_data::blocks_moved(), u64::wrapping_add);
        Signs {
            bytes_done: self.done(),
            bytes_total: self.total(),
            others,
        }
    }

    /// Returns the bytes consumed so far, also within a batch of records. Bytes passed to an external program
    /// count when it has acknowledged them.
    pub fn done(&self) -> u64 {
        let answered = self.given().bytes();
        answered.unwrap_or_else(|| self.read())
    }

    /// Returns the bytes read so far.
    fn read(&self) -> u64 {
        let read = self
            .reading()
            .as_ref()
            .map_or(0, |(before, position)| before + position.bytes());
        self.done.load(Ordering::Relaxed).max(read)
    }

    /// Returns the total bytes; 0 while unknown.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Locks the marks; no panic can leave them half-changed.
    fn given(&self) -> MutexGuard<'_, Given> {
        lock(&self.given)
    }

    /// Locks the position; no panic can leave it half-changed.
    fn reading(&self) -> MutexGuard<'_, Option<(u64, ReadPosition)>> {
        lock(&self.reading)
    }
}

/// The position of a reader, updated for each record and visible to other threads by one plain store.
///
/// The reader counts in its own unit (decompressed bytes, records of a block); a range of it corresponds to a
/// range of the split's bytes.
///
/// ```
/// use napreduce_task::ReadPosition;
///
/// let position = ReadPosition::new(0..10, 0..4_000);
/// position.set(5);
/// assert_eq!((position.get(), position.bytes()), (5, 2_000));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadPosition {
    cells: Arc<Cells>,
}

#[derive(Debug, Default)]
struct Cells {
    at: AtomicU64,
    stretch: Mutex<Stretch>,
}

#[derive(Debug, Clone, Default)]
struct Stretch {
    counted: Range<u64>,
    bytes: Range<u64>,
}

impl ReadPosition {
    /// Creates a position at the start of `counted`, which corresponds to `bytes`, relative to the start of
    /// the split.
    pub fn new(counted: Range<u64>, bytes: Range<u64>) -> ReadPosition {
        let position = ReadPosition::default();
        position.enter(counted, bytes);
        position
    }

    /// Moves to the start of another range.
    pub fn enter(&self, counted: Range<u64>, bytes: Range<u64>) {
        let mut stretch = self.stretch();
        self.set(counted.start);
        *stretch = Stretch { counted, bytes };
    }

    /// Moves within the current range.
    #[inline]
    pub fn set(&self, at: u64) {
        self.cells.at.store(at, Ordering::Relaxed);
    }

    /// Returns the position in the reader's unit.
    #[inline]
    pub fn get(&self) -> u64 {
        self.cells.at.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the split before the end of the range.
    pub fn bytes_end(&self) -> u64 {
        self.stretch().bytes.end
    }

    /// Returns the bytes of the split before the position.
    pub fn bytes(&self) -> u64 {
        let Stretch { counted, bytes } = self.stretch().clone();
        let length = counted.end.saturating_sub(counted.start);
        let span = bytes.end.saturating_sub(bytes.start);
        let passed = self.get().saturating_sub(counted.start).min(length);
        let share = (u128::from(span) * u128::from(passed))
            .checked_div(u128::from(length))
            .unwrap_or(0);
        // At most `span`.
        bytes.start + share as u64
    }

    /// Locks the range; no panic can leave it half-changed.
    fn stretch(&self) -> MutexGuard<'_, Stretch> {
        lock(&self.cells.stretch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_distributed_over_counted_records() {
        for (counted, bytes, at, expected) in [
            (0..10, 0..1000, 5, 500),
            (100..200, 100..200, 150, 150),
            (100..200, 0..100, 50, 0),
            (100..200, 0..100, 250, 100),
            (0..3, 7..10, 1, 8),
            (0..0, 5..9, 3, 5),
            (0..u64::MAX, 0..u64::MAX, u64::MAX / 2, u64::MAX / 2),
        ] {
            let position = ReadPosition::new(counted.clone(), bytes.clone());
            position.set(at);
            assert_eq!(position.bytes(), expected, "{counted:?} {bytes:?} at {at}");
        }
    }

    #[test]
    fn progress_advances_within_batch() {
        let progress = TaskProgress::default();
        let position = ReadPosition::new(40..140, 0..100);
        progress.set_reading(1_000, Some(position.clone()));
        assert_eq!(progress.done(), 1_000);
        position.set(65);
        assert_eq!(progress.done(), 1_025);
        progress.set_done(1_100);
        progress.set_reading(0, None);
        assert_eq!(progress.done(), 1_100);
    }

    #[test]
    fn given_input_is_done_when_answered() {
        let progress = TaskProgress::default();
        progress.set_done(100);
        progress.give(0);
        for (units, bytes) in [(10, 200), (20, 200), (30, 600)] {
            progress.set_done(bytes);
            progress.give(units);
        }
        assert_eq!(progress.done(), 100);
        for (answered, expected) in [(5, 125), (20, 200), (25, 400), (3, 400), (1_000, 600)] {
            progress.answer(answered);
            assert_eq!(progress.done(), expected, "{answered} units answered for");
        }
        progress.take_back();
        progress.set_done(700);
        assert_eq!(progress.done(), 700);
    }

    #[test]
    fn marks_of_given_input_are_bounded_and_lose_no_progress() {
        let progress = TaskProgress::default();
        for units in 0..100_000 {
            progress.set_done(units * 10);
            progress.give(units);
        }
        assert!(progress.given().marks.len() <= MARKS_MAX);
        assert_eq!(progress.done(), 0);
        progress.answer(70_000);
        assert!(
            (699_000..=700_000).contains(&progress.done()),
            "{}",
            progress.done()
        );
    }

    #[test]
    fn any_progress_is_sign_of_life() {
        let task = TaskProgress::default();
        let mut last = task.signs_of_life();
        let position = ReadPosition::new(0..2, 0..2);
        let moves: [&dyn Fn(); 6] = [
            &|| task.set_total(2),
            &|| task.set_reading(0, Some(position.clone())),
            &|| position.set(1),
            &|| task.still_waiting(),
            &|| task.moved_on(Some(2)),
            &progress,
        ];
        for (number, moved) in moves.iter().enumerate() {
            moved();
            let now = task.signs_of_life();
            assert!(now != last || number == 1, "move {number} is not seen");
            last = now;
        }
    }
}
