//! Owns what becomes of processes that outlive the one that started them, such as the Java of a Spark whose
//! Python has ended: they become children of this process, so that the time they took is known.
//! Who they are is known from the tree.

use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// How long those that are left may take to end; they are left alone then.
const WAIT_MAX: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

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
        let mut left = descendants;
        while !left.is_empty() && began.elapsed() < WAIT_MAX {
            // What is no child of this process, or not any more, is an error.
            left.retain(|process| matches!(waitpid(Some(*process), WaitOptions::NOHANG), Ok(None)));
            if !left.is_empty() {
                std::thread::sleep(LOOK);
            }
        }
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}
