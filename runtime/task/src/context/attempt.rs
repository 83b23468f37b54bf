//! What a running attempt knows of itself and tells the runtime about.
//!
//! Owns the shared cells: counters, position, and the way to its progress, gate and clock. Does not own who
//! reads them (the control thread of the task process), nor what happens at the gate (`gate`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use napreduce_engine::AttemptId;
use napreduce_protocol::{Counters, TaskError};

use super::clock::TaskClock;
use super::gate::{Boundary, Gate, Script, SuspendHooks};
use super::position::Position;
use super::presence::Presence;
use super::progress::TaskProgress;

/// The surroundings of one attempt: handed to every call of a [`TaskRunner`](crate::TaskRunner).
#[derive(Debug)]
pub struct TaskContext {
    attempt: AttemptId,
    memory: u64,
    counters: Arc<Counters>,
    progress: Arc<TaskProgress>,
    position: Position,
    interrupted: AtomicBool,
    gate: Arc<Gate>,
    pub(crate) clock: TaskClock,
    refused: OnceLock<String>,
}

impl TaskContext {
    fn with_gate(attempt: AttemptId, memory: u64, gate: Gate) -> TaskContext {
        TaskContext {
            attempt,
            memory,
            counters: Arc::default(),
            progress: Arc::default(),
            position: Position::default(),
            interrupted: AtomicBool::default(),
            gate: Arc::new(gate),
            clock: TaskClock::default(),
            refused: OnceLock::default(),
        }
    }
}

impl TaskContext {
    /// The surroundings of `attempt`, which may use `memory` bytes.
    pub fn new(attempt: AttemptId, memory: u64) -> TaskContext {
        TaskContext::with_gate(attempt, memory, Gate::default())
    }

    /// The surroundings of an attempt without a worker, which is interrupted as the script says: what a test
    /// of a body uses.
    pub fn scripted(attempt: AttemptId, memory: u64, script: Script) -> TaskContext {
        TaskContext::with_gate(attempt, memory, Gate::scripted(script))
    }

    /// The attempt that runs.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// How many bytes of memory it may use.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Its built-in counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How far it is; the runtime passes it on about ten times a second.
    pub fn progress(&self) -> &TaskProgress {
        &self.progress
    }

    /// What it reads now; the runtime adds it to the message of a panic.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Whether the attempt is asked to stop at its next boundary: a batch of records, or a group of keys.
    #[inline]
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Asks the attempt to stop at its next boundary.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Whether [`tell`](TaskContext::tell) or [`boundary`](TaskContext::boundary) has something to do: one
    /// relaxed load, cheap enough for every record.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.gate.is_asked()
    }

    /// Whether a suspend or a checkpoint was ordered, which the next boundary carries out. Unlike
    /// [`is_asked`](TaskContext::is_asked), this ignores questions about progress: code that has to give something
    /// up at a boundary, such as connections, looks here.
    pub fn is_stop_ordered(&self) -> bool {
        self.gate.is_interrupted()
    }

    /// Says, if that was asked, that the work has moved on, and to how many bytes where the caller knows.
    /// Whether [`boundary`](TaskContext::boundary) has something to do as well.
    ///
    /// ```
    /// use napreduce_task::TaskContext;
    ///
    /// # fn work(context: &TaskContext) -> Result<(), napreduce_protocol::TaskError> {
    /// for record in 0..1_000 {
    ///     if context.is_asked() && context.tell(Some(record * 100)) {
    ///         context.boundary(&mut ())?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tell(&self, bytes_done: Option<u64>) -> bool {
        if self.gate.take_question() {
            self.progress.moved_on(bytes_done);
        }
        self.gate.is_interrupted()
    }

    /// A place where the attempt may be interrupted. When it is asked to be suspended, this returns after it
    /// was: the hooks have been called, and the process was stopped in between. The caller holds no lock and
    /// no connection then.
    ///
    /// # Errors
    ///
    /// What a hook answers, and a worker that is gone.
    pub fn boundary(&self, hooks: &mut dyn SuspendHooks) -> Result<Boundary, TaskError> {
        self.gate.pass(hooks)
    }

    /// How many boundaries a scripted attempt has come to; 0 for any other.
    pub fn boundaries(&self) -> u64 {
        self.gate.boundaries()
    }

    /// Says, once, that an attempt restored from a checkpoint has done the first new piece of its work.
    pub fn restored(&self) {
        self.gate.tell_restored();
    }

    /// Says that the checkpoint cannot be used and why; the attempt goes on from scratch.
    pub fn restore_refused(&self, reason: &str) {
        // What was refused first is what the attempt was started with.
        let _ = self.refused.set(reason.to_owned());
        self.gate.tell_restore_refused(reason);
    }

    /// Why the attempt did not go on from its checkpoint, if it had one and did not.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// How long the task has been worked on: without the time in which it was suspended, with that
    /// of earlier attempts.
    pub fn active_millis(&self) -> u64 {
        self.clock.active_millis(|| self.gate.catch_up())
    }

    /// Adds the time for which earlier attempts, whose work this one goes on with, were active.
    pub fn goes_on_after(&self, active_millis: u64) {
        self.clock.goes_on_after(active_millis);
    }

    /// A way to the gate for code that waits for somebody outside.
    pub fn presence(&self) -> Presence {
        Presence::new(&self.gate, &self.progress, &self.counters)
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }
}
