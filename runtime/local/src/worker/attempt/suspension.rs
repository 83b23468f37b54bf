//! Timers, waits, paging and accounts around the stop of one attempt.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_engine::AttemptId;
use napreduce_protocol::{Preempted, PreemptionAccount, whole_micros, whole_millis};
use napreduce_task::Paging;
use rustix::process::Pid;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, Sleep, sleep};

use super::super::admission::{Admission, SuspendRefusal};
use super::super::configuration::PageOut;
use super::Supervision;
use super::preemption::Input;
use super::swap::SwapAccount;
use crate::clock::now;
use crate::process::{Awaited, ChildEvent, ProcessMemory, TaskProcess};
use crate::world::Tasks;

/// Interval after which an unconfirmed SIGSTOP is sent again; another process may have sent SIGCONT.
const STOP_AGAIN: Duration = Duration::from_secs(1);
/// Added to the OOM score while suspended, so that the kernel kills running processes last.
const OOM_SCORE_ADDED: i32 = 500;
/// Smaller amounts are faulted in faster than they are prefetched.
const PREFETCH_BYTES_MIN: u64 = 1 << 20;
/// Grace after a resume, in addition to the time to read memory back from a slow disk.
const RESUME_GRACE: Duration = Duration::from_secs(2);
const SWAP_BYTES_PER_SECOND: u64 = 100_000_000;

/// Memory that is being paged out or in.
#[derive(Debug)]
struct Moving {
    cancelled: Arc<AtomicBool>,
    paging: Paging,
    done: JoinHandle<io::Result<u64>>,
}

#[derive(Debug)]
pub(super) struct Suspension {
    tasks: Tasks,
    attempt: AttemptId,
    admission: Arc<Admission>,
    /// Memory limit of the job's tasks.
    task_memory: u64,
    launched: Instant,
    /// Arrival times of orders not yet carried out.
    ordered: VecDeque<Instant>,
    stopped_since: Option<Instant>,
    /// Total time of earlier stops.
    stopped: Duration,
    swap: SwapAccount,
    /// The process whose memory is being brought back.
    paged_in: Option<Pid>,
    oom_before: Option<i32>,
    timer: Option<Pin<Box<Sleep>>>,
    change: Option<(Awaited, JoinHandle<io::Result<ChildEvent>>)>,
    moving: Option<Moving>,
    notes: Vec<String>,
}

impl Suspension {
    pub(super) fn new(supervision: &Supervision) -> Suspension {
        Suspension {
            tasks: supervision.tasks.clone(),
            attempt: supervision.description.attempt,
            admission: Arc::clone(&supervision.admission),
            task_memory: supervision.description.memory,
            launched: now(),
            ordered: VecDeque::new(),
            stopped_since: None,
            stopped: Duration::ZERO,
            swap: SwapAccount::default(),
            paged_in: None,
            oom_before: None,
            timer: None,
            change: None,
            moving: None,
            notes: Vec::new(),
        }
    }

    /// Checks whether this machine can hold the suspended process.
    pub(super) fn admit(&self, process: Pid) -> Result<(), SuspendRefusal> {
        self.admission.admit(self.attempt, process)
    }

    /// Records the arrival of an order.
    pub(super) fn on_order(&mut self) {
        self.ordered.push_back(now());
    }

    /// Drops the last order, which was illegal.
    pub(super) fn forget_order(&mut self) {
        self.ordered.pop_back();
    }

    /// Drops the oldest order, which was refused.
    pub(super) fn drop_order(&mut self) {
        self.ordered.pop_front();
    }

    /// Starts the grace period for reaching the gate.
    pub(super) fn begin_grace(&mut self) {
        self.timer = Some(Box::pin(sleep(self.admission.rules.grace)));
    }

    /// After SIGSTOP: waits for the kernel's confirmation, with a timeout.
    pub(super) fn await_stop(&mut self, process: &dyn TaskProcess) {
        self.timer = Some(Box::pin(sleep(STOP_AGAIN)));
        if !matches!(self.change, Some((Awaited::Stop, _))) {
            self.wait_for(Awaited::Stop, process);
        }
    }

    /// Watches a stopped process for a SIGCONT from elsewhere.
    pub(super) fn await_continuation(&mut self, process: &dyn TaskProcess) {
        self.timer = None;
        self.wait_for(Awaited::Continuation, process);
    }

    /// Replaces the current wait. A replaced wait continues in the background until the process ends at the
    /// latest.
    fn wait_for(&mut self, awaited: Awaited, process: &dyn TaskProcess) {
        let waiting = self.tasks.spawn(process.await_change(awaited));
        self.change = Some((awaited, waiting));
    }

    /// Handles the first confirmed stop of an epoch.
    pub(super) fn on_suspended(&mut self, process: &dyn TaskProcess) {
        self.stopped_since = Some(now());
        self.admission.keep(self.attempt, process.id());
        self.sample_memory(process.id());
        self.offer_to_the_kernel(process);
    }

    /// Raises the OOM score. Errors are ignored: without it the kernel chooses by size alone.
    fn offer_to_the_kernel(&mut self, process: &dyn TaskProcess) {
        let raised = process.oom_score_adjustment().and_then(|before| {
            process.set_oom_score_adjustment(before.saturating_add(OOM_SCORE_ADDED).min(1000))?;
            Ok(before)
        });
        match raised {
            Ok(before) => self.oom_before = Some(before),
            Err(error) => self.note(format!("cannot raise oom_score_adj: {error}")),
        }
    }

    /// Returns whether the task should page itself out: memory is short, there is swap, and the worker lacks
    /// permission.
    pub(super) fn wants_self_paging(&self, process: &dyn TaskProcess) -> bool {
        let wanted = self.wants_paging().is_ok_and(|wanted| wanted);
        wanted && process.check_paging().is_err()
    }

    /// Returns whether memory should be paged out; the error is the reason it cannot be.
    fn wants_paging(&self) -> Result<bool, String> {
        let spare = self.admission.processes.spare_memory();
        let spare = spare.map_err(|error| format!("cannot read the free memory: {error}"))?;
        let wanted = match self.admission.rules.page_out {
            PageOut::Never => false,
            PageOut::Always => true,
            PageOut::WhenShort => spare.available < self.task_memory,
        };
        if wanted && spare.swap_free == 0 {
            return Err("not paged out: no free swap".to_owned());
        }
        Ok(wanted)
    }

    /// Starts paging out if wanted and permitted. The freed slot is available immediately.
    pub(super) fn begin_paging_out(&mut self, process: &dyn TaskProcess) {
        match self.wants_paging() {
            Ok(true) => {}
            Ok(false) => return,
            Err(reason) => return self.note(reason),
        }
        match Moving::begin(process, Paging::Out) {
            Ok(moving) => self.moving = Some(moving),
            Err(error) => {
                self.note(format!(
                    "paged out by the task itself, since its worker may not: {error}"
                ));
            }
        }
    }

    /// Starts paging in before the process is continued; returns false if there is nothing to wait for.
    pub(super) fn begin_prefetch(&mut self, process: &dyn TaskProcess) -> bool {
        if let Some(moving) = self.moving.take() {
            // It ends after its current chunk.
            moving.cancelled.store(true, Ordering::Relaxed);
        }
        self.sample_memory(process.id());
        if self.swap.swapped() < PREFETCH_BYTES_MIN {
            return false;
        }
        match Moving::begin(process, Paging::In) {
            Ok(moving) => (self.moving, self.paged_in) = (Some(moving), Some(process.id())),
            Err(error) => self.note(format!("paged in on demand: {error}")),
        }
        self.moving.is_some()
    }

    /// Ends the stop and returns the total stopped time.
    pub(super) fn on_continue(&mut self, process: &dyn TaskProcess) -> Duration {
        self.timer = None;
        self.moving = None;
        if let Some(since) = self.stopped_since.take() {
            self.stopped += since.elapsed();
        }
        self.admission.release(self.attempt);
        if let Some(before) = self.oom_before.take()
            && let Err(error) = process.set_oom_score_adjustment(before)
        {
            self.note(format!("cannot restore oom_score_adj: {error}"));
        }
        self.stopped
    }

    /// Returns the time for which a resumed process may be silent.
    pub(super) fn resume_grace(&self) -> Duration {
        RESUME_GRACE + Duration::from_millis(self.swap.swapped() / (SWAP_BYTES_PER_SECOND / 1_000))
    }

    /// Returns the account since the oldest order not yet carried out.
    pub(super) fn take_account(
        &mut self,
        what: Preempted,
        process: Option<Pid>,
    ) -> PreemptionAccount {
        let memory = process
            .map(|process| self.sample_memory(process))
            .unwrap_or_default();
        let since = match &what {
            Preempted::Restored | Preempted::RestoreRefused(_) | Preempted::Ended => self.launched,
            _ => self.ordered.pop_front().unwrap_or_else(now),
        };
        let stopped = self.stopped
            + self
                .stopped_since
                .map_or(Duration::ZERO, |since| since.elapsed());
        let (swapped_out_bytes, swapped_in_bytes) = self.swap.take();
        PreemptionAccount {
            what,
            micros: whole_micros(since.elapsed()),
            active_millis: whole_millis(self.launched.elapsed().saturating_sub(stopped)),
            suspended_millis: whole_millis(stopped),
            resident_bytes: memory.resident,
            swapped_bytes: memory.swapped,
            swapped_out_bytes,
            swapped_in_bytes,
            checkpoint_bytes: 0,
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Returns the account at a kill order; pending orders are void.
    pub(super) fn take_kill_account(&mut self, process: Pid) -> PreemptionAccount {
        self.ordered.clear();
        self.on_order();
        self.take_account(Preempted::Killed, Some(process))
    }

    /// Returns the paging since the resume, if any, for a process that has ended but is not reaped.
    pub(super) fn take_last_account(&mut self, process: Pid) -> Option<PreemptionAccount> {
        self.follow_swap(process);
        self.swap
            .has_moved()
            .then(|| self.take_account(Preempted::Ended, None))
    }

    /// Samples the swap usage repeatedly: pages come back when the process touches them.
    pub(super) fn follow_swap(&mut self, process: Pid) {
        if self.swap.swapped() > 0 {
            self.sample_memory(process);
        }
    }

    /// Clears the state; an ended process holds no memory.
    pub(super) fn end(&mut self) {
        self.admission.release(self.attempt);
        if let Some(moving) = self.moving.take() {
            moving.cancelled.store(true, Ordering::Relaxed);
        }
    }

    fn sample_memory(&mut self, process: Pid) -> ProcessMemory {
        // An ending process holds no memory.
        let Ok(memory) = self.admission.processes.memory_of(process) else {
            return ProcessMemory::default();
        };
        self.swap.look(memory);
        memory
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Waits for the next input of the state machine, for ever if none is pending. Cancel-safe.
    ///
    /// # Errors
    /// Fails if the process cannot be watched.
    pub(super) async fn next(&mut self) -> io::Result<Input> {
        loop {
            let Suspension {
                timer,
                change,
                moving,
                ..
            } = self;
            tokio::select! {
                biased;
                changed = awaiting(change.as_mut().map(|(_, waiting)| waiting)) => {
                    self.change = None;
                    match changed?? {
                        ChildEvent::Stopped => return Ok(Input::Stopped),
                        ChildEvent::StillRuns { descendant } => {
                            return Ok(Input::StillRuns { descendant });
                        }
                        ChildEvent::Continued => return Ok(Input::Continued),
                        // The end of the process is detected separately.
                        ChildEvent::Ended => {}
                    }
                }
                moved = awaiting(moving.as_mut().map(|moving| &mut moving.done)) => {
                    if let Some(Paging::In) = self.on_moved(moved) {
                        return Ok(Input::Prefetched);
                    }
                }
                () = over(timer) => {
                    self.timer = None;
                    return Ok(Input::GraceOver);
                }
            }
        }
    }

    /// Takes the result of paging, which is complete or as far as possible; returns its direction.
    fn on_moved(&mut self, result: Result<io::Result<u64>, JoinError>) -> Option<Paging> {
        let moving = self.moving.take()?;
        let read_back = matches!(&result, Ok(Ok(bytes)) if *bytes >= self.swap.swapped());
        if let Ok(Err(error)) = result {
            self.note(format!("cannot page memory: {error}"));
        }
        if moving.paging == Paging::In
            && let Some(process) = self.paged_in.take()
            && read_back
            && let Ok(memory) = self.admission.processes.memory_of(process)
        {
            self.swap.read_back(memory);
        }
        Some(moving.paging)
    }
}

impl Moving {
    /// Fails if the memory of the process may not be paged.
    fn begin(process: &dyn TaskProcess, paging: Paging) -> io::Result<Moving> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let done = process.page(paging, Arc::clone(&cancelled))?;
        Ok(Moving {
            cancelled,
            paging,
            done,
        })
    }
}

/// Never resolves if there is no handle.
async fn awaiting<T>(handle: Option<&mut JoinHandle<T>>) -> Result<T, JoinError> {
    match handle {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}

async fn over(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}
