//! A process of a program that waits just before `main`; task processes are forks of it.
//!
//! Executing a program, loading its libraries and relocating them takes longer than a short task. A fork
//! server does this once; each fork still runs the program from its first line. Python's fork server
//! (`multiprocessing`) is similar, but forks after the program's own start.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use napreduce_task::{FORK_SERVER_READY, send_with_descriptors};
use rustix::io::Errno;
use rustix::process::{Pid, setpgid};

use super::child::Started;

/// Time for a program to reach its fork server before `main`.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running fork server.
#[derive(Debug)]
pub(super) struct ForkServer {
    /// Killed on drop.
    process: Started,
}

impl ForkServer {
    /// Waits until the process is ready to fork; fails if its program has no fork server.
    pub(super) fn await_ready(process: Started) -> io::Result<ForkServer> {
        let mut control = &process.control;
        control.set_nonblocking(false)?;
        control.set_read_timeout(Some(PATIENCE))?;
        let mut greeting = [0; FORK_SERVER_READY.len()];
        let mut received = 0;
        // A program that cannot fork reaches `main` and sends its Hello, which is shorter than the greeting.
        while received < greeting.len() {
            match control.read(&mut greeting[received..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => received += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if greeting[..received] != FORK_SERVER_READY[..received] {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "the program is not a fork server",
                ));
            }
        }
        Ok(ForkServer { process })
    }

    /// Forks a child of this process in its own process group, with these files as standard input, output and
    /// error.
    pub(super) fn fork(&self, number: u64, streams: [OwnedFd; 3]) -> io::Result<Pid> {
        let mut control = &self.process.control;
        let descriptors = streams.each_ref().map(OwnedFd::as_fd);
        send_with_descriptors(control, &number.to_le_bytes(), &descriptors)?;
        let mut answer = [0; 4];
        control.read_exact(&mut answer)?;
        let child = match i32::from_le_bytes(answer) {
            error if error < 0 => return Err(io::Error::from_raw_os_error(-error)),
            child => Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?,
        };
        match setpgid(Some(child), Some(child)) {
            // The child was faster and has executed another program or ended.
            Ok(()) | Err(Errno::ACCESS | Errno::SRCH) => Ok(child),
            Err(error) => Err(error.into()),
        }
    }
}
