//! The worker's end of a control channel: non-blocking sends and receives.

use std::io;

use napreduce_protocol::{FrameBuffer, FromTask, ToTask, WireError, encode_onto};
use tokio::io::Interest;

use crate::process::ControlChannel;

/// Bytes read from a control channel at once; messages of tasks are small.
const READ_BYTES: usize = 4096;

#[derive(Debug)]
pub(super) struct ControlLine {
    /// Bytes still to be sent.
    outbox: Vec<u8>,
    inbox: FrameBuffer,
    /// False once the task has closed the channel or sent malformed input.
    pub(super) is_open: bool,
}

/// The result of one read.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) messages: Vec<FromTask>,
    /// Whether there may be more to read.
    pub(super) more: bool,
    /// The reason why further input is unreadable.
    pub(super) broken: Option<String>,
}

impl ControlLine {
    /// Creates a line with a queued first message.
    pub(super) fn begin(first: &ToTask) -> Result<ControlLine, WireError> {
        let mut line = ControlLine {
            outbox: Vec::new(),
            inbox: FrameBuffer::default(),
            is_open: true,
        };
        line.put(first)?;
        Ok(line)
    }

    /// Queues a message.
    pub(super) fn put(&mut self, message: &ToTask) -> Result<(), WireError> {
        encode_onto(&mut self.outbox, message)
    }

    /// Ignores all further input, and drops the bytes still to be sent.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        self.outbox.clear();
    }

    /// Returns the I/O interest, if any.
    pub(super) fn interest(&self) -> Option<Interest> {
        let has_to_send = !self.outbox.is_empty();
        match (self.is_open, has_to_send) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        }
    }

    /// Sends queued bytes without blocking.
    pub(super) fn send_waiting(&mut self, channel: &dyn ControlChannel) -> io::Result<()> {
        while !self.outbox.is_empty() {
            match channel.try_write(&self.outbox) {
                Ok(count) => {
                    self.outbox.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The process ended without reading; its exit status has the reason.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.outbox.clear(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads available messages.
    pub(super) fn receive(&mut self, channel: &dyn ControlChannel) -> io::Result<Received> {
        let mut received = Received::default();
        if !self.is_open {
            return Ok(received);
        }
        let mut bytes = [0; READ_BYTES];
        match channel.try_read(&mut bytes) {
            Ok(0) => {
                self.is_open = false;
                if !self.inbox.is_between_frames() {
                    received.broken = Some(WireError::CutShort.to_string());
                }
            }
            Ok(count) => {
                self.inbox.push(&bytes[..count]);
                received.more = true;
                self.take_messages(&mut received);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The other end was closed with unread data.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.is_open = false,
            Err(error) => return Err(error),
        }
        Ok(received)
    }

    fn take_messages(&mut self, received: &mut Received) {
        loop {
            match self.inbox.next_message() {
                Ok(Some(message)) => received.messages.push(message),
                Ok(None) => return,
                Err(error) => {
                    received.broken = Some(format!("control channel: {error}"));
                    return;
                }
            }
        }
    }
}
