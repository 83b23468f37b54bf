//! Detects stops and continuations of a child: on SIGCHLD all watched children are checked. Exit statuses are
//! left for the reaper.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::signal::unix::{SignalKind, signal};

/// A change of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEvent {
    /// Every thread is stopped.
    Stopped,
    /// Its threads are stopped, but this descendant of it is not.
    StillRuns { descendant: String },
    /// It was stopped and runs again.
    Continued,
    /// It has ended or is about to be reaped.
    Ended,
}

/// The awaited change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Stop,
    Continuation,
}

/// Waits for a change of the child behind a pidfd, or for its end. Uses no thread, so thousands of waits can
/// run concurrently.
///
/// The kernel reports a stop and sends SIGCHLD when the last thread has stopped. No descriptor becomes
/// readable by a stop; a pidfd does only at the end.
///
/// # Errors
/// Fails if no runtime handles signals, or the descriptor is not that of a child.
pub async fn await_turn(child: &OwnedFd, awaited: Awaited) -> io::Result<ChildEvent> {
    // Subscribed before the first check, so that later changes are reported.
    let mut signals = signal(SignalKind::child())?;
    loop {
        if let Some(event) = look(child, awaited)? {
            return Ok(event);
        }
        signals
            .recv()
            .await
            .ok_or_else(|| io::Error::other("the signal handler has ended"))?;
    }
}

/// Returns the change since the last check. Waiting for stops alone would fail if the child is killed, so its
/// end is checked as well, without reaping. A change is then consumed, so that it is not reported twice.
fn look(child: &OwnedFd, awaited: Awaited) -> io::Result<Option<ChildEvent>> {
    let (turn, of_interest) = match awaited {
        Awaited::Stop => (ChildEvent::Stopped, WaitIdOptions::STOPPED),
        Awaited::Continuation => (ChildEvent::Continued, WaitIdOptions::CONTINUED),
    };
    let wait = |options| match waitid(
        WaitId::PidFd(child.as_fd()),
        options | WaitIdOptions::NOHANG,
    ) {
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
        // It may have changed again between the two calls.
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
            assert_eq!(
                sleeper.turn(Awaited::Continuation).await,
                ChildEvent::Continued
            );
        }
    }

    #[tokio::test]
    async fn kill_ends_wait_and_leaves_exit_status() {
        for awaited in [Awaited::Stop, Awaited::Continuation] {
            let mut sleeper = Sleeper::start();
            if awaited == Awaited::Continuation {
                sleeper.signal(Signal::STOP);
                assert_eq!(sleeper.turn(Awaited::Stop).await, ChildEvent::Stopped);
            }
            sleeper.signal(Signal::KILL);
            assert_eq!(sleeper.turn(awaited).await, ChildEvent::Ended);
            assert!(!sleeper.child.wait().expect("a status").success());
            assert_eq!(
                sleeper.turn(awaited).await,
                ChildEvent::Ended,
                "one that was reaped has ended"
            );
        }
    }

    /// More children than a runtime has threads for blocking calls.
    #[tokio::test]
    async fn hundreds_of_waits_run_at_once() {
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
            // Every wait begins before the first child changes.
            tokio::task::yield_now().await;
            sleepers.iter().for_each(|sleeper| sleeper.signal(signal));
            while let Some(turn) = waiting.join_next().await {
                assert_eq!(turn.expect("no panic"), expected);
            }
        }
    }
}
