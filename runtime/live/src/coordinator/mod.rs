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

mod admission;
mod answers;
mod batch;
mod chains;
mod claims;
mod clients;
mod clock;
mod commands;
mod compaction;
mod configuration;
mod daemon;
mod definitions;
mod ending;
mod entry;
mod gone;
mod history;
mod job;
mod journal_check;
mod last_heard;
mod link;
mod notes;
mod outcomes;
mod output_log;
mod pauses;
mod queues;
mod recovery;
mod replay;
mod requests;
mod samples;
mod server;
mod state;
mod submissions;
#[cfg(test)]
mod tests;
mod worker_connection;
mod workers;

#[cfg(test)]
pub(crate) use clients::{ClientDesk, ClientLimits};
pub use configuration::CoordinatorConfiguration;
pub(crate) use daemon::{Coordinator, Input};
pub use journal_check::{JournalCheck, check_journal};
pub use replay::{ReplayError, ReplayedBatch, replay_journal};
pub(crate) use requests::{Following, Request};
#[cfg(test)]
pub(crate) use requests::{LogHolder, Refusal};
pub use server::{CoordinatorError, run_coordinator};
