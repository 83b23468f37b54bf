//! Fetches map outputs from other workers, in the task process of a reduce.
//!
//! Fetched data goes to files in the attempt's scratch directory, in the same form as on the source worker.
//! Written pages stay in the page cache while there is room, so the merge reads memory and not the disk.
//! Unlike anonymous memory they need no configured budget, are written back by the kernel when another task
//! needs the room, take no swap during a suspension, and are complete files that a checkpoint can name. A
//! task holds one buffer per connection in its own memory; data in flight is bounded by the credit it grants.

mod connection;
mod fetcher;
mod pause;
mod queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use napreduce_data::WriteError;
use napreduce_engine::AttemptId;
use napreduce_protocol::{TaskError, lock};
use napreduce_task::{Fetch, FetchSettings, InputEvent};

use self::connection::IdleConnection;
use self::pause::Pause;
use self::queue::{Next, Queue, SegmentRequest};
use crate::shuffle::data_connection::BUFFER_BYTES;

/// Maximum concurrent connections; more do not make one link faster.
const FETCHERS_MAX: u64 = 4;
/// Maximum idle time of a connection, since maps of a wave end one after another. Servers wait far longer.
const IDLE_MAX: Duration = Duration::from_secs(10);
const WINDOW_MIN: u64 = 128 << 10;
const WINDOW_MAX: u64 = 8 << 20;
/// Use at most 1/8 of a task's memory for data in flight.
const MEMORY_SHARE: u64 = 8;

/// Starts to fetch for a reduce attempt.
pub fn start_fetch(settings: FetchSettings) -> Result<Box<dyn Fetch>, TaskError> {
    Ok(Box::new(Fetches::start(settings)?))
}

/// The fetching threads; they end on drop.
struct Fetches {
    shared: Arc<Shared>,
}

struct Shared {
    settings: FetchSettings,
    /// Maximum bytes in flight per connection.
    window: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Idle connections, at most one to each peer.
    idle: Mutex<Vec<IdleConnection>>,
    stopped: AtomicBool,
    pause: Pause,
}

/// The next batch of a thread.
struct Turn {
    address: String,
    items: Vec<SegmentRequest>,
    /// Number of pauses before the batch.
    pauses: u64,
}

impl Fetches {
    /// Starts the threads, which wait for requests.
    fn start(settings: FetchSettings) -> Result<Fetches, TaskError> {
        let share = settings.context.memory() / MEMORY_SHARE;
        let fetchers = (share / (WINDOW_MIN + BUFFER_BYTES as u64)).clamp(1, FETCHERS_MAX);
        let window = (share / fetchers).clamp(WINDOW_MIN, WINDOW_MAX);
        let shared = Shared {
            window,
            queue: Mutex::new(Queue::new(settings.network.limits)),
            changed: Condvar::new(),
            idle: Mutex::default(),
            stopped: AtomicBool::new(false),
            pause: Pause::new(fetchers),
            settings,
        };
        // Created before the threads: if one cannot be started, its drop ends the others.
        let fetches = Fetches {
            shared: Arc::new(shared),
        };
        for _ in 0..fetchers {
            let shared = Arc::clone(&fetches.shared);
            let thread = std::thread::Builder::new().name("fetch".into());
            thread
                .spawn(move || fetcher::run(&shared))
                .map_err(|error| {
                    TaskError::local(format!("cannot start a fetch thread: {error}"), &error)
                })?;
        }
        Ok(fetches)
    }
}

impl Fetch for Fetches {
    fn request(&self, attempt: AttemptId, address: &str, first_block: u64) {
        self.shared.queue().add(attempt, address, first_block);
        self.shared.changed.notify_all();
    }

    /// Pauses all threads and waits until they rest, except for a thread that is connecting.
    fn pause(&self) {
        self.shared.pause.begin();
        self.shared.idle().clear();
        self.shared.changed.notify_all();
        self.shared.pause.wait_until_resting();
    }

    fn resume(&self) {
        // Under the lock; otherwise a thread between its check and its wait would miss the wake-up.
        let queue = self.shared.queue();
        self.shared.pause.end();
        drop(queue);
        self.shared.changed.notify_all();
    }

    fn cancel(&self, map: u32) {
        self.shared.queue().cancel(map);
    }
}

impl Drop for Fetches {
    fn drop(&mut self) {
        // Under the lock, as in `resume`.
        let queue = self.shared.queue();
        self.shared.stopped.store(true, Ordering::Relaxed);
        drop(queue);
        self.shared.idle().clear();
        self.shared.changed.notify_all();
    }
}

/// Returns the error of an attempt that cannot write to its scratch directory.
fn write_failed(error: &WriteError) -> TaskError {
    TaskError::local(error.to_string(), &error.source)
}

impl Shared {
    /// Locks the queue; no panic can leave it half-changed.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Returns whether fetches must stop for good.
    fn has_ended(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.settings.context.interrupted()
    }

    /// Returns whether fetches must stop, for a pause or for good.
    fn must_stop(&self) -> bool {
        self.has_ended() || self.pause.is_on()
    }

    /// Locks the idle connections; no panic can leave them half-changed.
    fn idle(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        lock(&self.idle)
    }

    /// Keeps a connection for its peer's next batch, unless a pause has closed it.
    fn keep_idle(&self, connection: IdleConnection, pauses: u64) {
        let mut idle = self.idle();
        // Under the lock: a pause that begins now clears the idle connections.
        if !self.must_stop() && self.pause.begun() == pauses {
            idle.push(connection);
        }
    }

    fn take_idle(&self, address: &str) -> Option<IdleConnection> {
        let mut idle = self.idle();
        let at = idle
            .iter()
            .position(|connection| connection.address == address)?;
        Some(idle.swap_remove(at))
    }

    /// Closes connections whose idle time is over; returns when the next one is due.
    fn close_idle(&self, now: Instant) -> Option<Instant> {
        let mut idle = self.idle();
        idle.retain(|connection| now.saturating_duration_since(connection.since) < IDLE_MAX);
        idle.iter()
            .map(|connection| connection.since + IDLE_MAX)
            .min()
    }

    /// Waits for a batch from one peer; returns `None` at the end.
    fn wait_next(&self) -> Option<Turn> {
        let _resting = self.pause.rest();
        let mut queue = self.queue();
        while !self.has_ended() {
            // Read before the pause flag: a later pause has a higher number.
            let pauses = self.pause.begun();
            if self.pause.is_on() {
                queue = self.wait_for_change(queue, None);
                continue;
            }
            let now = Instant::now();
            let next_close = self.close_idle(now);
            let next_work = match queue.take(now) {
                Next::Batch { address, items } => {
                    return Some(Turn {
                        address,
                        items,
                        pauses,
                    });
                }
                Next::Nothing { until } => until,
            };
            let wake_at = next_work.into_iter().chain(next_close).min();
            let wait_max = wake_at.map(|at| at.saturating_duration_since(now));
            queue = self.wait_for_change(queue, wait_max);
        }
        None
    }

    /// Unlocks the queue until a change or the end of the time, if it is limited; then locks it again.
    fn wait_for_change<'a>(
        &self,
        queue: MutexGuard<'a, Queue>,
        wait_max: Option<Duration>,
    ) -> MutexGuard<'a, Queue> {
        let Some(wait_max) = wait_max else {
            let waited = self.changed.wait(queue);
            return waited.unwrap_or_else(PoisonError::into_inner);
        };
        let waited = self.changed.wait_timeout(queue, wait_max);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue
    }

    /// Sends an event; a reduce that no longer waits has no receiver.
    fn send(&self, event: InputEvent) {
        let _ = self.settings.events.send(event);
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{FailureClass, FaultPlace};

    use super::*;

    #[test]
    fn write_failed_on_full_disk_is_retryable_and_names_file() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = WriteError {
            doing: "write",
            path: "scratch/x".into(),
            source: full,
        };
        let failed = write_failed(&error);
        assert_eq!(
            (failed.class, failed.place),
            (FailureClass::Retryable, FaultPlace::LocalDisk)
        );
        assert!(
            failed.message.contains("scratch/x") && failed.message.contains("free space"),
            "{failed}"
        );
    }
}
