//! Serializes uploads of a blob, so that many clients of one program upload it once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_protocol::{Digest, lock};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::timeout;

/// A client that waited this long uploads the blob itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The uploads in progress.
#[derive(Clone, Default)]
pub(super) struct Uploads(Arc<Mutex<BTreeMap<Digest, Arc<AsyncMutex<()>>>>>);

/// A client's right to upload, until dropped.
pub(super) struct UploadTurn {
    uploads: Uploads,
    digest: Digest,
    /// `None` after the timeout.
    guard: Option<OwnedMutexGuard<()>>,
}

impl Uploads {
    /// Waits until no other client uploads this blob, up to a limit.
    pub(super) async fn turn(&self, digest: Digest) -> UploadTurn {
        let gate = {
            let mut gates = lock(&self.0);
            Arc::clone(gates.entry(digest).or_default())
        };
        let guard = timeout(PATIENCE, gate.lock_owned()).await.ok();
        UploadTurn {
            uploads: self.clone(),
            digest,
            guard,
        }
    }
}

impl Drop for UploadTurn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut gates = lock(&self.uploads.0);
        // Waiting clients hold the gate, too; the last one removes it.
        if gates
            .get(&self.digest)
            .is_some_and(|gate| Arc::strong_count(gate) == 1)
        {
            gates.remove(&self.digest);
        }
    }
}
