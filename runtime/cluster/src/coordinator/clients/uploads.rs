//! One upload of a blob at a time: many clients of one program that submit at once send it once.
//!
//! Owns who waits for whom. Does not own the blobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use napreduce_protocol::Digest;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::timeout;

/// Whoever has waited so long for another's upload sends the blob itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The uploads that are going on.
#[derive(Clone, Default)]
pub(super) struct Uploads(Arc<Mutex<BTreeMap<Digest, Arc<AsyncMutex<()>>>>>);

/// The turn of one client, until it is dropped.
pub(super) struct UploadTurn {
    uploads: Uploads,
    digest: Digest,
    /// `None` when the patience was at its end.
    guard: Option<OwnedMutexGuard<()>>,
}

impl Uploads {
    /// Waits until nobody else uploads this blob, within limits.
    pub(super) async fn turn(&self, digest: Digest) -> UploadTurn {
        let gate = {
            let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(gates.entry(digest).or_default())
        };
        let guard = timeout(PATIENCE, gate.lock_owned()).await.ok();
        UploadTurn { uploads: self.clone(), digest, guard }
    }
}

impl Drop for UploadTurn {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut gates = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Others that wait hold the gate, too; the last one takes it away.
        if gates.get(&self.digest).is_some_and(|gate| Arc::strong_count(gate) == 1) {
            gates.remove(&self.digest);
        }
    }
}
