//! Dashboard, REST API and metrics of a cluster or of ended jobs. The REST objects are those of
//! `napreduce-answers`. The server queries a cluster like the command line does, so a failing web server cannot affect
//! jobs.
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use napreduce_protocol::Secret;
//! use napreduce_web::{HistorySource, WebServer, WebSettings};
//!
//! let source = HistorySource::open(Path::new("cluster"))?;
//! let server = WebServer::start(&WebSettings::new(Secret::generate()?), Arc::new(source))?;
//! println!("{}", server.link(napreduce_web::WebRole::View)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assets;
pub mod clock;
mod context;
mod events;
mod guard;
mod labels;
mod ledger_window;
mod once;
mod per_job;
mod problem;
mod report;
mod routes;
mod server;
mod shown;
mod source;
mod tally;
mod what_if;

pub use guard::{RevocationError, Revocations, WebRole};
pub use ledger_window::{FlowEnds, LedgerWindow};
pub use per_job::{Window, recent_performance};
pub use report::report_html;
pub use routes::openapi_json;
pub use server::{DEFAULT_ADDRESS, ServeError, WebServer, WebSettings, link, token};
pub use source::{ClusterSource, HistorySource, PageSource, SourceError};
pub use what_if::WhatIfSettings;
