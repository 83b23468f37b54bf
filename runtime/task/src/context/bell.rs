//! A bell that wakes code which waits for descriptors.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Readable from a ring until it is [taken](Bell::take).
#[derive(Debug)]
pub struct Bell {
    rings: UnixStream,
    rope: UnixStream,
}

impl Bell {
    pub fn make() -> io::Result<Bell> {
        let (rings, rope) = UnixStream::pair()?;
        rings.set_nonblocking(true)?;
        rope.set_nonblocking(true)?;
        Ok(Bell { rings, rope })
    }

    pub fn ring(&self) {
        // If it is full, it is readable anyway.
        let _ = (&self.rope).write(&[0]);
    }

    /// Clears all rings so far.
    pub fn take(&self) {
        let mut rings = [0; 64];
        while (&self.rings)
            .read(&mut rings)
            .is_ok_and(|count| count == rings.len())
        {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_ringing(bell: &Bell) -> bool {
        let mut interest = [PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut interest, Some(&at_once)).expect("descriptors that are open") > 0
    }

    #[test]
    fn repeated_rings_are_taken_once() {
        let bell = Bell::make().expect("a bell");
        assert!(!is_ringing(&bell));
        for _ in 0..1000 {
            bell.ring();
        }
        assert!(is_ringing(&bell));
        bell.take();
        assert!(!is_ringing(&bell));
        bell.ring();
        assert!(is_ringing(&bell));
    }
}
