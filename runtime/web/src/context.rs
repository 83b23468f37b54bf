//! What all requests share.
//!
//! Owns that it is one thing. Does not own any of its parts.

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

/// What all requests share.
#[derive(Debug)]
pub struct Web {
    /// What is shown where no recording is named.
    pub shown: Arc<Shown>,
    /// What can be shown beside it, by name; nothing where there is one thing alone.
    pub recordings: Vec<Arc<Shown>>,
    /// Why there are none, where there are none.
    pub what_ifs: Result<WhatIfs, String>,
    pub sessions: Sessions,
    pub assets: Assets,
    pub hosts: Hosts,
    pub pace: Pace,
    pub calls: Calls,
    /// None where nothing changes.
    pub events: Option<Events>,
    pub tally: Tally,
    /// Status and JSON of orders.
    pub once: Once<(StatusCode, Vec<u8>)>,
}

impl Web {
    /// All that a query can name: what the server was given, then what what-ifs have made, the newest first.
    pub fn recordings(&self) -> Vec<Arc<Shown>> {
        let made = self.what_ifs.as_ref().map_or_else(|_| Vec::new(), |known| known.queue.recordings());
        self.recordings.iter().cloned().chain(made).collect()
    }
}

/// How often each route of the table was called, by its place in it.
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
