//! Whether a child has been stopped, or goes on, as the kernel reports it.
//!
//! Owns the waiting, in a thread that blocks: no descriptor tells of stops, and nothing polls. Does not own the signals
//! (`spawn`), nor the reaping: an exit status is left for whoever reaps.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, waitid};

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

/// Waits, blocking, for a turn of the child behind a pidfd without `PIDFD_NONBLOCK`, or for its end.
///
/// The kernel reports a stop when the last thread has stopped. A wait for stops alone would fail when the child is killed, so
/// the end is waited for as well, without taking it; a turn is then taken by itself, so that it is not reported twice.
pub fn await_turn(child: &OwnedFd, awaited: Awaited) -> io::Result<ChildEvent> {
    let (turn, of_interest) = match awaited {
        Awaited::Stop => (ChildEvent::Stopped, WaitIdOptions::STOPPED),
        Awaited::Continuation => (ChildEvent::Continued, WaitIdOptions::CONTINUED),
    };
    loop {
        let child = || WaitId::PidFd(child.as_fd());
        let seen = match waitid(child(), of_interest | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(seen) => seen,
            Err(rustix::io::Errno::INTR) => continue,
            // Reaped meanwhile.
            Err(rustix::io::Errno::CHILD) => return Ok(ChildEvent::Ended),
            Err(error) => return Err(error.into()),
        };
        if seen.is_some_and(|status| status.exited() || status.killed() || status.dumped()) {
            return Ok(ChildEvent::Ended);
        }
        match waitid(child(), of_interest | WaitIdOptions::NOHANG) {
            Ok(Some(_)) => return Ok(turn),
            // It turned again between the two calls.
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(ChildEvent::Ended),
            Err(error) => return Err(error.into()),
        }
    }
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

        fn turn(&self, awaited: Awaited) -> ChildEvent {
            await_turn(&self.pidfd, awaited).expect("a turn")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn stops_and_continuations_are_reported_each_once() {
        let sleeper = Sleeper::start();
        for _ in 0..3 {
            sleeper.signal(Signal::STOP);
            assert_eq!(sleeper.turn(Awaited::Stop), ChildEvent::Stopped);
            sleeper.signal(Signal::CONT);
            assert_eq!(sleeper.turn(Awaited::Continuation), ChildEvent::Continued);
        }
    }

    #[test]
    fn a_kill_ends_the_wait_and_leaves_the_status() {
        for awaited in [Awaited::Stop, Awaited::Continuation] {
            let mut sleeper = Sleeper::start();
            if awaited == Awaited::Continuation {
                sleeper.signal(Signal::STOP);
                assert_eq!(sleeper.turn(Awaited::Stop), ChildEvent::Stopped);
            }
            sleeper.signal(Signal::KILL);
            assert_eq!(sleeper.turn(awaited), ChildEvent::Ended);
            assert!(!sleeper.child.wait().expect("a status").success());
            assert_eq!(sleeper.turn(awaited), ChildEvent::Ended, "one that was reaped has ended");
        }
    }
}
