//! Compaction of the journal by snapshots. The loop only copies its state; another thread writes the
//! snapshot.

use std::io;

use napreduce_local::clock::now;

use super::recovery::Snapshot;
use super::{ClusterCoordinator, ClusterInput};
use crate::journal::JournalError;

impl ClusterCoordinator {
    /// Syncs the journal if due, and begins a snapshot if the journal has grown and none is being written.
    pub(super) fn compact_if_due(&mut self) -> Result<(), JournalError> {
        self.journal.sync_if_due()?;
        if self.journal.bytes() < self.configuration.journal_bytes_max || self.compacting.is_some()
        {
            return Ok(());
        }
        let began = now();
        let compaction = self.journal.begin_compaction()?;
        let path = compaction.path();
        let snapshot = Snapshot::new(self.local.state());
        let inputs = self.inputs.clone();
        let copied = began.elapsed();
        let tasks = &self.configuration.world.tasks;
        let writing = tasks.blocking(move || {
            let written = compaction.write(&snapshot);
            tracing::info!(
                target: "coordinator",
                "snapshot: copied in {:.1} ms (coordinator stalled), written after {:.1} ms",
                copied.as_secs_f64() * 1_000.0,
                began.elapsed().as_secs_f64() * 1_000.0
            );
            written
        });
        self.compacting = Some(tasks.spawn(async move {
            let panicked = |error| JournalError::Io {
                doing: "write",
                path,
                source: io::Error::other(error),
            };
            let written = writing.await.unwrap_or_else(|error| Err(panicked(error)));
            // Fails only after the coordinator's end, which waits for the snapshot.
            let _ = inputs.send(ClusterInput::Compacted(written));
        }));
        Ok(())
    }

    pub(super) fn on_compacted(&mut self, written: Result<(), JournalError>) {
        self.compacting = None;
        if let Err(error) = written {
            self.local.log(&format!(
                "warning: {error}; the journal is kept; the snapshot is retried after the journal has grown"
            ));
        }
    }

    /// Writes a final snapshot: a later version may decide differently, but can read past decisions.
    pub(super) async fn compact_at_the_end(&mut self) -> Result<(), JournalError> {
        if let Some(compacting) = self.compacting.take() {
            // Its result does not matter: another snapshot follows.
            let _ = compacting.await;
        }
        let rules = self.journal.header().rules.clone();
        self.journal
            .compact(&Snapshot::new(self.local.state()), rules)
    }
}
