//! What all requests share.
//!
//! Owns that it is one thing. Does not own any of its parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

use crate::assets::Assets;
use crate::events::Events;
use crate::guard::{Hosts, Pace, Sessions};
use crate::ledgers::Ledgers;
use crate::once::Once;
use crate::source::PageSource;
use crate::tally::Tally;

/// A cluster or a history, and what is remembered of it.
#[derive(Debug)]
pub struct Shown {
    /// What a query calls it.
    pub name: String,
    pub source: Arc<dyn PageSource>,
    pub ledgers: Ledgers,
}

impl Shown {
    pub fn new(name: String, source: Arc<dyn PageSource>) -> Shown {
        Shown { name, source, ledgers: Ledgers::default() }
    }
}

/// What all requests share.
#[derive(Debug)]
pub struct Web {
    /// What is shown where no recording is named.
    pub shown: Shown,
    /// What can be shown beside it, by name; nothing where there is one thing alone.
    pub recordings: Vec<Shown>,
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
