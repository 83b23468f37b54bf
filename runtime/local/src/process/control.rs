//! The control channel of a task process, as its worker uses it.

use std::fmt::Debug;
use std::io;

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::processes::Pending;

/// The worker's end of a control channel: a stream of bytes in each direction.
pub trait ControlChannel: Debug + Send + Sync {
    /// Waits until the channel can be read or written as `interest` says, or the task has closed it.
    fn ready(&self, interest: Interest) -> Pending<'_, ()>;

    /// Reads available bytes; returns 0 once the task has closed the channel.
    ///
    /// # Errors
    /// Fails with `WouldBlock` if there are none.
    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes as many bytes as there is room for.
    ///
    /// # Errors
    /// Fails with `WouldBlock` if there is no room, and with `BrokenPipe` if the task has closed the channel.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl ControlChannel for UnixStream {
    fn ready(&self, interest: Interest) -> Pending<'_, ()> {
        Box::pin(async move { UnixStream::ready(self, interest).await.map(drop) })
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        UnixStream::try_read(self, bytes)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        UnixStream::try_write(self, bytes)
    }
}
