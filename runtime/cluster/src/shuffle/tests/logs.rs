//! Reads logs of attempts, as a client of the data server.

use std::time::Duration;

use napreduce_engine::AttemptId;
use napreduce_local::world::World;
use napreduce_protocol::{FromDataServer, LogStream, Payload, Secret, ToDataServer};
use thiserror::Error;
use tokio::time::timeout;

use crate::transport::{Role, TransportError, connect};

/// Part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPiece {
    pub(crate) bytes: Vec<u8>,
    /// The length of the log when it was read.
    pub(crate) length: u64,
}

/// An error when reading a log.
#[derive(Debug, Error)]
pub(crate) enum LogError {
    #[error("{address}: {reason}")]
    Unavailable { address: String, reason: String },
    #[error("timed out waiting for {address} ({deadline:?})")]
    Silent { address: String, deadline: Duration },
    #[error("{address}: unexpected answer")]
    Unexpected { address: String },
    #[error("{address}: {source}")]
    Transport {
        address: String,
        source: TransportError,
    },
}

/// Requests at most `length` bytes from `offset` on; the server sends at most 1 MiB. Always encrypted.
pub(crate) async fn read_log(
    address: &str,
    secret: &Secret,
    (attempt, stream): (AttemptId, LogStream),
    offset: u64,
    length: u32,
    deadline: Duration,
) -> Result<LogPiece, LogError> {
    let address = address.to_owned();
    let asking = async {
        let mut connection =
            connect(&World::real(), &address, Role::Data, secret, deadline).await?;
        connection
            .send(&ToDataServer::Open { encrypt: true })
            .await?;
        match connection.receive().await? {
            Some(FromDataServer::Opened { encrypted: true }) => {}
            other => return Ok(other),
        }
        connection
            .send(&ToDataServer::ReadLog {
                attempt,
                stream,
                offset,
                length,
            })
            .await?;
        connection.receive().await
    };
    match timeout(deadline, asking).await {
        Err(_) => Err(LogError::Silent { address, deadline }),
        Ok(Err(source)) => Err(LogError::Transport { address, source }),
        Ok(Ok(Some(FromDataServer::Log {
            attempt: about,
            stream: of,
            offset: at,
            length: whole,
            bytes,
        }))) if (about, of, at) == (attempt, stream, offset)
            && bytes.0.len() as u64 <= u64::from(length) =>
        {
            let Payload(bytes) = bytes;
            Ok(LogPiece {
                bytes,
                length: whole,
            })
        }
        Ok(Ok(Some(
            FromDataServer::Refused { reason } | FromDataServer::LogUnavailable { reason, .. },
        ))) => Err(LogError::Unavailable { address, reason }),
        Ok(Ok(_)) => Err(LogError::Unexpected { address }),
    }
}
