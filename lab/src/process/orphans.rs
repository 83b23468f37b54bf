//! Owns what becomes of processes that outlive the one that started them, such as the Java of a Spark whose
//! Python has ended: they become children of this process, so that the time they took is known.
//! Who they are is known from the tree.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, set_child_subreaper, waitpid};

/// How long those that are left may take to end; they are left alone then.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// As long as it lives, orphans among the descendants of this process come to it.
#[derive(Debug)]
pub struct Adoption(());

impl Adoption {
    pub fn begin() -> Adoption {
        // Where the kernel does not do it, the time of orphans is not known.
        let _ = set_child_subreaper(Some(getpid()));
        Adoption(())
    }

    /// Waits until those of them have ended that came to this process; no other child is waited for.
    pub fn end(self, descendants: Vec<Pid>) {
        let began = Instant::now();
        for process in descendants {
            // What is no child of this process, or not any more, is an error.
            let is_running = || matches!(waitpid(Some(process), WaitOptions::NOHANG), Ok(None));
            if is_running() && ends_within(process, WAIT_MAX.saturating_sub(began.elapsed())) {
                is_running();
            }
        }
    }
}

fn ends_within(process: Pid, time: Duration) -> bool {
    let Ok(descriptor) = pidfd_open(process, PidfdFlags::empty()) else { return false };
    let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&time)).is_ok_and(|ended| ended > 0)
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}
