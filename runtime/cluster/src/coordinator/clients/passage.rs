//! Transfers blobs between a client or worker and the store.

use std::sync::Arc;

use napreduce_protocol::{Blob, CHUNK_BYTES, Digest, FromCoordinator, Payload, ToCoordinator};

use super::{Client, Parting, Refusal};
use crate::blobs::{BlobError, BlobIntake, PinnedBlob, chunks_of};
use crate::transport::TransportError;

/// Maximum number of blobs of one submission.
const PINS_MAX: usize = super::checks::FILES_MAX + 1;

impl Client {
    /// Pins a blob for the client's next submission; receives it if it is missing.
    pub(super) async fn pin_blob(&mut self, blob: Blob) -> Result<(), Parting> {
        let max = self.desk.limits.blob_bytes_max;
        if blob.bytes > max {
            let reason = format!(
                "a program or side file of {} bytes is too large (limit {max}); strip the program, or put \
                 the file where every worker can read it",
                blob.bytes
            );
            return Err(Refusal::wrong(reason).into());
        }
        if self.pins.len() >= PINS_MAX && !self.pins.contains_key(&blob.digest) {
            return Err(
                Refusal::wrong(format!("too many files for one job (limit {PINS_MAX})")).into(),
            );
        }
        let _turn = self.desk.uploads.turn(blob.digest).await;
        if let Some(pinned) = self.pin(blob.digest).await? {
            self.pins.insert(blob.digest, pinned);
            return self.send(&FromCoordinator::Wanted(None)).await;
        }
        let (intake, begun) =
            BlobIntake::continuing(&self.desk.world.tasks, Arc::clone(&self.desk.blobs), blob)
                .await;
        self.send(&FromCoordinator::Wanted(Some(begun))).await?;
        let received = self.receive_blob(intake).await?;
        self.pins.insert(blob.digest, received);
        self.send(&FromCoordinator::Done).await
    }

    /// Receives the rest of a blob. Reads it to the end even if it cannot be stored, so that the client receives
    /// the error. What has arrived is kept if the connection breaks.
    async fn receive_blob(&mut self, mut intake: BlobIntake) -> Result<PinnedBlob, Parting> {
        if let Err(parting) = self.receive_chunks(&mut intake).await {
            // The next upload of the blob waits until the file is ready to be continued.
            intake.stop().await;
            return Err(parting);
        }
        Ok(intake.finish().await.map_err(Refusal::failed)?)
    }

    async fn receive_chunks(&mut self, intake: &mut BlobIntake) -> Result<(), Parting> {
        let stalled = self.desk.limits.stalled;
        while intake.left() > 0 {
            let left = intake.left();
            let received = self
                .receiver
                .receive_within(stalled, "the next piece of a blob")
                .await;
            let received = received.map_err(|error| match error {
                TransportError::TimedOut { .. } => Parting::SendsNothing(stalled),
                other => other.into(),
            })?;
            match received {
                Some(ToCoordinator::Chunk(Payload(bytes)))
                    if (1..=CHUNK_BYTES).contains(&bytes.len()) && bytes.len() as u64 <= left =>
                {
                    intake.push(bytes).await;
                }
                Some(ToCoordinator::Chunk(Payload(bytes))) => {
                    return Err(Parting::ChunkLength {
                        length: bytes.len(),
                        left,
                    });
                }
                Some(_) => {
                    let got = "a request";
                    let expected = "a piece of a blob";
                    return Err(Parting::OutOfTurn { got, expected });
                }
                None => return Err(TransportError::CutShort.into()),
            }
        }
        Ok(())
    }

    /// Sends a blob to a worker.
    pub(super) async fn hand_out(&mut self, digest: Digest) -> Result<(), Parting> {
        let pinned = self.pin(digest).await?;
        let missing =
            || Refusal::wrong(format!("blob {digest} is not stored; submit its job again"));
        let pinned = pinned.ok_or_else(missing)?;
        let (file, length) = pinned.open().map_err(Refusal::failed)?;
        self.send(&FromCoordinator::Blob(length)).await?;
        let mut chunks = chunks_of(&self.desk.world.tasks, file, length);
        while let Some(chunk) = chunks.recv().await {
            let chunk = chunk
                .map_err(|error| Parting::Source(format!("cannot read blob {digest}: {error}")))?;
            self.send(&FromCoordinator::Chunk(Payload(chunk))).await?;
        }
        Ok(())
    }

    async fn pin(&self, digest: Digest) -> Result<Option<PinnedBlob>, Refusal> {
        let store = Arc::clone(&self.desk.blobs);
        let pinned = self
            .desk
            .world
            .tasks
            .blocking(move || store.pin(digest))
            .await;
        pinned
            .unwrap_or(Err(BlobError::Interrupted { digest }))
            .map_err(Refusal::failed)
    }
}
