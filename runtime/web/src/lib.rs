//! What a browser, a script and a monitor see of a cluster and of ended jobs.
//!
//! Owns the objects of REST, which `--format json` prints too, and the server: routes, roles, metrics, the
//! page. Does not own what is known (the coordinator, `napreduce-history`). The server asks a cluster
//! as the command line does, so whatever becomes of a page becomes of no job.
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

pub mod answers;
mod assets;
pub mod clock;
mod context;
mod events;
mod guard;
mod lock;
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
pub use report::report_html;
pub use routes::openapi_json;
pub use server::{DEFAULT_ADDRESS, ServeError, WebServer, WebSettings, link, token};
pub use source::{ClusterSource, HistorySource, OperatorCommand, PageSource, SourceError};
pub use what_if::WhatIfSettings;
