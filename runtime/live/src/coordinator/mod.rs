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

#[cfg(feature = "cluster")]
mod admission;
#[cfg(feature = "cluster")]
mod answers;
mod batch;
#[cfg(feature = "cluster")]
mod chains;
mod claims;
#[cfg(feature = "cluster")]
mod clients;
mod clock;
#[cfg(feature = "cluster")]
mod commands;
#[cfg(feature = "cluster")]
mod compaction;
#[cfg(feature = "cluster")]
mod configuration;
mod daemon;
#[cfg(feature = "cluster")]
mod definitions;
mod details;
mod ending;
mod entry;
mod gone;
#[cfg(feature = "cluster")]
mod history;
mod job;
#[cfg(feature = "cluster")]
mod journal_check;
mod last_heard;
#[cfg_attr(not(feature = "cluster"), path = "embedded_only.rs")]
mod lasting;
mod link;
mod notes;
#[cfg(feature = "cluster")]
mod outcomes;
mod output_log;
mod pauses;
#[cfg(feature = "cluster")]
mod queues;
mod recording;
#[cfg(feature = "cluster")]
mod recovery;
#[cfg(feature = "cluster")]
mod replay;
mod requests;
#[cfg(feature = "cluster")]
mod samples;
#[cfg(feature = "cluster")]
mod server;
mod state;
mod submissions;
#[cfg(test)]
mod tests;
#[cfg(feature = "cluster")]
mod worker_connection;
#[cfg(feature = "cluster")]
mod worker_conversations;
mod workers;

#[cfg(test)]
pub(crate) use clients::{ClientDesk, ClientLimits};
#[cfg(feature = "cluster")]
pub use configuration::CoordinatorConfiguration;
pub(crate) use daemon::{Coordinator, Input};
#[cfg(feature = "cluster")]
pub use journal_check::{JournalCheck, check_journal};
pub(crate) use lasting::JournalError;
#[cfg(feature = "cluster")]
pub use recording::ReplayedBatch;
#[cfg(feature = "cluster")]
pub use replay::{ReplayError, replay_journal};
pub(crate) use requests::{Following, Request};
#[cfg(test)]
pub(crate) use requests::{LogHolder, Refusal};
#[cfg(feature = "cluster")]
pub use server::{CoordinatorError, run_coordinator};
