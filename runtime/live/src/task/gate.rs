//! Where an attempt is interrupted: at a boundary of its work, by the thread that works.
//!
//! Owns what was asked for and not yet done, and the order of things around a suspend. Does not own the stopping of the
//! process (the worker does that), nor what a checkpoint holds.
//!
//! ```text
//! Suspend{epoch} -> asked -> boundary: on_suspend, trim, Ready{epoch}, wait .. Resume{epoch} -> on_resume, Resumed{epoch}
//!                        \-> Resume{epoch} before any boundary: it was stopped where it was; Resumed{epoch} at once
//! Checkpoint     -> asked -> boundary answers Checkpoint
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::error::TaskError;
use crate::process::{page_out_self, trim_heap};
use crate::protocol::{FromTask, WireError};

/// What an attempt does at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// Its work.
    GoOn,
    /// It saves its work and ends.
    Checkpoint,
}

/// What the user's code does around a suspend.
pub trait SuspendHooks {
    /// The process is about to be stopped, maybe for long: caches may be dropped, connections closed.
    fn on_suspend(&mut self) -> Result<(), TaskError>;

    /// The process runs again.
    fn on_resume(&mut self) -> Result<(), TaskError>;
}

/// Nothing is done.
impl SuspendHooks for () {
    fn on_suspend(&mut self) -> Result<(), TaskError> {
        Ok(())
    }

    fn on_resume(&mut self) -> Result<(), TaskError> {
        Ok(())
    }
}

/// What a script asks for at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Both hooks are called; no process is stopped.
    Suspend,
    /// The boundary answers [`Boundary::Checkpoint`].
    Checkpoint,
}

/// At which boundaries a scripted attempt is asked for what, counted from 1; several asks of one boundary are followed in
/// their order.
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
pub(crate) trait Worker: Send + Sync {
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

/// The gate of one attempt.
#[derive(Default)]
pub(crate) struct Gate {
    /// Whether a boundary has something to do.
    is_asked: AtomicBool,
    asked: Mutex<Asked>,
    changed: Condvar,
    script: Option<Mutex<Script>>,
    boundaries: AtomicU64,
    restored: AtomicBool,
    worker: OnceLock<Box<dyn Worker>>,
}

impl Gate {
    pub(super) fn scripted(script: Script) -> Gate {
        Gate { is_asked: AtomicBool::new(true), script: Some(Mutex::new(script)), ..Gate::default() }
    }

    /// Says who is told; once.
    pub(crate) fn attach(&self, worker: Box<dyn Worker>) {
        // A process runs one attempt and has one worker.
        let _ = self.worker.set(worker);
    }

    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    pub(super) fn boundaries(&self) -> u64 {
        self.boundaries.load(Ordering::Relaxed)
    }

    /// Nothing is left half-changed under this lock.
    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker wants to stop this process.
    pub(crate) fn suspend(&self, epoch: u32, page_out: bool) {
        let mut asked = self.lock();
        (asked.suspend, asked.page_out) = (Some(epoch), page_out);
        self.is_asked.store(true, Ordering::Relaxed);
    }

    /// The process was stopped and runs again; true when nobody is at the gate to acknowledge it.
    pub(crate) fn resume(&self, epoch: u32) -> bool {
        let mut asked = self.lock();
        if asked.suspend == Some(epoch) {
            asked.suspend = None;
            self.is_asked.store(asked.checkpoint, Ordering::Relaxed);
        }
        self.changed.notify_all();
        asked.held != Some(epoch)
    }

    /// The worker wants the work to be saved, and this process to end.
    pub(crate) fn checkpoint(&self) {
        self.lock().checkpoint = true;
        self.is_asked.store(true, Ordering::Relaxed);
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
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);

    struct Told(Sender<FromTask>);

    impl Worker for Told {
        fn tell(&self, message: &FromTask) -> Result<(), WireError> {
            self.0.send(message.clone()).map_err(|_| WireError::CutShort)
        }

        fn catch_up(&self) {}
    }

    #[derive(Default)]
    struct Calls(Vec<&'static str>);

    impl SuspendHooks for Calls {
        fn on_suspend(&mut self) -> Result<(), TaskError> {
            self.0.push("suspend");
            Ok(())
        }

        fn on_resume(&mut self) -> Result<(), TaskError> {
            self.0.push("resume");
            Ok(())
        }
    }

    fn attached() -> (Arc<Gate>, std::sync::mpsc::Receiver<FromTask>) {
        let (told, heard) = channel();
        let gate = Arc::new(Gate::default());
        gate.attach(Box::new(Told(told)));
        (gate, heard)
    }

    #[test]
    fn nothing_is_asked_unless_somebody_asks() {
        let (gate, heard) = attached();
        assert!(!gate.is_asked());
        assert_eq!(gate.pass(&mut ()), Ok(Boundary::GoOn));
        assert!(heard.try_recv().is_err());
    }

    #[test]
    fn the_work_waits_at_the_gate_until_it_is_resumed() {
        let (gate, heard) = attached();
        gate.suspend(1, false);
        assert!(gate.is_asked());
        let passing = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || {
                let mut calls = Calls::default();
                let passed = gate.pass(&mut calls);
                (passed, calls.0)
            })
        };
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(FromTask::Ready { epoch: 1 }));
        assert!(!gate.resume(1), "whoever is at the gate acknowledges");
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(FromTask::Resumed { epoch: 1 }));
        assert_eq!(passing.join().expect("no panic"), (Ok(Boundary::GoOn), vec!["suspend", "resume"]));
        assert!(!gate.is_asked());
    }

    #[test]
    fn a_stop_that_found_nobody_at_the_gate_is_acknowledged_by_the_control_thread() {
        let (gate, _heard) = attached();
        gate.suspend(1, false);
        assert!(gate.resume(1));
        assert!(!gate.is_asked());
        assert_eq!(gate.pass(&mut ()), Ok(Boundary::GoOn));
    }

    #[test]
    fn a_resume_for_a_checkpoint_comes_out_at_the_checkpoint() {
        let (gate, heard) = attached();
        gate.suspend(3, false);
        let passing = {
            let gate = Arc::clone(&gate);
            std::thread::spawn(move || gate.pass(&mut ()))
        };
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(FromTask::Ready { epoch: 3 }));
        gate.checkpoint();
        gate.resume(3);
        assert_eq!(passing.join().expect("no panic"), Ok(Boundary::Checkpoint));
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(FromTask::Resumed { epoch: 3 }));
    }

    #[test]
    fn a_hook_that_fails_fails_the_task() {
        struct Failing;
        impl SuspendHooks for Failing {
            fn on_suspend(&mut self) -> Result<(), TaskError> {
                Err(TaskError::task("cannot let go"))
            }
            fn on_resume(&mut self) -> Result<(), TaskError> {
                Ok(())
            }
        }
        let (gate, heard) = attached();
        gate.suspend(1, false);
        assert_eq!(gate.pass(&mut Failing), Err(TaskError::task("cannot let go")));
        assert!(heard.try_recv().is_err(), "it is not ready");
    }

    #[test]
    fn a_worker_that_is_gone_fails_the_task() {
        let (gate, heard) = attached();
        drop(heard);
        gate.suspend(1, false);
        let error = gate.pass(&mut ()).expect_err("nobody hears it");
        assert!(error.message.starts_with("control channel: "), "{error}");
    }

    #[test]
    fn a_script_is_followed_boundary_by_boundary() {
        let script =
            Script::new([(4, Ask::Checkpoint), (2, Ask::Suspend), (4, Ask::Suspend), (2, Ask::Suspend)]);
        let gate = Gate::scripted(script);
        let mut calls = Calls::default();
        let passed: Vec<Boundary> =
            (0..3).map(|_| gate.pass(&mut calls).expect("hooks do not fail")).collect();
        assert_eq!(passed, [Boundary::GoOn; 3]);
        assert_eq!(calls.0, ["suspend", "resume", "suspend", "resume"]);
        assert_eq!(gate.pass(&mut calls), Ok(Boundary::Checkpoint));
        assert_eq!((gate.boundaries(), gate.is_asked()), (4, true));
    }

    #[test]
    fn what_was_restored_is_told_once() {
        let (gate, heard) = attached();
        gate.tell_restored();
        gate.tell_restored();
        gate.tell_restore_refused("damaged");
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(FromTask::Restored));
        let refused = FromTask::RestoreRefused { reason: "damaged".to_owned() };
        assert_eq!(heard.recv_timeout(DEADLINE), Ok(refused));
    }
}
