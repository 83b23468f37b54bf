//! The gate of an attempt: the working thread interrupts its work at a boundary to follow requests.
//!
//! It records pending requests and orders the steps of a suspension. The worker stops the process.
//!
//! ```text
//! Suspend{epoch} -> asked -> boundary: on_suspend, trim, Ready{epoch, saves}, wait .. Resume{epoch} -> on_resume, Resumed{epoch}
//!                        |-> no boundary soon, nothing in flight: trim, Ready{epoch, saves: false} from the control thread
//!                        \-> Resume{epoch} before any boundary: Resumed{epoch} at once
//! Checkpoint     -> asked -> boundary returns Checkpoint
//! kill           -> asked -> boundary returns an error; only for a task on a thread
//! question       -> asked -> the work reports its progress and continues
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fmt, io};

use napreduce_protocol::{FromTask, TaskError, WireError, lock};

use super::bell::Bell;
use crate::heap::trim_heap;
use crate::paging::page_out_self;

/// The action of an attempt at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Continue the work.
    GoOn,
    /// Save the work and end.
    Checkpoint,
}

/// Hooks of user code for a suspension; by default they do nothing.
pub trait SuspendHooks {
    /// Called before the process is stopped, possibly for a long time, to drop caches and close connections.
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// Called after the process was resumed.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl SuspendHooks for () {}

/// A scripted request at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Both hooks are called; the process is not stopped.
    Suspend,
    /// The boundary returns [`Boundary::Checkpoint`].
    Checkpoint,
}

/// The requests of a scripted attempt by boundary, counted from 1; several requests at one boundary are
/// followed in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    asks: VecDeque<(u64, Ask)>,
}

impl Script {
    /// Creates a script; the requests may be in any order of boundaries.
    pub fn new(asks: impl IntoIterator<Item = (u64, Ask)>) -> Script {
        let mut asks: Vec<(u64, Ask)> = asks.into_iter().collect();
        asks.sort_by_key(|(boundary, _)| *boundary);
        Script { asks: asks.into() }
    }
}

/// The connection to the worker.
pub trait Supervisor: Send + Sync {
    fn tell(&self, message: &FromTask) -> Result<(), WireError>;

    /// Processes received messages.
    fn catch_up(&self);
}

/// Pending requests.
#[derive(Debug, Default)]
struct Asked {
    /// The epoch of a suspension that is not resumed yet.
    suspend: Option<u32>,
    /// The epoch for which the work is held at the gate.
    held: Option<u32>,
    /// The epoch for which the process may be stopped wherever the work is.
    stops_anywhere: Option<u32>,
    /// How many values of [`InFlight`] there are.
    in_flight: u32,
    checkpoint: bool,
    killed: bool,
    /// Whether memory is paged out before the process is stopped.
    page_out: bool,
}

/// A request is pending for a boundary.
const INTERRUPTED: u8 = 1;
/// The control thread asks for a progress report.
const QUESTION: u8 = 2;

/// The gate of one attempt.
#[derive(Default)]
pub struct Gate {
    /// Bits for the working thread: one atomic load checks all of them.
    asks: AtomicU8,
    asked: Mutex<Asked>,
    changed: Condvar,
    script: Option<Mutex<Script>>,
    boundaries: AtomicU64,
    restored: AtomicBool,
    worker: OnceLock<Box<dyn Supervisor>>,
    /// Created by the first wait for a party other than the worker.
    bell: OnceLock<Bell>,
}

impl Gate {
    pub(super) fn scripted(script: Script) -> Gate {
        Gate {
            asks: AtomicU8::new(INTERRUPTED),
            script: Some(Mutex::new(script)),
            ..Gate::default()
        }
    }

    /// Sets the connection to the worker; only the first call counts.
    pub fn attach(&self, worker: Box<dyn Supervisor>) {
        // A process runs one attempt and has one worker.
        let _ = self.worker.set(worker);
    }

    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.asks.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a request is pending for a boundary.
    pub(super) fn is_interrupted(&self) -> bool {
        self.asks.load(Ordering::Relaxed) & INTERRUPTED != 0
    }

    fn set_interrupted(&self, interrupted: bool) {
        if interrupted {
            self.asks.fetch_or(INTERRUPTED, Ordering::Relaxed);
        } else {
            self.asks.fetch_and(!INTERRUPTED, Ordering::Relaxed);
        }
    }

    /// Asks the work for a progress report.
    pub fn question(&self) {
        self.asks.fetch_or(QUESTION, Ordering::Relaxed);
    }

    /// Returns whether a report was requested since the last call.
    pub(super) fn take_question(&self) -> bool {
        self.asks.fetch_and(!QUESTION, Ordering::Relaxed) & QUESTION != 0
    }

    pub(super) fn boundaries(&self) -> u64 {
        self.boundaries.load(Ordering::Relaxed)
    }

    /// Locks the requests; no panic can leave them half-changed.
    fn lock(&self) -> MutexGuard<'_, Asked> {
        lock(&self.asked)
    }

    /// Requests a suspension.
    pub fn suspend(&self, epoch: u32, page_out: bool) {
        let mut asked = self.lock();
        (asked.suspend, asked.page_out) = (Some(epoch), page_out);
        self.set_interrupted(true);
        self.ring();
    }

    /// Declares that the process may be stopped wherever its work is: a suspension is requested, the work is not at
    /// the gate, and nothing is in flight. From then on the work begins nothing that must not be stopped. Returns the
    /// epoch, once.
    pub(crate) fn allow_stop_anywhere(&self) -> Option<(u32, bool)> {
        let mut asked = self.lock();
        let epoch = asked.suspend?;
        if asked.held == Some(epoch) || asked.stops_anywhere == Some(epoch) || asked.in_flight > 0 {
            return None;
        }
        asked.stops_anywhere = Some(epoch);
        Some((epoch, asked.page_out))
    }

    /// Returns whether a suspension is requested that the work has not reached the gate for.
    pub(crate) fn awaits_boundary(&self) -> bool {
        let asked = self.lock();
        let pending = |epoch| asked.held != Some(epoch) && asked.stops_anywhere != Some(epoch);
        asked.suspend.is_some_and(pending)
    }

    /// Marks the beginning of something that a stop would hurt. Waits while the process may be stopped anywhere.
    pub(super) fn begin_in_flight(self: &Arc<Gate>) -> InFlight {
        let mut asked = self.lock();
        while asked.stops_anywhere.is_some()
            && asked.stops_anywhere == asked.suspend
            && !asked.killed
        {
            asked = self
                .changed
                .wait(asked)
                .unwrap_or_else(PoisonError::into_inner);
        }
        asked.in_flight += 1;
        InFlight {
            gate: Arc::clone(self),
        }
    }

    /// Returns whether the work must stop now: it is suspended, about to be, or killed.
    pub(super) fn is_stopping(&self) -> bool {
        let asked = self.lock();
        asked.suspend.is_some() || asked.killed
    }

    /// Returns the bell that rings on a change of the gate.
    pub(super) fn bell(&self) -> io::Result<&Bell> {
        if let Some(bell) = self.bell.get() {
            return Ok(bell);
        }
        let made = Bell::make()?;
        Ok(self.bell.get_or_init(|| made))
    }

    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// Handles a resume of the process; returns true if no thread at the gate will acknowledge it.
    pub fn resume(&self, epoch: u32) -> bool {
        let mut asked = self.lock();
        if asked.suspend == Some(epoch) {
            asked.suspend = None;
            self.set_interrupted(asked.checkpoint);
        }
        self.changed.notify_all();
        self.ring();
        asked.held != Some(epoch)
    }

    /// Requests a checkpoint.
    pub fn checkpoint(&self) {
        self.lock().checkpoint = true;
        self.set_interrupted(true);
        self.ring();
    }

    /// Makes the work end with an error at its next boundary. A process is killed by a signal instead.
    pub fn kill(&self) {
        self.lock().killed = true;
        self.set_interrupted(true);
        self.changed.notify_all();
        self.ring();
    }

    /// Returns the epoch for which the process is about to be stopped wherever the work is.
    fn stop_anywhere(&self) -> Option<u32> {
        let mut asked = self.lock();
        let epoch = asked
            .suspend
            .filter(|epoch| asked.stops_anywhere == Some(*epoch) && !asked.killed)?;
        asked.held = Some(epoch);
        Some(epoch)
    }

    /// Follows pending requests. With `saves`, the work can be saved here without doing more of it.
    pub(super) fn pass(
        &self,
        hooks: &mut dyn SuspendHooks,
        saves: bool,
    ) -> Result<Boundary, TaskError> {
        if let Some(script) = &self.script {
            return self.follow(script, hooks);
        }
        loop {
            if let Some(epoch) = self.stop_anywhere() {
                // The process is stopped at any moment: too late for hooks.
                self.wait_for_resume(epoch);
                self.tell(&FromTask::Resumed { epoch })?;
                continue;
            }
            let (epoch, page_out) = {
                let mut asked = self.lock();
                match asked.suspend {
                    _ if asked.killed => {
                        return Err(TaskError::retryable("the attempt was killed"));
                    }
                    // Declared meanwhile.
                    Some(epoch) if asked.stops_anywhere == Some(epoch) => continue,
                    Some(epoch) => (*asked.held.insert(epoch), asked.page_out),
                    None if asked.checkpoint => return Ok(Boundary::Checkpoint),
                    None => return Ok(Boundary::GoOn),
                }
            };
            hooks.on_suspend()?;
            trim_heap();
            if page_out {
                page_out_self();
            }
            self.tell(&FromTask::Ready { epoch, saves })?;
            self.wait_for_resume(epoch);
            hooks.on_resume()?;
            self.tell(&FromTask::Resumed { epoch })?;
        }
    }

    fn wait_for_resume(&self, epoch: u32) {
        let mut asked = self.lock();
        while asked.suspend == Some(epoch) && !asked.killed {
            asked = self
                .changed
                .wait(asked)
                .unwrap_or_else(PoisonError::into_inner);
        }
        asked.held = None;
    }

    fn follow(
        &self,
        script: &Mutex<Script>,
        hooks: &mut dyn SuspendHooks,
    ) -> Result<Boundary, TaskError> {
        let boundary = self.boundaries.fetch_add(1, Ordering::Relaxed) + 1;
        loop {
            let due = {
                let mut script = lock(script);
                // Requests for a boundary that has passed are skipped.
                while script.asks.front().is_some_and(|(at, _)| *at < boundary) {
                    script.asks.pop_front();
                }
                script.asks.pop_front_if(|(at, _)| *at == boundary)
            };
            match due {
                None => return Ok(Boundary::GoOn),
                Some((_, Ask::Checkpoint)) => return Ok(Boundary::Checkpoint),
                Some((_, Ask::Suspend)) => {
                    hooks.on_suspend()?;
                    trim_heap();
                    hooks.on_resume()?;
                }
            }
        }
    }

    pub(super) fn tell_restored(&self) {
        if !self.restored.swap(true, Ordering::Relaxed) {
            // If the worker has ended, the closed channel ends this process.
            let _ = self.tell(&FromTask::Restored);
        }
    }

    pub(super) fn tell_restore_refused(&self, reason: &str) {
        // As above.
        let _ = self.tell(&FromTask::RestoreRefused {
            reason: reason.to_owned(),
        });
    }

    /// Processes received messages; without a worker there are none.
    pub(super) fn catch_up(&self) {
        if let Some(worker) = self.worker.get() {
            worker.catch_up();
        }
    }

    fn tell(&self, message: &FromTask) -> Result<(), TaskError> {
        let sent = self
            .worker
            .get()
            .map_or(Ok(()), |worker| worker.tell(message));
        sent.map_err(|error| TaskError::retryable(format!("control channel: {error}")))
    }
}

/// Something that a stop of the process would hurt: a connection that another process waits for, or a lock that
/// others share. While there is such a value, a suspension waits for a boundary, as long as its grace allows.
pub struct InFlight {
    gate: Arc<Gate>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gate.lock().in_flight -= 1;
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").finish_non_exhaustive()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("asked", &self.asked)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
