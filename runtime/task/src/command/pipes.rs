//! The three non-blocking pipes to a command, and the wait for any of them.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, ioctl_fionread};

/// The usual capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// The events that have occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ready {
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) errors: bool,
    pub(super) ended: bool,
}

#[derive(Debug)]
pub(super) struct Pipes {
    /// Closed after the last input, or when the command accepts no more.
    input: Option<ChildStdin>,
    /// Closed when the command and its children have closed it.
    output: Option<ChildStdout>,
    /// Closed when all its writers have closed it; that is not awaited.
    errors: Option<ChildStderr>,
    unwritten: Vec<u8>,
    written: usize,
    /// Total bytes written.
    passed: u64,
    read: Box<[u8]>,
}

impl Pipes {
    pub(super) fn new(
        input: ChildStdin,
        output: ChildStdout,
        errors: ChildStderr,
    ) -> io::Result<Pipes> {
        ioctl_fionbio(&input, true)?;
        ioctl_fionbio(&output, true)?;
        ioctl_fionbio(&errors, true)?;
        Ok(Pipes {
            input: Some(input),
            output: Some(output),
            errors: Some(errors),
            unwritten: Vec::new(),
            written: 0,
            passed: 0,
            read: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    /// Appends to the unwritten input, unless the input is closed.
    pub(super) fn append(&mut self, parts: &[&[u8]]) {
        if self.input.is_some() {
            for part in parts {
                self.unwritten.extend_from_slice(part);
            }
        }
    }

    pub(super) fn unwritten(&self) -> usize {
        self.unwritten.len() - self.written
    }

    pub(super) fn takes_input(&self) -> bool {
        self.input.is_some()
    }

    /// Closes the input after the unwritten data.
    pub(super) fn close_input(&mut self) {
        self.input = None;
        (self.unwritten, self.written) = (Vec::new(), 0);
    }

    /// Writes as much as there is room for. A closed pipe is not an error here; the exit status reports the
    /// cause.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        match input.write(&self.unwritten[self.written..]) {
            Ok(count) => {
                self.written += count;
                self.passed += count as u64;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => return Ok(()),
                io::ErrorKind::BrokenPipe => self.close_input(),
                _ => return Err(error),
            },
        }
        if self.written == self.unwritten.len() {
            self.unwritten.clear();
            self.written = 0;
        }
        Ok(())
    }

    /// Returns the bytes that the command has read; `None` if its input is closed.
    pub(super) fn taken(&self) -> Option<u64> {
        let left = ioctl_fionread(self.input.as_ref()?).ok()?;
        Some(self.passed.saturating_sub(left))
    }

    /// Reads available output, at most a pipe full; empty if there is none.
    pub(super) fn read(&mut self) -> io::Result<&[u8]> {
        read_from(&mut self.output, &mut self.read)
    }

    /// Reads available standard error.
    pub(super) fn read_errors(&mut self) -> io::Result<&[u8]> {
        read_from(&mut self.errors, &mut self.read)
    }

    /// Waits until a pipe is ready, the bell rings, the timeout passes, or, once the output is closed, the
    /// command has ended.
    pub(super) fn wait(
        &self,
        bell: BorrowedFd<'_>,
        end: &OwnedFd,
        timeout: Timespec,
    ) -> io::Result<Ready> {
        // The bell stands in for a pipe that is not of interest; it may be polled several times.
        let input = self
            .input
            .as_ref()
            .filter(|_| self.unwritten() > 0)
            .map(AsFd::as_fd);
        let output = self.output.as_ref().map(AsFd::as_fd);
        let errors = self.errors.as_ref().map(AsFd::as_fd);
        // The end of the command counts only after the end of its output.
        let ended = output.is_none().then(|| end.as_fd());
        let of_interest = |pipe, flags| match pipe {
            Some(pipe) => PollFd::from_borrowed_fd(pipe, flags),
            None => PollFd::from_borrowed_fd(bell, PollFlags::empty()),
        };
        let mut interest = [
            of_interest(Some(bell), PollFlags::IN),
            of_interest(input, PollFlags::OUT),
            of_interest(output, PollFlags::IN),
            of_interest(ended, PollFlags::IN),
            of_interest(errors, PollFlags::IN),
        ];
        match poll(&mut interest, Some(&timeout)) {
            // Interrupted, for example by a stop.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // Also if the other end is closed: reading or writing then reports it.
        let is_so = |index: usize| !interest[index].revents().is_empty();
        Ok(Ready {
            input: input.is_some() && is_so(1),
            output: output.is_some() && is_so(2),
            errors: errors.is_some() && is_so(4),
            ended: ended.is_some() && is_so(3),
        })
    }
}

/// Reads at most one buffer; empty if there is nothing now. Closes the pipe at its end.
fn read_from<'b>(pipe: &mut Option<impl Read>, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let Some(open) = pipe else { return Ok(&[]) };
    match open.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => return Ok(&buffer[..count]),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        },
    }
    Ok(&[])
}
