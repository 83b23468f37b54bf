//! Reads a file as chunks for sending, outside the task that sends. A bounded channel keeps it close to the sender.

use std::io::{self, Read};

use napreduce_local::world::Tasks;
use tokio::sync::mpsc::{Receiver, channel};

/// Bytes of a chunk: few, so that a connection that breaks loses little and a slow one shows progress.
const CHUNK_BYTES: usize = 128 << 10;
/// Chunks buffered for the network.
const CHUNKS_WAITING_MAX: usize = 2;

/// Returns the first `length` bytes of a file in chunks; a shorter file ends with an error.
pub(crate) fn chunks_of(
    tasks: &Tasks,
    mut file: impl Read + Send + 'static,
    length: u64,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel(CHUNKS_WAITING_MAX);
    let blocking_tasks = tasks.clone();
    tasks.spawn(async move {
        let mut left = length;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let reading = blocking_tasks.blocking(move || {
                let mut chunk = vec![0; size];
                let read = file.read_exact(&mut chunk);
                (file, read.map(|()| chunk))
            });
            // A panic has been printed; the receiver sees a file that is too short.
            let Ok((same_file, chunk)) = reading.await else {
                return;
            };
            let has_failed = chunk.is_err();
            let sent = sender.send(chunk).await;
            // A dropped receiver has lost its connection.
            if sent.is_err() || has_failed {
                return;
            }
            file = same_file;
            left -= size as u64;
        }
    });
    receiver
}
