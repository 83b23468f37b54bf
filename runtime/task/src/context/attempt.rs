//! The context of a running attempt: counters, position, progress, gate and clock, shared with the runtime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use napreduce_engine::AttemptId;
use napreduce_protocol::{Counters, TaskError};

use super::clock::TaskClock;
use super::gate::{Boundary, Gate, InFlight, Script, SuspendHooks};
use super::position::Position;
use super::presence::Presence;
use super::progress::TaskProgress;

/// The context of one attempt, passed to every call of a [`TaskRunner`](crate::TaskRunner).
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
    output_digest: OnceLock<u64>,
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
            output_digest: OnceLock::default(),
        }
    }

    /// Creates the context of `attempt`, which may use `memory` bytes.
    pub fn new(attempt: AttemptId, memory: u64) -> TaskContext {
        TaskContext::with_gate(attempt, memory, Gate::default())
    }

    /// Creates a context without a worker, for tests of a body; requests follow the script.
    pub fn scripted(attempt: AttemptId, memory: u64, script: Script) -> TaskContext {
        TaskContext::with_gate(attempt, memory, Gate::scripted(script))
    }

    /// Returns the attempt.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }

    /// Returns the memory limit in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the built-in counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the progress; the runtime reports it about ten times a second.
    pub fn progress(&self) -> &TaskProgress {
        &self.progress
    }

    /// Returns the current input position; the runtime adds it to panic messages.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Returns whether the attempt must stop at its next boundary: a batch of records, or a group of keys.
    #[inline]
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Asks the attempt to stop at its next boundary.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    /// Returns whether [`tell`](TaskContext::tell) or [`boundary`](TaskContext::boundary) has work: one
    /// relaxed load, cheap enough for every record.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.gate.is_asked()
    }

    /// Returns whether a suspend or a checkpoint was ordered, which the next boundary carries out. Unlike
    /// [`is_asked`](TaskContext::is_asked), this ignores requests for progress. For code that must release
    /// resources at a boundary, such as connections.
    pub fn is_stop_ordered(&self) -> bool {
        self.gate.is_interrupted()
    }

    /// Reports progress if requested, with the bytes done if known. Returns whether
    /// [`boundary`](TaskContext::boundary) has work.
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

    /// A point where the attempt may be interrupted. For a suspension it returns after the resume: the hooks
    /// were called and the process was stopped in between. The caller must hold no lock and no connection.
    ///
    /// # Errors
    ///
    /// Returns the error of a hook, or an error if the channel to the worker is closed.
    pub fn boundary(&self, hooks: &mut dyn SuspendHooks) -> Result<Boundary, TaskError> {
        self.gate.pass(hooks, true)
    }

    /// A [`boundary`](TaskContext::boundary) inside a unit of work, which must be finished before the work can be
    /// saved: the caller continues with it after [`Boundary::Checkpoint`], too.
    ///
    /// # Errors
    ///
    /// As [`boundary`](TaskContext::boundary).
    pub fn boundary_within(&self, hooks: &mut dyn SuspendHooks) -> Result<Boundary, TaskError> {
        self.gate.pass(hooks, false)
    }

    /// Returns the number of boundaries reached by a scripted attempt; 0 for any other.
    pub fn boundaries(&self) -> u64 {
        self.gate.boundaries()
    }

    /// Reports, once, that a restored attempt has completed its first new work.
    pub fn restored(&self) {
        self.gate.tell_restored();
    }

    /// Reports that the checkpoint is unusable and why; the attempt starts from scratch.
    pub fn restore_refused(&self, reason: &str) {
        // The first rejection concerns the checkpoint that the attempt was started with.
        let _ = self.refused.set(reason.to_owned());
        self.gate.tell_restore_refused(reason);
    }

    /// Returns why the attempt did not continue from its checkpoint, if so.
    pub fn refusal(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Reports the digest of the records that a map sealed for reduces. The coordinator compares the digests of all
    /// attempts of the map whose output may have been read.
    ///
    /// ```
    /// # let attempt = "job_0001_m_0000.1".parse().unwrap();
    /// let context = napreduce_task::TaskContext::new(attempt, 1 << 20);
    /// context.set_output_digest(7);
    /// assert_eq!(context.output_digest(), Some(7));
    /// ```
    pub fn set_output_digest(&self, digest: u64) {
        // A map seals its output once.
        let _ = self.output_digest.set(digest);
    }

    /// Returns the digest of the sealed output, if one was reported.
    pub fn output_digest(&self) -> Option<u64> {
        self.output_digest.get().copied()
    }

    /// Returns the active time of the task: without suspensions, including earlier attempts.
    pub fn active_millis(&self) -> u64 {
        self.clock.active_millis(|| self.gate.catch_up())
    }

    /// Adds the active time of the earlier attempts that this one continues.
    pub fn add_active_millis(&self, active_millis: u64) {
        self.clock.add_active_millis(active_millis);
    }

    /// Marks the beginning of something that a stop of the process would hurt, until the value is dropped; see
    /// [`InFlight`].
    ///
    /// ```
    /// # let attempt = "job_0001_m_0000.1".parse().unwrap();
    /// # let context = napreduce_task::TaskContext::new(attempt, 1 << 20);
    /// let sending = context.begin_in_flight();
    /// // Send a file over a connection.
    /// drop(sending);
    /// ```
    pub fn begin_in_flight(&self) -> InFlight {
        self.gate.begin_in_flight()
    }

    /// Returns a handle of the gate for code that waits for an external party.
    pub fn presence(&self) -> Presence {
        Presence::new(&self.gate, &self.progress, &self.counters)
    }

    pub fn gate(&self) -> &Gate {
        &self.gate
    }
}
