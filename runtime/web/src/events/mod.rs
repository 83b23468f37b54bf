//! Events as they happen: what has changed in a cluster, for all who listen.
//!
//! Owns one thread that looks at the cluster for all of them, and only while there is somebody. Does not own
//! how events are sent, nor who may listen (`routes`).

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
    /// Of a cluster that runs. It is asked nothing before somebody listens.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(source: Arc<dyn PageSource>) -> io::Result<Events> {
        let hub = Arc::new(Hub::new(now_millis()));
        let watched = hub.clone();
        // It may be in the middle of a question when all ends, and is not waited for.
        std::thread::Builder::new()
            .name("web-events".to_owned())
            .spawn(move || watcher::watch(&watched, &*source))?;
        Ok(Events { hub })
    }

    /// Ends all streams, for good.
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
