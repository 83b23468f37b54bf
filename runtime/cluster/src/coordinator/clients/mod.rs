//! The connections of clients: one task each, which translates between wire messages and requests to the
//! loop. Limits rate and order; transfers blobs and logs without involving the loop.

mod chains;
mod checks;
mod following;
mod logs;
mod passage;
mod rerun;
mod uploads;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use napreduce_local::world::World;
use napreduce_protocol::requests::{FetchBlob, OfferBlob};
use napreduce_protocol::{Digest, FromCoordinator, Secret, Submission, ToCoordinator};
use thiserror::Error;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;
use uploads::Uploads;

use super::refusal::Refusal;
use super::requests::{LoopRequest, Reply};
use crate::blobs::{BlobStore, PinnedBlob};
use crate::transport::{Connection, MessageReceiver, MessageSender, TransportError};

/// Limits on a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientLimits {
    /// Maximum size of a program or side file, in bytes.
    pub(crate) blob_bytes_max: u64,
    /// An idle client is disconnected after this time; it reconnects on its next request.
    pub(crate) idle: Duration,
    /// A client that stalls in the middle of an exchange is disconnected after this time. Shorter than the client's own
    /// limit, so that its upload can continue over the next connection.
    pub(crate) stalled: Duration,
    /// A client that follows a job receives a message at least this often, as proof that the connection is
    /// alive.
    pub(crate) sign_of_life: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        ClientLimits {
            blob_bytes_max: 1 << 30,
            idle: Duration::from_secs(300),
            stalled: Duration::from_secs(15),
            sign_of_life: Duration::from_secs(5),
        }
    }
}

/// State shared by all connections.
#[derive(Clone)]
pub(crate) struct ClientDesk {
    world: World,
    requests: UnboundedSender<LoopRequest>,
    blobs: Arc<BlobStore>,
    uploads: Uploads,
    /// Authenticates this process to the data servers of workers, for logs.
    secret: Secret,
    limits: ClientLimits,
    /// Receives one line for each connection that ends abnormally.
    warn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl ClientDesk {
    pub(crate) fn new(
        world: World,
        requests: UnboundedSender<LoopRequest>,
        blobs: Arc<BlobStore>,
        secret: Secret,
        limits: ClientLimits,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> ClientDesk {
        let uploads = Uploads::default();
        ClientDesk {
            world,
            requests,
            blobs,
            uploads,
            secret,
            limits,
            warn: Arc::new(warn),
        }
    }

    /// Serves a client until it disconnects, breaks the protocol or times out.
    pub(crate) async fn serve(self, mut connection: Connection, peer: SocketAddr) {
        let warn = Arc::clone(&self.warn);
        connection.limit_silence(self.limits.stalled);
        let (sender, receiver) = connection.split();
        let mut client = Client {
            desk: self,
            sender,
            receiver,
            pins: BTreeMap::new(),
        };
        match client.serve().await {
            // A client killed by its user disconnects without notice.
            Ok(()) | Err(Parting::Transport(TransportError::Io(_) | TransportError::CutShort)) => {}
            Err(Parting::CoordinatorEnds) => {}
            Err(parting) => warn(&format!("disconnected client {peer}: {parting}")),
        }
    }
}

/// The reason for ending a connection.
#[derive(Debug, Error)]
enum Parting {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("protocol error: expected {expected}, got {got}")]
    OutOfTurn {
        got: &'static str,
        expected: &'static str,
    },
    #[error(
        "invalid blob piece of {length} bytes (limit {}); {left} bytes are left",
        napreduce_protocol::CHUNK_BYTES
    )]
    ChunkLength { length: usize, left: u64 },
    #[error("the client received nothing for {0:?}")]
    TakesNothing(Duration),
    #[error("the client sent nothing for {0:?} during an upload")]
    SendsNothing(Duration),
    #[error("{0}")]
    Source(String),
    /// Reported to the client; the connection continues.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the coordinator is stopping")]
    CoordinatorEnds,
}

/// One client.
struct Client {
    desk: ClientDesk,
    sender: MessageSender,
    receiver: MessageReceiver,
    /// Blobs pinned for its next submission.
    pins: BTreeMap<Digest, PinnedBlob>,
}

impl Client {
    async fn serve(&mut self) -> Result<(), Parting> {
        loop {
            let message = timeout(self.desk.limits.idle, self.receiver.receive()).await;
            // Idle: the client reconnects when it needs to.
            let Ok(message) = message else { return Ok(()) };
            let Some(message) = message? else {
                return Ok(());
            };
            match self.answer(message).await {
                Err(Parting::Refused(refusal)) => {
                    let status = refusal.status();
                    let reason = refusal.to_string();
                    self.send(&FromCoordinator::Refused { status, reason })
                        .await?;
                }
                answered => answered?,
            }
        }
    }

    async fn answer(&mut self, message: ToCoordinator) -> Result<(), Parting> {
        match message {
            ToCoordinator::OfferBlob(OfferBlob { blob }) => self.pin_blob(blob).await,
            ToCoordinator::Chunk(_) => Err(Parting::OutOfTurn {
                got: "a piece of a blob",
                expected: "a request",
            }),
            ToCoordinator::EndChain(_) => Err(Parting::OutOfTurn {
                got: "the end of a chain",
                expected: "a request",
            }),
            ToCoordinator::FetchBlob(FetchBlob { digest }) => self.hand_out(digest).await,
            ToCoordinator::Submission(submission) => self.submit(submission).await,
            ToCoordinator::RerunJob(message) => self.rerun(message).await,
            ToCoordinator::Follow { job } => self.follow(job).await,
            ToCoordinator::HoldChain(message) => self.hold_chain(message).await,
            ToCoordinator::ReadLog(message) => self.log(message).await,
            message => {
                let answer = self.ask(message).await?;
                self.send(&answer).await
            }
        }
    }

    /// Forwards a message to the loop, and the loop's answer to the client.
    async fn ask(&self, message: ToCoordinator) -> Result<FromCoordinator, Parting> {
        self.question(|reply| LoopRequest::Message(message, reply))
            .await
    }

    /// Sends a request to the loop, which answers as long as it runs.
    async fn question<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> LoopRequest,
    ) -> Result<T, Parting> {
        let (reply, answer) = Reply::channel();
        self.desk
            .requests
            .send(request(reply))
            .map_err(|_| Parting::CoordinatorEnds)?;
        Ok(answer.await.map_err(|_| Parting::CoordinatorEnds)??)
    }

    async fn submit(&mut self, submission: Box<Submission>) -> Result<(), Parting> {
        let answer = match checks::check(&submission, &self.pins) {
            Err(refusal) => Err(refusal.into()),
            Ok(()) => self.ask(ToCoordinator::Submission(submission)).await,
        };
        // From here on the loop holds the job's blobs.
        self.pins.clear();
        self.send(&answer?).await
    }

    async fn send(&mut self, message: &FromCoordinator) -> Result<(), Parting> {
        let stalled = self.desk.limits.stalled;
        match self.sender.send(message).await {
            Err(TransportError::TimedOut { .. }) => Err(Parting::TakesNothing(stalled)),
            sent => Ok(sent?),
        }
    }
}
