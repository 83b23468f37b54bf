//! Snapshots in the place of a journal that has grown.
//!
//! Owns when one is made, and that the loop does no more for it than copy what it knows. Does not own the
//! files (`journal`) nor what is in a snapshot (`recovery`).

use std::io;
use std::time::Instant;

use tokio::task::spawn_blocking;

use super::daemon::{Coordinator, Input};
use super::lasting::ClusterInput;
use crate::journal::JournalError;

impl Coordinator {
    /// Syncs the journal when that is due, and begins a snapshot when it has grown and none is being written.
    pub(super) fn compact_if_due(&mut self) -> Result<(), JournalError> {
        let Some(lasting) = &mut self.lasting else { return Ok(()) };
        lasting.journal.sync_if_due()?;
        if lasting.journal.bytes() < lasting.configuration.journal_bytes_max || lasting.compacting.is_some() {
            return Ok(());
        }
        let began = Instant::now();
        let compaction = lasting.journal.begin_compaction()?;
        let path = compaction.path();
        let (snapshot, own) = (self.state.snapshot(), self.own.clone());
        let copied = began.elapsed();
        let writing = spawn_blocking(move || {
            let written = compaction.write(&snapshot);
            tracing::info!(
                target: "coordinator",
                "snapshot: the loop stood still for {:.1} ms, written after {:.1} ms",
                copied.as_secs_f64() * 1_000.0,
                began.elapsed().as_secs_f64() * 1_000.0
            );
            written
        });
        lasting.compacting = Some(tokio::spawn(async move {
            let panicked = |error| JournalError::Io { doing: "write", path, source: io::Error::other(error) };
            let written = writing.await.unwrap_or_else(|error| Err(panicked(error)));
            // A coordinator that has ended hears nothing, and has waited for it.
            let _ = own.send(Input::Cluster(ClusterInput::Compacted(written)));
        }));
        Ok(())
    }

    pub(super) fn on_compacted(&mut self, written: Result<(), JournalError>) {
        if let Some(lasting) = &mut self.lasting {
            lasting.compacting = None;
        }
        if let Err(error) = written {
            self.say(&format!(
                "warning: {error}; the journal's files are kept, and a snapshot is tried again when the last of them has grown"
            ));
        }
    }

    /// The last snapshot: a later version of this program may decide otherwise, but it can read what
    /// was decided.
    pub(super) async fn compact_at_the_end(&mut self) -> Result<(), JournalError> {
        let Some(lasting) = &mut self.lasting else { return Ok(()) };
        if let Some(compacting) = lasting.compacting.take() {
            // What became of it matters no more: another one is written.
            let _ = compacting.await;
        }
        let rules = lasting.journal.header().rules.clone();
        lasting.journal.compact(&self.state.snapshot(), rules)
    }
}
