//! Timing of a guest's checkpoints: at intervals, and on SIGTERM.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use napreduce_protocol::printing::print_error;
use napreduce_task::{StopSignals, TaskContext};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::TOLD_TO_END;

const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Of all time at most this part goes into saving and going on from it: a reader that cannot seek takes
/// longer each time.
const SHARE: u32 = 10;

/// Asks the round that runs to save its work.
#[derive(Debug)]
pub(super) struct Watch {
    interval: Duration,
    state: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    stage: GuestStage,
    /// While one runs.
    round: Option<Arc<TaskContext>>,
    /// It does what is not saved: since when, and when that is to be saved.
    due: Option<Instant>,
    /// Since when nothing new was done.
    idle_since: Option<Instant>,
    /// What was asked of the round.
    asked: Asked,
    /// No more is saved, since that has failed.
    off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum GuestStage {
    /// The work has not begun.
    #[default]
    Before,
    AtWork,
    /// It is done, and is being reported.
    After,
}

/// What was asked of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Asked {
    /// To save its work.
    pub(super) to_save: bool,
    /// And to end then.
    pub(super) to_end: bool,
}

impl Watch {
    /// Takes over SIGTERM.
    pub(super) fn begin(interval: Duration) -> io::Result<Arc<Watch>> {
        let terminations = StopSignals::install(Signal::TERM)?;
        let watch = Arc::new(Watch { interval, state: Mutex::default() });
        let watching = Arc::clone(&watch);
        std::thread::Builder::new().name("watch".into()).spawn(move || watching.attend(&terminations))?;
        Ok(watch)
    }

    fn attend(&self, terminations: &StopSignals) {
        loop {
            let mut interest = [PollFd::from_borrowed_fd(terminations.as_fd(), PollFlags::IN)];
            // Interrupted by a signal: it is looked at here all the same.
            let _ = poll(&mut interest, Some(&TICK));
            if terminations.take() {
                self.tell_to_end();
            }
            self.look_at_the_time();
        }
    }

    /// Ends the process where there is nothing to save, or somebody is in a hurry.
    fn tell_to_end(&self) {
        let mut state = self.lock();
        if state.asked.to_end || state.off || state.stage == GuestStage::Before {
            print_error(format_args!("told to end; nothing is saved"));
            std::process::exit(TOLD_TO_END);
        }
        state.asked.to_end = true;
        if let Some(round) = state.round.clone() {
            state.asked.to_save = true;
            round.gate().checkpoint();
        }
    }

    fn look_at_the_time(&self) {
        let mut state = self.lock();
        let is_due = state.due.is_some_and(|due| due <= Instant::now());
        if let Some(round) = state.round.clone().filter(|_| is_due && !state.off) {
            (state.due, state.idle_since) = (None, Some(Instant::now()));
            state.asked.to_save = true;
            round.gate().checkpoint();
        }
    }

    /// A round begins. Answers false if there is to be none.
    pub(super) fn enter(&self, round: &Arc<TaskContext>) -> bool {
        let mut state = self.lock();
        if state.asked.to_end {
            return false;
        }
        state.stage = GuestStage::AtWork;
        state.round = Some(Arc::clone(round));
        state.idle_since.get_or_insert_with(Instant::now);
        true
    }

    /// The round does something new.
    pub(super) fn moves_on(&self) {
        let mut state = self.lock();
        let idle = state.idle_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        // Beyond the end of time it is never due.
        state.due = Instant::now().checked_add(self.interval.max(idle * (SHARE - 1)));
    }

    /// The round has ended.
    pub(super) fn leave(&self) -> Asked {
        let mut state = self.lock();
        (state.round, state.due) = (None, None);
        let asked = state.asked;
        state.asked.to_save = false;
        asked
    }

    /// The work is done: there is nothing more to save.
    pub(super) fn end(&self) {
        self.lock().stage = GuestStage::After;
    }

    /// Nothing more is saved.
    pub(super) fn switch_off(&self) {
        self.lock().off = true;
    }

    /// Nothing is left half-changed under this lock.
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
