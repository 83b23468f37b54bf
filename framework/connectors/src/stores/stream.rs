//! Sequential reads of an object, with read-ahead by two concurrent requests.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use tokio::task::JoinHandle;

use crate::stores::threads::{self, no_threads};
use crate::stores::{StorageError, StoredObject};

/// Maximum bytes of one request.
pub const REQUEST_BYTES: u64 = 8 << 20;
/// Bytes that a request asks for beyond the known end.
const BEHIND_BYTES: u64 = 64 << 10;
/// Concurrent requests.
const UNDER_WAY: usize = 2;

type Answer = Result<Bytes, StorageError>;

/// The bytes of an object from an offset on, in order. Reads ahead up to `end`, and only a little beyond it.
#[derive(Debug)]
pub struct ObjectStream {
    object: StoredObject,
    /// Offset of the next returned byte.
    position: u64,
    /// Offset of the next request.
    next: u64,
    end: u64,
    /// Bytes of the next request, and their limit.
    request_bytes: u64,
    most: u64,
    /// Whether the caller has continued reading, so that read-ahead pays off.
    is_read: bool,
    under_way: VecDeque<JoinHandle<Answer>>,
    here: Bytes,
}

impl ObjectStream {
    /// Creates a stream from `offset` with requests of at most `request_bytes` (at least 1). Makes no request
    /// before the first read.
    pub fn new(object: StoredObject, offset: u64, end: u64, request_bytes: u64) -> ObjectStream {
        let request_bytes = request_bytes.clamp(1, REQUEST_BYTES);
        ObjectStream {
            object,
            position: offset,
            next: offset,
            end,
            request_bytes,
            most: request_bytes,
            is_read: true,
            under_way: VecDeque::with_capacity(UNDER_WAY),
            here: Bytes::new(),
        }
    }

    /// Creates a stream for a caller that may need little: requests grow from `first` to `most` bytes while
    /// the caller reads.
    pub fn growing(object: StoredObject, offset: u64, first: u64, most: u64) -> ObjectStream {
        let end = object.length();
        let most = most.clamp(1, REQUEST_BYTES);
        let mut stream = ObjectStream::new(object, offset, end, first.min(most));
        (stream.most, stream.is_read) = (most, false);
        stream
    }

    /// Returns the offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the end of received and requested bytes.
    pub fn requested_end(&self) -> u64 {
        self.next
    }

    /// Skips bytes without requesting them.
    ///
    /// # Errors
    ///
    /// As [`read`](ObjectStream::read).
    pub fn skip_to(&mut self, offset: u64) -> Result<(), StorageError> {
        while self.position < offset && (!self.here.is_empty() || !self.under_way.is_empty()) {
            if self.here.is_empty() {
                self.here = self.first_answer()?;
            }
            let wanted = usize::try_from(offset - self.position)
                .unwrap_or(usize::MAX)
                .min(self.here.len());
            self.here.advance(wanted);
            self.position += wanted as u64;
        }
        if self.position < offset {
            self.position = offset;
            self.next = offset;
        }
        Ok(())
    }

    /// Reads at most `into.len()` bytes; at least one unless the object has ended.
    ///
    /// # Errors
    ///
    /// As [`StoredObject::read_at`].
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, StorageError> {
        if into.is_empty() || self.position >= self.object.length() {
            return Ok(0);
        }
        while self.here.is_empty() {
            self.ask()?;
            self.here = self.first_answer()?;
            if self.is_read {
                self.ask()?;
            }
        }
        self.is_read = true;
        let taken = into.len().min(self.here.len());
        into[..taken].copy_from_slice(&self.here[..taken]);
        self.here.advance(taken);
        self.position += taken as u64;
        Ok(taken)
    }

    /// Starts requests up to the limit.
    fn ask(&mut self) -> Result<(), StorageError> {
        let wanted = if self.is_read { UNDER_WAY } else { 1 };
        while self.under_way.len() < wanted && self.next < self.object.length() {
            let certain = self.end.saturating_sub(self.next);
            if certain == 0 && (!self.under_way.is_empty() || !self.here.is_empty()) {
                break;
            }
            let bytes = if certain == 0 { BEHIND_BYTES } else { certain }.min(self.request_bytes);
            let range = self.next..(self.next + bytes).min(self.object.length());
            self.next = range.end;
            self.request_bytes = (self.request_bytes * 2).min(self.most);
            let object = self.object.clone();
            let request =
                threads::start(self.object.uri(), async move { object.fetch(range).await });
            self.under_way.push_back(request?);
        }
        Ok(())
    }

    fn first_answer(&mut self) -> Answer {
        let Some(request) = self.under_way.pop_front() else {
            return Ok(Bytes::new());
        };
        let ended = threads::wait(self.object.uri(), request)?;
        let answer = ended.unwrap_or_else(|_| {
            Err(no_threads(
                self.object.uri(),
                std::io::ErrorKind::Interrupted,
            ))
        });
        if answer.is_err() {
            // After an error, a further read starts at the missing byte.
            self.abort();
            self.next = self.position;
        }
        answer
    }

    fn abort(&mut self) {
        for request in self.under_way.drain(..) {
            request.abort();
        }
    }
}

impl Drop for ObjectStream {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 % 251) as u8).collect()
    }

    /// Reads a whole stream in pieces of at most this size.
    fn read_all(mut stream: ObjectStream, piece: usize) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let mut into = vec![0; piece];
            let begin = stream.position();
            let read = stream.read(&mut into).expect("it can be read");
            assert_eq!(stream.position(), begin + read as u64);
            all.extend_from_slice(&into[..read]);
            if read == 0 {
                return all;
            }
        }
    }

    #[test]
    fn reads_of_any_size_return_each_byte_once() {
        let content = bytes(1000);
        let object = StoredObject::in_memory(&content);
        for request in [1, 7, 100, 1000, REQUEST_BYTES] {
            for (offset, end) in [
                (0, 1000),
                (0, 300),
                (1, 2),
                (500, 400),
                (999, 1000),
                (1000, 1000),
            ] {
                let expected = &content[offset as usize..];
                let stream = ObjectStream::new(object.clone(), offset, end, request);
                assert_eq!(read_all(stream, 64), expected, "{request} {offset}..{end}");
                let growing = ObjectStream::growing(object.clone(), offset, 3, request);
                assert_eq!(read_all(growing, 1000), expected, "{request} {offset}");
            }
        }
    }

    #[test]
    fn skipped_bytes_are_not_returned() {
        let content = bytes(1000);
        let object = StoredObject::in_memory(&content);
        for to in [0, 1, 9, 10, 25, 500, 1000] {
            for read_before in [false, true] {
                let mut stream = ObjectStream::new(object.clone(), 0, 1000, 10);
                if read_before && to > 0 {
                    assert_eq!(stream.read(&mut [0]), Ok(1));
                }
                stream.skip_to(to).expect("nothing is wrong");
                assert_eq!(
                    read_all(stream, 64),
                    &content[to as usize..],
                    "{to} {read_before}"
                );
            }
        }
    }

    #[test]
    fn bytes_after_gap_are_not_returned() {
        let object = StoredObject::in_memory(&bytes(100));
        let mut stream = ObjectStream::new(object.clone(), 0, 100, 10);
        assert_eq!(stream.read(&mut [0; 10]), Ok(10));
        object.replace(&bytes(99));
        let mut into = [0; 10];
        // Requests in flight may have completed.
        while stream.read(&mut into).is_ok() {}
        let position = stream.position();
        assert!(stream.read(&mut into).is_err() && stream.position() == position);
    }
}
