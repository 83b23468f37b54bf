//! Passes open files between processes over a stream.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum descriptors per message.
const DESCRIPTORS_MAX: usize = 3;

/// Sends a message and descriptors without blocking; the channel must have room for the whole message.
pub fn send_with_descriptors(
    stream: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other(format!(
            "cannot send {} file descriptors in one message (limit {DESCRIPTORS_MAX})",
            descriptors.len()
        )));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match sendmsg(stream, &[IoSlice::new(message)], &mut ancillary, flags)? {
        sent if sent == message.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// A reader that collects the descriptors received with the bytes.
pub struct Carrying<'a> {
    stream: &'a UnixStream,
    /// The descriptors received so far.
    pub descriptors: Vec<OwnedFd>,
}

impl Carrying<'_> {
    pub fn new(stream: &UnixStream) -> Carrying<'_> {
        Carrying {
            stream,
            descriptors: Vec::new(),
        }
    }
}

impl Read for Carrying<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(bytes)];
        let received = recvmsg(
            self.stream,
            &mut into,
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        Ok(received.bytes)
    }
}
