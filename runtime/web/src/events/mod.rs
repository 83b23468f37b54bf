//! Server-sent events: the changes of a cluster. One thread polls the cluster for all streams, and only while there are
//! any.

mod changes;
mod details;
mod event;
mod hub;
mod queue;
mod topic;
mod watcher;

use std::io;
use std::sync::Arc;

pub use event::PageEvent;
pub use hub::{SubscribeError, Subscription};
pub use topic::Topics;

use hub::Hub;

use crate::clock::now_millis;
use crate::source::PageSource;

/// The events of a cluster.
#[derive(Debug)]
pub struct Events {
    pub hub: Arc<Hub>,
}

impl Events {
    /// Starts the events of a running cluster, which is not polled before the first stream.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(source: Arc<dyn PageSource>) -> io::Result<Events> {
        let hub = Arc::new(Hub::new(now_millis()));
        let watched = hub.clone();
        // Not joined at the end: it may be waiting for the cluster.
        std::thread::Builder::new()
            .name("web-events".to_owned())
            .spawn(move || watcher::watch(&watched, &*source))?;
        Ok(Events { hub })
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.hub.close();
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
