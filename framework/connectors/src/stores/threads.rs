//! The two threads on which requests run.

use std::io;
use std::sync::{OnceLock, mpsc};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::stores::{ObjectUri, StorageError};

/// Enough for the requests of one reader, which mostly wait.
const THREADS: usize = 2;

static RUNTIME: OnceLock<Result<Runtime, io::ErrorKind>> = OnceLock::new();

fn runtime() -> Result<&'static Runtime, io::ErrorKind> {
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(THREADS)
            .thread_name("storage")
            .enable_io()
            .enable_time();
        builder.build().map_err(|error| error.kind())
    };
    RUNTIME.get_or_init(start).as_ref().map_err(|kind| *kind)
}

/// Runs `work` on an object concurrently.
pub(crate) fn start<T: Send + 'static>(
    uri: &ObjectUri,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<JoinHandle<T>, StorageError> {
    Ok(runtime().map_err(|kind| no_threads(uri, kind))?.spawn(work))
}

/// Runs `work` on an object and waits for it. Callable from any thread, including those of another runtime.
pub(crate) fn wait<T: Send + 'static>(
    uri: &ObjectUri,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StorageError> {
    let (done, outcome) = mpsc::sync_channel(1);
    start(uri, async move {
        // The receiver is still waiting.
        let _ = done.send(work.await);
    })?;
    outcome
        .recv()
        .map_err(|_| no_threads(uri, io::ErrorKind::BrokenPipe))
}

/// The error if the threads cannot start.
pub(crate) fn no_threads(uri: &ObjectUri, kind: io::ErrorKind) -> StorageError {
    StorageError::Settings {
        uri: uri.to_string(),
        reason: format!("cannot start threads for requests: {kind}"),
    }
}
