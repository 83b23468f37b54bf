//! The coordinator: the loop around the engine.
//!
//! Owns the clock, the journal, and of each job what the engine does not care about: paths, counters, parts,
//! history. Does not own a decision (the engine) nor a process (the workers).
//!
//! ```text
//! connections -- inputs, requests --> daemon -- entries --> journal
//!                                        |                     | written
//!                                        v                     v
//!                                      state (engine, jobs, links) -- flush --> connections
//! ```

#[cfg(feature = "daemon")]
mod admission;
#[cfg(feature = "daemon")]
mod answers;
mod batch;
#[cfg(feature = "daemon")]
mod chains;
mod claims;
#[cfg(feature = "daemon")]
mod clients;
mod clock;
#[cfg(feature = "daemon")]
mod commands;
#[cfg(feature = "daemon")]
mod compaction;
#[cfg(feature = "daemon")]
mod configuration;
mod daemon;
#[cfg(feature = "daemon")]
mod definitions;
mod details;
mod ending;
mod entry;
mod gone;
#[cfg(feature = "daemon")]
mod history;
mod job;
#[cfg(feature = "daemon")]
mod journal_check;
mod last_heard;
#[cfg_attr(not(feature = "daemon"), path = "embedded_only.rs")]
mod lasting;
mod link;
mod notes;
#[cfg(feature = "daemon")]
mod outcomes;
mod output_log;
mod pauses;
#[cfg(feature = "daemon")]
mod queues;
mod recording;
#[cfg(feature = "daemon")]
mod recovery;
#[cfg(feature = "daemon")]
mod replay;
mod requests;
#[cfg(feature = "daemon")]
mod samples;
#[cfg(feature = "daemon")]
mod server;
mod state;
mod submissions;
#[cfg(test)]
mod tests;
#[cfg(feature = "daemon")]
mod worker_connection;
#[cfg(feature = "daemon")]
mod worker_conversations;
mod workers;

#[cfg(test)]
pub(crate) use clients::{ClientDesk, ClientLimits};
#[cfg(feature = "daemon")]
pub use configuration::CoordinatorConfiguration;
pub(crate) use daemon::{Coordinator, Input};
#[cfg(feature = "daemon")]
pub use journal_check::{JournalCheck, check_journal};
pub(crate) use lasting::JournalError;
#[cfg(feature = "daemon")]
pub use recording::ReplayedBatch;
#[cfg(feature = "daemon")]
pub use replay::{ReplayError, replay_journal};
pub(crate) use requests::{Following, Request};
#[cfg(test)]
pub(crate) use requests::{LogHolder, Refusal};
#[cfg(feature = "daemon")]
pub use server::{CoordinatorError, run_coordinator};
