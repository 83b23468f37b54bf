//! Passes open files between processes over a stream.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors that one message brings at most.
const DESCRIPTORS_MAX: usize = 3;

/// Sends a message and descriptors to one who was told little before, so that there is room for all of it:
/// never waits.
pub fn send_with_descriptors(
    stream: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other(format!("no room for {} descriptors", descriptors.len())));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match sendmsg(stream, &[IoSlice::new(message)], &mut ancillary, flags)? {
        sent if sent == message.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// A stream that brings descriptors, too.
pub struct Carrying<'a> {
    stream: &'a UnixStream,
    /// Those that have come with what was read.
    pub descriptors: Vec<OwnedFd>,
}

impl Carrying<'_> {
    pub fn new(stream: &UnixStream) -> Carrying<'_> {
        Carrying { stream, descriptors: Vec::new() }
    }
}

impl Read for Carrying<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(bytes)];
        let received = recvmsg(self.stream, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        Ok(received.bytes)
    }
}
