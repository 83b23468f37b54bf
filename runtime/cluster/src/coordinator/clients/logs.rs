//! Forwards the log of an attempt from its worker to the client, or sends the coordinator's own copy.

use std::time::Duration;

use napreduce_engine::AttemptId;
use napreduce_protocol::requests::{LogLength, ReadLog};
use napreduce_protocol::{
    CHUNK_BYTES, FromCoordinator, FromDataServer, LogStream, PIECE_BYTES_MAX, Payload, ToDataServer,
};
use tokio::time::timeout;

use super::{Client, Parting, Refusal};
use crate::coordinator::requests::{LogHolder, LoopRequest};
use crate::transport::{self, Connection, HANDSHAKE_DEADLINE, Role, TransportError};

/// Time limit for a piece of a log from a worker.
const PIECE_DEADLINE: Duration = Duration::from_secs(10);
const PIECE_BYTES: u64 = if PIECE_BYTES_MAX < CHUNK_BYTES as u64 {
    PIECE_BYTES_MAX
} else {
    CHUNK_BYTES as u64
};

/// A log being read.
struct LogReader {
    connection: Connection,
    attempt: AttemptId,
    stream: LogStream,
}

impl Client {
    /// Sends the current log from `offset` on.
    pub(super) async fn log(&mut self, asked: ReadLog) -> Result<(), Parting> {
        let ReadLog {
            attempt,
            stream,
            offset,
        } = asked;
        let LogHolder {
            address,
            stderr,
            has_ended,
        } = self
            .question(|reply| LoopRequest::LogHolder { attempt, reply })
            .await?;
        let holder = address.as_deref().unwrap_or_default();
        let unreadable = |why: String| {
            Refusal::failed(format_args!(
                "cannot read the logs of {attempt} at {holder}: {why}"
            ))
        };
        let begun = match &address {
            Ok(holder) => self
                .begin_log(holder, attempt, stream, offset)
                .await
                .map_err(unreadable),
            Err(why) => Err(Refusal::failed(why)),
        };
        let (mut reader, length, mut piece) = match (begun, stderr) {
            (Ok(begun), _) => begun,
            (Err(_), Some(kept)) if stream == LogStream::Stderr => {
                return self.kept_log(&kept, offset).await;
            }
            (Err(refusal), _) => return Err(refusal.into()),
        };
        // Send only the length at the time of the request, even if the log grows.
        let mut left = length.saturating_sub(offset);
        self.send(&FromCoordinator::LogLength(LogLength {
            bytes: left,
            length,
            has_ended,
        }))
        .await?;
        while left > 0 {
            piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            if piece.is_empty() {
                return Err(unreadable("the log was truncated".to_owned()).into());
            }
            left -= piece.len() as u64;
            self.send(&FromCoordinator::Chunk(Payload(piece))).await?;
            if left == 0 {
                break;
            }
            (_, piece) = reader.read(length - left).await.map_err(unreadable)?;
        }
        Ok(())
    }

    /// Sends the coordinator's copy if the worker does not answer.
    async fn kept_log(&mut self, kept: &str, offset: u64) -> Result<(), Parting> {
        let at = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(kept.len());
        let length = kept.len() as u64;
        let left = &kept.as_bytes()[at..];
        let part = LogLength {
            bytes: left.len() as u64,
            length,
            has_ended: true,
        };
        self.send(&FromCoordinator::LogLength(part)).await?;
        for piece in left.chunks(CHUNK_BYTES) {
            self.send(&FromCoordinator::Chunk(Payload(piece.to_vec())))
                .await?;
        }
        Ok(())
    }

    /// Opens a log; returns its length and first piece.
    async fn begin_log(
        &self,
        holder: &str,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
    ) -> Result<(LogReader, u64, Vec<u8>), String> {
        let mut reader = self.open_log(holder, attempt, stream).await?;
        let (length, piece) = reader.read(offset).await?;
        Ok((reader, length, piece))
    }

    async fn open_log(
        &self,
        holder: &str,
        attempt: AttemptId,
        stream: LogStream,
    ) -> Result<LogReader, String> {
        let secret = &self.desk.secret;
        let connected = transport::connect(
            &self.desk.world,
            holder,
            Role::Data,
            secret,
            HANDSHAKE_DEADLINE,
        )
        .await;
        let mut reader = LogReader {
            connection: connected.map_err(|error| error.to_string())?,
            attempt,
            stream,
        };
        // Logs are small, so an encrypted connection suffices.
        match reader.ask(&ToDataServer::Open { encrypt: true }).await? {
            FromDataServer::Opened { encrypted: true } => Ok(reader),
            FromDataServer::Refused { reason } => Err(reason),
            FromDataServer::Busy { .. } => Err("its worker is busy; retry in a moment".to_owned()),
            other => Err(format!("protocol error: unexpected answer {other:?}")),
        }
    }
}

impl LogReader {
    /// Returns the current length and a piece of the log.
    async fn read(&mut self, offset: u64) -> Result<(u64, Vec<u8>), String> {
        let length = u32::try_from(PIECE_BYTES).unwrap_or(u32::MAX);
        let attempt = self.attempt;
        let stream = self.stream;
        match self
            .ask(&ToDataServer::ReadLog {
                attempt,
                stream,
                offset,
                length,
            })
            .await?
        {
            FromDataServer::Log {
                length,
                bytes,
                offset: at,
                ..
            } if at == offset => Ok((length, bytes.0)),
            FromDataServer::LogUnavailable { reason, .. } | FromDataServer::Refused { reason } => {
                Err(reason)
            }
            other => Err(format!("protocol error: unexpected answer {other:?}")),
        }
    }

    async fn ask(&mut self, request: &ToDataServer) -> Result<FromDataServer, String> {
        let answer = async {
            self.connection.send(request).await?;
            self.connection.receive().await
        };
        let awaited = "a piece of a log";
        let answered = timeout(PIECE_DEADLINE, answer).await;
        match answered.unwrap_or(Err(TransportError::TimedOut {
            awaited,
            deadline: PIECE_DEADLINE,
        })) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(TransportError::ClosedEarly { awaited }.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}
