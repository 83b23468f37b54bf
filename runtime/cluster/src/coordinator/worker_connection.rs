//! One connection of a worker, from its hello until either side stops.

use std::net::SocketAddr;
use std::time::Duration;

use napreduce_local::coordinator::LastHeard;
use napreduce_protocol::{FromWorker, ToWorker};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::ClusterInput;
use crate::transport::{Connection, HANDSHAKE_DEADLINE, MessageReceiver, TransportError};

/// Maximum messages per write.
const BATCH: usize = 64;

/// Serves a connection until it ends. `patience` is the time limit for a write to the worker.
pub(super) async fn serve_worker(
    connection: Connection,
    peer: SocketAddr,
    number: u64,
    inputs: UnboundedSender<ClusterInput>,
    patience: Duration,
) {
    let (mut sender, mut receiver) = connection.split();
    let hello = match timeout(HANDSHAKE_DEADLINE, receiver.receive::<FromWorker>()).await {
        Ok(Ok(Some(FromWorker::Hello(hello)))) => hello,
        Ok(Ok(Some(_))) => return refuse(peer, "protocol error: the first message must be Hello"),
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return refuse(peer, &error.to_string()),
        Err(_) => return refuse(peer, "timed out waiting for Hello of a worker"),
    };
    let (messages, mut outgoing) = unbounded_channel::<ToWorker>();
    let heard = LastHeard::now();
    let connected = ClusterInput::Connected {
        connection: number,
        hello,
        messages,
        heard: heard.clone(),
    };
    if inputs.send(connected).is_err() {
        return;
    }
    let listening = listen(&mut receiver, number, &heard, &inputs);
    let sending = async {
        let mut batch = Vec::new();
        while outgoing.recv_many(&mut batch, BATCH).await > 0 {
            match timeout(patience, sender.send_all(&batch)).await {
                Ok(Ok(())) => batch.clear(),
                Ok(Err(error)) => return Err(error.to_string()),
                Err(_) => return Err("the worker accepted no data in time".to_owned()),
            }
        }
        // The loop has dropped this connection.
        Ok(())
    };
    let ended = tokio::select! {
        ended = listening => ended.map_err(|error| error.to_string()),
        ended = sending => ended,
    };
    if let Err(why) = ended {
        tracing::info!(target: "coordinator", "the connection from {peer} ended: {why}");
    }
    // Fails only after the coordinator's end.
    let _ = inputs.send(ClusterInput::Disconnected { connection: number });
}

async fn listen(
    receiver: &mut MessageReceiver,
    number: u64,
    heard: &LastHeard,
    inputs: &UnboundedSender<ClusterInput>,
) -> Result<(), TransportError> {
    while let Some(message) = receiver.receive::<FromWorker>().await? {
        heard.stamp();
        let waiting = heard.room().await;
        if inputs
            .send(ClusterInput::Message {
                connection: number,
                message,
                waiting,
            })
            .is_err()
        {
            break;
        }
    }
    Ok(())
}

fn refuse(peer: SocketAddr, why: &str) {
    tracing::info!(target: "coordinator", "refused {peer}: {why}");
}
