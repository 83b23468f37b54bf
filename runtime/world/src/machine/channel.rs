//! A control channel in memory: two bounded streams of bytes, as of a socket pair.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use napreduce_local::process::{ControlChannel, Pending};
use napreduce_protocol::{FrameBuffer, FromTask, ToTask, WireError, encode, lock};
use tokio::io::Interest;
use tokio::sync::Notify;

/// The bytes that each direction holds before a writer must wait.
const CAPACITY: usize = 64 << 10;

/// One direction.
#[derive(Debug, Default)]
struct Stream {
    bytes: VecDeque<u8>,
    is_writer_gone: bool,
    is_reader_gone: bool,
}

#[derive(Debug, Default)]
struct Streams {
    to_task: Stream,
    from_task: Stream,
}

#[derive(Debug, Default)]
struct Channel {
    streams: Mutex<Streams>,
    /// Something changed for the worker.
    worker: Notify,
    /// Something changed for the task.
    task: Notify,
}

impl Channel {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        lock(&self.streams)
    }
}

/// The worker's end. Dropping it closes the channel.
#[derive(Debug)]
pub(super) struct WorkerEnd {
    channel: Arc<Channel>,
}

/// The task's end. Dropping it closes the channel.
#[derive(Debug)]
pub(super) struct TaskEnd {
    channel: Arc<Channel>,
    inbox: FrameBuffer,
}

/// Creates both ends of a channel.
pub(super) fn pair() -> (WorkerEnd, TaskEnd) {
    let channel = Arc::new(Channel::default());
    let worker = WorkerEnd {
        channel: Arc::clone(&channel),
    };
    let task = TaskEnd {
        channel,
        inbox: FrameBuffer::default(),
    };
    (worker, task)
}

impl WorkerEnd {
    fn is_ready(&self, interest: Interest) -> bool {
        let streams = self.channel.streams();
        let from_task = &streams.from_task;
        let to_task = &streams.to_task;
        let is_readable = !from_task.bytes.is_empty() || from_task.is_writer_gone;
        let is_writable = to_task.bytes.len() < CAPACITY || to_task.is_reader_gone;
        interest.is_readable() && is_readable || interest.is_writable() && is_writable
    }
}

impl ControlChannel for WorkerEnd {
    fn ready(&self, interest: Interest) -> Pending<'_, ()> {
        Box::pin(async move {
            while !self.is_ready(interest) {
                self.channel.worker.notified().await;
            }
            Ok(())
        })
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut streams = self.channel.streams();
        let stream = &mut streams.from_task;
        if stream.bytes.is_empty() && !stream.is_writer_gone {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut count = 0;
        while count < bytes.len()
            && let Some(byte) = stream.bytes.pop_front()
        {
            bytes[count] = byte;
            count += 1;
        }
        self.channel.task.notify_one();
        Ok(count)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut streams = self.channel.streams();
        let stream = &mut streams.to_task;
        if stream.is_reader_gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(CAPACITY - stream.bytes.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        stream.bytes.extend(&bytes[..count]);
        self.channel.task.notify_one();
        Ok(count)
    }
}

impl Drop for WorkerEnd {
    fn drop(&mut self) {
        let mut streams = self.channel.streams();
        streams.to_task.is_writer_gone = true;
        streams.from_task.is_reader_gone = true;
        self.channel.task.notify_one();
    }
}

impl TaskEnd {
    /// Sends a message, waiting for room. A message to a worker that has closed the channel is lost.
    pub(super) async fn send(&self, message: &FromTask) -> Result<(), WireError> {
        let bytes = encode(message)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let written = self.try_write(rest);
            if written == 0 {
                self.channel.task.notified().await;
            }
            rest = &rest[written..];
        }
        Ok(())
    }

    fn try_write(&self, bytes: &[u8]) -> usize {
        let mut streams = self.channel.streams();
        let stream = &mut streams.from_task;
        if stream.is_reader_gone {
            return bytes.len();
        }
        let count = bytes.len().min(CAPACITY - stream.bytes.len());
        stream.bytes.extend(&bytes[..count]);
        self.channel.worker.notify_one();
        count
    }

    /// Waits for the next message; `None` once the worker has closed the channel. Cancel-safe.
    pub(super) async fn receive(&mut self) -> Result<Option<ToTask>, WireError> {
        loop {
            let is_closed = {
                let mut streams = self.channel.streams();
                let stream = &mut streams.to_task;
                let bytes: Vec<u8> = stream.bytes.drain(..).collect();
                self.inbox.push(&bytes);
                stream.is_writer_gone
            };
            self.channel.worker.notify_one();
            if let Some(message) = self.inbox.next_message()? {
                return Ok(Some(message));
            }
            if is_closed {
                return Ok(None);
            }
            self.channel.task.notified().await;
        }
    }
}

impl Drop for TaskEnd {
    fn drop(&mut self) {
        let mut streams = self.channel.streams();
        streams.from_task.is_writer_gone = true;
        streams.to_task.is_reader_gone = true;
        self.channel.worker.notify_one();
    }
}
