//! The state that all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

use crate::assets::Assets;
use crate::events::Events;
use crate::guard::{Hosts, Pace, Sessions};
use crate::once::Once;
use crate::shown::Shown;
use crate::tally::Tally;
use crate::what_if::WhatIfs;

/// The state that all requests share.
#[derive(Debug)]
pub struct Web {
    /// The source of requests that name no recording.
    pub shown: Arc<Shown>,
    /// Further sources by name; empty if there is only one.
    pub recordings: Vec<Arc<Shown>>,
    /// What-ifs, or why they are unavailable.
    pub what_ifs: Result<WhatIfs, String>,
    pub sessions: Sessions,
    pub assets: Assets,
    pub hosts: Hosts,
    pub pace: Pace,
    pub calls: Calls,
    /// `None` if the sources never change.
    pub events: Option<Events>,
    pub tally: Tally,
    /// Status and JSON of commands with an idempotency key.
    pub once: Once<(StatusCode, Vec<u8>)>,
}

impl Web {
    /// Returns all named sources: those given to the server, then results of what-ifs, newest first.
    pub fn recordings(&self) -> Vec<Arc<Shown>> {
        let made = self
            .what_ifs
            .as_ref()
            .map_or_else(|_| Vec::new(), |known| known.queue.recordings());
        self.recordings.iter().cloned().chain(made).collect()
    }
}

/// Number of calls per route, by its index in the table.
#[derive(Debug)]
pub struct Calls(Vec<AtomicU64>);

impl Calls {
    pub fn new(routes: usize) -> Calls {
        Calls((0..routes).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn count(&self, index: usize) {
        if let Some(count) = self.0.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed))
    }
}
