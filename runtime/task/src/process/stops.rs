//! Whether a child has been stopped, or goes on, as the kernel reports it.
//!
//! Owns the waiting: SIGCHLD says that some child has turned, and those that are waited for are looked at.
//! Does not own the signals to a child (`spawn`), nor the reaping: an exit status is left for whoever reaps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::{SignalKind, signal};

/// What has become of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// Every thread of it is stopped.
    Stopped,
    /// It was stopped and runs again.
    Continued,
    /// It is gone, or about to be reaped.
    Ended,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Stop,
    Continuation,
}

/// Waits for a turn of the child behind a pidfd, or for its end. Takes no thread: thousands may be waited for
/// at a time.
///
/// The kernel reports a stop when the last thread has stopped, and interrupts this process with SIGCHLD when
/// it does. No descriptor becomes readable by it, a pidfd only at the end.
///
/// # Errors
/// When there is no runtime that handles signals, or the descriptor is none of a child.
pub async fn await_turn(child: &OwnedFd, awaited: Awaited) -> io::Result<ChildEvent> {
    // Before the first look, so that what turns after it is told.
    let mut told = signal(SignalKind::child())?;
    loop {
        if let Some(event) = look(child, awaited)? {
            return Ok(event);
        }
        told.recv().await.ok_or_else(|| io::Error::other("signals are handled no more"))?;
    }
}

/// What has become of it since the last look. A look for stops alone would fail when the child is killed, so
/// the end is looked for as well, without taking it; a turn is then taken by itself, so that it is not
/// reported twice.
fn look(child: &OwnedFd, awaited: Awaited) -> io::Result<Option<ChildEvent>> {
    let (turn, of_interest) = match awaited {
        Awaited::Stop => (ChildEvent::Stopped, WaitIdOptions::STOPPED),
        Awaited::Continuation => (ChildEvent::Continued, WaitIdOptions::CONTINUED),
    };
    let wait = |options| match waitid(WaitId::PidFd(child.as_fd()), options | WaitIdOptions::NOHANG) {
        // Reaped meanwhile.
        Err(rustix::io::Errno::CHILD) => Ok(Err(ChildEvent::Ended)),
        Err(error) => Err(io::Error::from(error)),
        Ok(seen) => Ok(Ok(seen)),
    };
    let seen = match wait(of_interest | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)? {
        Err(ended) => return Ok(Some(ended)),
        Ok(None) => return Ok(None),
        Ok(Some(seen)) => seen,
    };
    if seen.exited() || seen.killed() || seen.dumped() {
        return Ok(Some(ChildEvent::Ended));
    }
    Ok(match wait(of_interest)? {
        Err(ended) => Some(ended),
        // It may have turned again between the two calls.
        Ok(taken) => taken.map(|_| turn),
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

    use super::*;

    struct Sleeper {
        child: Child,
        pidfd: OwnedFd,
    }

    impl Sleeper {
        fn start() -> Sleeper {
            let child = Command::new("sleep").arg("1000").spawn().expect("sleep");
            let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("a pidfd");
            Sleeper { child, pidfd }
        }

        fn signal(&self, signal: Signal) {
            kill_process(Pid::from_child(&self.child), signal).expect("signalled");
        }

        async fn turn(&self, awaited: Awaited) -> ChildEvent {
            await_turn(&self.pidfd, awaited).await.expect("a turn")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[tokio::test]
    async fn stops_and_continuations_are_reported_each_once() {
        let sleeper = Sleeper::start();
        for _ in 0..3 {
            sleeper.signal(Signal::STOP);
            assert_eq!(sleeper.turn(Awaited::Stop).await, ChildEvent::Stopped);
            sleeper.signal(Signal::CONT);
            assert_eq!(sleeper.turn(Awaited::Continuation).await, ChildEvent::Continued);
        }
    }

    #[tokio::test]
    async fn a_kill_ends_the_wait_and_leaves_the_status() {
        for awaited in [Awaited::Stop, Awaited::Continuation] {
            let mut sleeper = Sleeper::start();
            if awaited == Awaited::Continuation {
                sleeper.signal(Signal::STOP);
                assert_eq!(sleeper.turn(Awaited::Stop).await, ChildEvent::Stopped);
            }
            sleeper.signal(Signal::KILL);
            assert_eq!(sleeper.turn(awaited).await, ChildEvent::Ended);
            assert!(!sleeper.child.wait().expect("a status").success());
            assert_eq!(sleeper.turn(awaited).await, ChildEvent::Ended, "one that was reaped has ended");
        }
    }

    /// More than a runtime has threads for what blocks.
    #[tokio::test]
    async fn many_are_waited_for_at_a_time() {
        let sleepers: Vec<Sleeper> = (0..600).map(|_| Sleeper::start()).collect();
        let turns = [
            (Awaited::Stop, Signal::STOP, ChildEvent::Stopped),
            (Awaited::Continuation, Signal::CONT, ChildEvent::Continued),
        ];
        for (awaited, signal, expected) in turns {
            let mut waiting = tokio::task::JoinSet::new();
            for sleeper in &sleepers {
                let pidfd = sleeper.pidfd.try_clone().expect("a descriptor");
                waiting.spawn(async move { await_turn(&pidfd, awaited).await.expect("a turn") });
            }
            // Each waits before any turns.
            tokio::task::yield_now().await;
            sleepers.iter().for_each(|sleeper| sleeper.signal(signal));
            while let Some(turn) = waiting.join_next().await {
                assert_eq!(turn.expect("no panic"), expected);
            }
        }
    }
}
