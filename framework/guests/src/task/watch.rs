//! Timing of a guest's checkpoints: at intervals, and on SIGTERM.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use napreduce_protocol::lock;
use napreduce_protocol::printing::print_error;
use napreduce_task::{StopSignals, TaskContext};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::TERMINATED;

const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// Checkpoints and restores take at most 1/10 of the time: restoring takes longer each time if the input
/// cannot seek.
const SHARE: u32 = 10;

/// Requests checkpoints of the current round.
#[derive(Debug)]
pub(super) struct Watch {
    interval: Duration,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    stage: GuestStage,
    /// The current round.
    round: Option<Arc<TaskContext>>,
    /// The time of the next checkpoint, if there is unsaved work.
    due: Option<Instant>,
    /// Start of the time spent on saving and restoring.
    idle_since: Option<Instant>,
    requests: Requests,
    /// Set after a checkpoint has failed.
    off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum GuestStage {
    #[default]
    Before,
    AtWork,
    /// The result is being reported.
    After,
}

/// Requests to a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Requests {
    /// Save a checkpoint.
    pub(super) save: bool,
    /// End after the checkpoint.
    pub(super) end: bool,
}

impl Watch {
    /// Starts the watch, which handles SIGTERM.
    pub(super) fn begin(interval: Duration) -> io::Result<Arc<Watch>> {
        let terminations = StopSignals::install(Signal::TERM)?;
        let watch = Arc::new(Watch {
            interval,
            state: Mutex::default(),
        });
        let watching = Arc::clone(&watch);
        std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || watching.attend(&terminations))?;
        Ok(watch)
    }

    fn attend(&self, terminations: &StopSignals) {
        loop {
            let mut interest = [PollFd::from_borrowed_fd(
                terminations.as_fd(),
                PollFlags::IN,
            )];
            // A signal interrupts `poll`; it is handled below.
            let _ = poll(&mut interest, Some(&TICK));
            if terminations.take() {
                self.terminate();
            }
            self.request_if_due();
        }
    }

    /// Requests a last checkpoint. Exits if there is nothing to save, or at the second signal.
    fn terminate(&self) {
        let mut state = self.lock();
        if state.requests.end || state.off || state.stage == GuestStage::Before {
            print_error(format_args!("terminated; nothing is saved"));
            std::process::exit(TERMINATED);
        }
        state.requests.end = true;
        if let Some(round) = state.round.clone() {
            state.requests.save = true;
            round.gate().checkpoint();
        }
    }

    fn request_if_due(&self) {
        let mut state = self.lock();
        let is_due = state.due.is_some_and(|due| due <= Instant::now());
        if let Some(round) = state.round.clone().filter(|_| is_due && !state.off) {
            (state.due, state.idle_since) = (None, Some(Instant::now()));
            state.requests.save = true;
            round.gate().checkpoint();
        }
    }

    /// Begins a round; returns false if the process was asked to terminate.
    pub(super) fn enter(&self, round: &Arc<TaskContext>) -> bool {
        let mut state = self.lock();
        if state.requests.end {
            return false;
        }
        state.stage = GuestStage::AtWork;
        state.round = Some(Arc::clone(round));
        state.idle_since.get_or_insert_with(Instant::now);
        true
    }

    /// Registers that the round does new work, and schedules a checkpoint.
    pub(super) fn schedule(&self) {
        let mut state = self.lock();
        let idle = state
            .idle_since
            .take()
            .map_or(Duration::ZERO, |since| since.elapsed());
        // Never due if the time overflows.
        state.due = Instant::now().checked_add(self.interval.max(idle * (SHARE - 1)));
    }

    /// Ends a round; returns its requests.
    pub(super) fn leave(&self) -> Requests {
        let mut state = self.lock();
        (state.round, state.due) = (None, None);
        let requests = state.requests;
        state.requests.save = false;
        requests
    }

    /// Ends the watch when the work is done.
    pub(super) fn end(&self) {
        self.lock().stage = GuestStage::After;
    }

    /// Requests no more checkpoints.
    pub(super) fn switch_off(&self) {
        self.lock().off = true;
    }

    /// A panic cannot leave the state inconsistent.
    fn lock(&self) -> MutexGuard<'_, WatchState> {
        lock(&self.state)
    }
}
