//! Fetches a blob from the coordinator. The caller decides whether to retry.

use std::sync::Arc;
use std::time::Duration;

use napreduce_local::world::World;
use napreduce_protocol::requests::FetchBlob;
use napreduce_protocol::{Blob, CHUNK_BYTES, Digest, FromCoordinator, Secret, ToCoordinator};
use thiserror::Error;

use super::{BlobError, BlobIntake, BlobStore, PinnedBlob};
use crate::cluster_directory::ClusterDirectoryError;
use crate::transport::{self, HANDSHAKE_DEADLINE, Role, TransportError};

/// Maximum silence of the coordinator.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const AWAITED: &str = "the next piece of a blob";

/// An error of fetching a blob.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error("cannot fetch blob {digest} from {address}: {source}")]
    Transport {
        digest: Digest,
        address: String,
        source: TransportError,
    },
    #[error("cannot fetch blob {digest} from {address}: {reason}")]
    Refused {
        digest: Digest,
        address: String,
        reason: String,
    },
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The coordinator's address is unknown.
    #[error(transparent)]
    Nowhere(#[from] ClusterDirectoryError),
}

impl FetchError {
    /// Returns whether a retry may succeed without intervention.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            FetchError::Transport { .. } | FetchError::Nowhere(_) => true,
            FetchError::Refused { .. } => false,
            FetchError::Blob(error) => error.is_senders(),
        }
    }
}

/// Returns the blob from the store, or else from the coordinator at `address`, verified.
pub(crate) async fn fetch(
    world: &World,
    address: &str,
    secret: &Secret,
    store: &Arc<BlobStore>,
    blob: Blob,
) -> Result<PinnedBlob, FetchError> {
    let digest = blob.digest;
    let own = Arc::clone(store);
    let pinned = world.tasks.blocking(move || own.pin(digest)).await;
    if let Some(pinned) = pinned.unwrap_or(Err(BlobError::Interrupted { digest }))? {
        return Ok(pinned);
    }
    let broken = |source| FetchError::Transport {
        digest,
        address: address.to_owned(),
        source,
    };
    let refused = |reason: String| FetchError::Refused {
        digest,
        address: address.to_owned(),
        reason,
    };
    let mut connection =
        transport::connect(world, address, Role::Client, secret, HANDSHAKE_DEADLINE)
            .await
            .map_err(broken)?;
    connection
        .send(&ToCoordinator::FetchBlob(FetchBlob { digest }))
        .await
        .map_err(broken)?;
    match connection
        .receive_within(SILENCE_MAX, AWAITED)
        .await
        .map_err(broken)?
    {
        FromCoordinator::Blob(bytes) if bytes == blob.bytes => {}
        FromCoordinator::Blob(bytes) => {
            return Err(refused(format!(
                "it has {bytes} bytes there instead of {}",
                blob.bytes
            )));
        }
        FromCoordinator::Refused { reason, .. } => return Err(refused(reason)),
        other => {
            return Err(refused(format!(
                "protocol error: unexpected answer {other:?}"
            )));
        }
    }
    let mut intake = BlobIntake::start(&world.tasks, Arc::clone(store), blob);
    while intake.left() > 0 {
        match connection
            .receive_within(SILENCE_MAX, AWAITED)
            .await
            .map_err(broken)?
        {
            FromCoordinator::Chunk(bytes) if (1..=CHUNK_BYTES).contains(&bytes.0.len()) => {
                if !intake.push(bytes.0).await {
                    break;
                }
            }
            FromCoordinator::Refused { reason, .. } => return Err(refused(reason)),
            _ => {
                return Err(refused(
                    "protocol error: unexpected message between its chunks".to_owned(),
                ));
            }
        }
    }
    Ok(intake.finish().await?)
}
