//! Where an attempt is interrupted: at a boundary of its work, by the thread that works.
//!
//! Owns what was asked for and not yet done, and the order of things around a suspend. Does not own the
//! stopping of the process (the worker does that), nor what a checkpoint holds.
//!
//! ```text
//! Suspend{epoch} -> asked -> boundary: on_suspend, trim, Ready{epoch}, wait .. Resume{epoch} -> on_resume, Resumed{epoch}
//!                        \-> Resume{epoch} before any boundary: it was stopped where it was; Resumed{epoch} at once
//! Checkpoint     -> asked -> boundary answers Checkpoint
//! question       -> asked -> the work tells how far it is, and goes on
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fmt, io};

use napreduce_protocol::{FromTask, TaskError, WireError};

use super::bell::Bell;
use crate::process::{page_out_self, trim_heap};

/// What an attempt does at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Its work.
    GoOn,
    /// It saves its work and ends.
    Checkpoint,
}

/// What the user's code does around a suspend; nothing unless said otherwise.
pub trait SuspendHooks {
    /// The process is about to be stopped, maybe for long: caches may be dropped, connections closed.
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    /// The process runs again.
    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}

impl SuspendHooks for () {}

/// What a script asks for at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Both hooks are called; no process is stopped.
    Suspend,
    /// The boundary answers [`Boundary::Checkpoint`].
    Checkpoint,
}

/// At which boundaries a scripted attempt is asked for what, counted from 1; several asks of one boundary are
/// followed in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    asks: VecDeque<(u64, Ask)>,
}

impl Script {
    /// The asks, in any order of boundaries.
    pub fn new(asks: impl IntoIterator<Item = (u64, Ask)>) -> Script {
        let mut asks: Vec<(u64, Ask)> = asks.into_iter().collect();
        asks.sort_by_key(|(boundary, _)| *boundary);
        Script { asks: asks.into() }
    }
}

/// The worker's ear, and the way to take in what the worker has said.
pub trait Supervisor: Send + Sync {
    fn tell(&self, message: &FromTask) -> Result<(), WireError>;

    /// Takes in what waits to be heard.
    fn catch_up(&self);
}

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    /// Not yet resumed.
    suspend: Option<u32>,
    /// The work is at the gate for it.
    held: Option<u32>,
    checkpoint: bool,
    /// Memory is to be moved out before the process is stopped.
    page_out: bool,
}

/// A boundary has something to do.
const INTERRUPTED: u8 = 1;
/// The control thread wants to know whether the work moves.
const QUESTION: u8 = 2;

/// The gate of one attempt.
#[derive(Default)]
pub struct Gate {
    /// What the work is to see when it looks here, as bits: one load answers for all of them.
    asks: AtomicU8,
    asked: Mutex<Asked>,
    changed: Condvar,
    script: Option<Mutex<Script>>,
    boundaries: AtomicU64,
    restored: AtomicBool,
    worker: OnceLock<Box<dyn Supervisor>>,
    /// Made by the first who waits for somebody else than the worker.
    bell: OnceLock<Bell>,
}

impl Gate {
    pub(super) fn scripted(script: Script) -> Gate {
        Gate { asks: AtomicU8::new(INTERRUPTED), script: Some(Mutex::new(script)), ..Gate::default() }
    }

    /// Says who is told; once.
    pub fn attach(&self, worker: Box<dyn Supervisor>) {
        // A process runs one attempt and has one worker.
        let _ = self.worker.set(worker);
    }

    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.asks.load(Ordering::Relaxed) != 0
    }

    /// Whether a boundary has something to do.
    pub(super) fn is_interrupted(&self) -> bool {
        self.asks.load(Ordering::Relaxed) & INTERRUPTED != 0
    }

    fn set_interrupted(&self, interrupted: bool) {
        match interrupted {
            true => self.asks.fetch_or(INTERRUPTED, Ordering::Relaxed),
            false => self.asks.fetch_and(!INTERRUPTED, Ordering::Relaxed),
        };
    }

    /// Asks the work whether it moves.
    pub fn question(&self) {
        self.asks.fetch_or(QUESTION, Ordering::Relaxed);
    }

    /// Whether that was asked since it was last taken.
    pub(super) fn take_question(&self) -> bool {
        self.asks.fetch_and(!QUESTION, Ordering::Relaxed) & QUESTION != 0
    }

    pub(super) fn boundaries(&self) -> u64 {
        self.boundaries.load(Ordering::Relaxed)
    }

    /// Nothing is left half-changed under this lock.
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker wants to stop this process.
    pub fn suspend(&self, epoch: u32, page_out: bool) {
        let mut asked = self.lock();
        (asked.suspend, asked.page_out) = (Some(epoch), page_out);
        self.set_interrupted(true);
        self.ring();
    }

    /// Whether the work is to stand still now, or is on its way there.
    pub(super) fn is_suspending(&self) -> bool {
        self.lock().suspend.is_some()
    }

    /// What rings when something changes here.
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

    /// The process was stopped and runs again; true when nobody is at the gate to acknowledge it.
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

    /// The worker wants the work to be saved, and this process to end.
    pub fn checkpoint(&self) {
        self.lock().checkpoint = true;
        self.set_interrupted(true);
        self.ring();
    }

    pub(super) fn pass(&self, hooks: &mut dyn SuspendHooks) -> Result<Boundary, TaskError> {
        if let Some(script) = &self.script {
            return self.follow(script, hooks);
        }
        loop {
            let (epoch, page_out) = {
                let mut asked = self.lock();
                match asked.suspend {
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
            self.tell(&FromTask::Ready { epoch })?;
            self.wait_for_resume(epoch);
            hooks.on_resume()?;
            self.tell(&FromTask::Resumed { epoch })?;
        }
    }

    fn wait_for_resume(&self, epoch: u32) {
        let mut asked = self.lock();
        while asked.suspend == Some(epoch) {
            asked = self.changed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        asked.held = None;
    }

    fn follow(&self, script: &Mutex<Script>, hooks: &mut dyn SuspendHooks) -> Result<Boundary, TaskError> {
        let boundary = self.boundaries.fetch_add(1, Ordering::Relaxed) + 1;
        loop {
            let due = {
                let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
                // One for a boundary that has passed would never be asked; it is left out.
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
            // A worker that is gone has no use for it; its end of the channel ends this process.
            let _ = self.tell(&FromTask::Restored);
        }
    }

    pub(super) fn tell_restore_refused(&self, reason: &str) {
        // As above.
        let _ = self.tell(&FromTask::RestoreRefused { reason: reason.to_owned() });
    }

    /// Without a worker there is nothing to hear.
    pub(super) fn catch_up(&self) {
        if let Some(worker) = self.worker.get() {
            worker.catch_up();
        }
    }

    fn tell(&self, message: &FromTask) -> Result<(), TaskError> {
        let told = self.worker.get().map_or(Ok(()), |worker| worker.tell(message));
        told.map_err(|error| TaskError::retryable(format!("control channel: {error}")))
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
