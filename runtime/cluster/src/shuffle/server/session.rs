//! The server's side of a data connection: receives requests; sends segments and logs within the client's
//! credit. An error of one item is reported for that item, and the connection continues.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use napreduce_data::{PartitionExtent, SegmentError};
use napreduce_engine::{AttemptId, TaskKind};
use napreduce_protocol::{
    CREDIT_BYTES_MAX, FETCH_ITEMS_MAX, FetchItem, FromDataServer, LogStream, PIECE_BYTES_MAX,
    Payload, ToDataServer, is_gone, is_limit,
};
use thiserror::Error;

use super::{BUSY_MILLIS, Shared};
use crate::shuffle::data_connection::DataConnection;
use crate::transport::{Role, TransportError, blocking::BlockingConnection};

/// Maximum number of items queued on one connection.
const WAITING_MAX: usize = 4 * FETCH_ITEMS_MAX;
/// Maximum reads of a refused peer's data before the connection is closed.
const FAREWELL_READS_MAX: usize = 64;
const FAREWELL_SILENCE_MAX: Duration = Duration::from_secs(1);

/// An error that ended a session.
#[derive(Debug, Error)]
pub(super) enum SessionError {
    #[error("refused: {0}")]
    Refused(String),
    #[error("{} is shorter than its index; rerun the map task that wrote it", .0.display())]
    CutFile(PathBuf),
    #[error(transparent)]
    Transport(#[from] TransportError),
}

pub(super) struct Session<'a> {
    role: Role,
    connection: DataConnection,
    shared: &'a Shared,
    /// Requested items, in order.
    waiting: VecDeque<(u32, FetchItem)>,
    /// Bytes of blocks that may still be sent.
    credit: u64,
}

/// The reason why a segment is not sent.
enum Miss {
    /// This host has no descriptor for another file at the moment.
    Busy,
    Unavailable {
        gone: bool,
        reason: String,
    },
}

impl From<SegmentError> for Miss {
    /// Only missing and damaged segments are permanent errors.
    fn from(error: SegmentError) -> Miss {
        let reason = error.to_string();
        match error {
            SegmentError::Open { source, .. } if is_limit(&source) => Miss::Busy,
            SegmentError::Open { source, .. } => Miss::Unavailable {
                gone: is_gone(&source),
                reason,
            },
            _ => Miss::Unavailable { gone: true, reason },
        }
    }
}

impl Session<'_> {
    /// Serves until the peer disconnects, is silent for too long, or breaks the protocol. `socket` is the
    /// connection's.
    pub(super) fn serve(
        role: Role,
        mut connection: BlockingConnection,
        socket: &TcpStream,
        shared: &Shared,
    ) -> Result<(), SessionError> {
        let served = match negotiate(&mut connection, shared) {
            Ok(None) => Ok(()),
            Ok(Some(encrypted)) => {
                let connection = DataConnection::new(connection, encrypted)?;
                Session {
                    role,
                    connection,
                    shared,
                    waiting: VecDeque::new(),
                    credit: 0,
                }
                .run()
            }
            Err(error) => Err(error),
        };
        match served {
            Err(SessionError::Refused(reason)) => {
                drain(socket);
                Err(SessionError::Refused(reason))
            }
            // Silence is not an error: a reader may have been suspended, and reconnects.
            Err(SessionError::Transport(TransportError::TimedOut { .. })) => Ok(()),
            served => served,
        }
    }

    fn run(&mut self) -> Result<(), SessionError> {
        loop {
            let done = match self.waiting.pop_front() {
                Some((partition, item)) => self.answer(partition, item),
                None => self.handle_next(),
            };
            match done {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    if let SessionError::Refused(reason) = &error {
                        self.connection.send(&FromDataServer::Refused {
                            reason: reason.clone(),
                        })?;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Handles the next message; returns false at the end of the stream.
    fn handle_next(&mut self) -> Result<bool, SessionError> {
        match self.connection.receive()? {
            Some(message) => self.handle(message).map(|()| true),
            None => Ok(false),
        }
    }

    fn handle(&mut self, message: ToDataServer) -> Result<(), SessionError> {
        match message {
            ToDataServer::Fetch { partition, items } => {
                self.check_allowed(items.iter().all(|item| self.is_of_its_job(item.attempt)))?;
                let waiting = self.waiting.len() + items.len();
                if items.len() > FETCH_ITEMS_MAX || waiting > WAITING_MAX {
                    return Err(SessionError::Refused(format!(
                        "too many segments: {} requested (limit {FETCH_ITEMS_MAX}), {waiting} pending (limit \
                         {WAITING_MAX})",
                        items.len()
                    )));
                }
                self.waiting
                    .extend(items.into_iter().map(|item| (partition, item)));
            }
            ToDataServer::Grant { bytes } => {
                let credit = self
                    .credit
                    .checked_add(bytes)
                    .filter(|credit| *credit <= CREDIT_BYTES_MAX);
                self.credit = credit.ok_or_else(|| {
                    SessionError::Refused(format!(
                        "too much credit: {bytes} bytes in addition to {} (limit {CREDIT_BYTES_MAX})",
                        self.credit
                    ))
                })?;
            }
            ToDataServer::ReadLog {
                attempt,
                stream,
                offset,
                length,
            } => {
                self.check_allowed(self.role == Role::Data)?;
                self.read_log(attempt, stream, offset, length)?;
            }
            ToDataServer::Open { .. } => {
                return Err(SessionError::Refused(
                    "the connection is already open".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn is_of_its_job(&self, attempt: AttemptId) -> bool {
        match self.role {
            Role::Task(job) => attempt.task.job == job,
            Role::Worker | Role::Client | Role::Data => true,
        }
    }

    fn check_allowed(&self, allowed: bool) -> Result<(), SessionError> {
        match self.role {
            Role::Task(job) if !allowed => Err(SessionError::Refused(format!(
                "a task of {job} may only fetch map output of its own job"
            ))),
            _ => Ok(()),
        }
    }

    /// Sends a segment's partition or the reason for its absence; returns false to end the connection.
    fn answer(&mut self, partition: u32, item: FetchItem) -> Result<bool, SessionError> {
        let FetchItem {
            attempt,
            from_block,
        } = item;
        match self.find(partition, item) {
            Ok((path, file, extent)) => {
                let bytes = Payload(extent.encode());
                let segment = FromDataServer::Segment {
                    attempt,
                    partition,
                    from_block,
                    extent: bytes,
                };
                self.connection.send(&segment)?;
                self.send_blocks(&path, &file, &extent)
            }
            Err(Miss::Busy) => {
                self.connection.send(&FromDataServer::Busy {
                    millis: BUSY_MILLIS,
                })?;
                Ok(false)
            }
            Err(Miss::Unavailable { gone, reason }) => {
                self.connection.send(&FromDataServer::Unavailable {
                    attempt,
                    partition,
                    gone,
                    reason,
                })?;
                Ok(true)
            }
        }
    }

    fn find(
        &self,
        partition: u32,
        item: FetchItem,
    ) -> Result<(PathBuf, File, PartitionExtent), Miss> {
        let FetchItem {
            attempt,
            from_block,
        } = item;
        let known = (attempt.task.kind == TaskKind::Map)
            .then(|| self.shared.files.segment(attempt))
            .flatten();
        let unknown = || Miss::Unavailable {
            gone: true,
            reason: format!("unknown map output {attempt}"),
        };
        let path = known.ok_or_else(unknown)?;
        let file = File::open(&path).map_err(|source| SegmentError::Open {
            path: path.clone(),
            source,
        })?;
        let index = self.shared.indexes.of(&file, &path)?;
        let extent = index.extent(partition, from_block)?;
        Ok((path, file, extent))
    }

    fn send_blocks(
        &mut self,
        path: &Path,
        file: &File,
        extent: &PartitionExtent,
    ) -> Result<bool, SessionError> {
        let range = extent.range();
        let mut at = range.start;
        while at < range.end {
            if self.credit == 0 {
                if !self.handle_next()? {
                    return Ok(false);
                }
                continue;
            }
            let length = self.credit.min(range.end - at).min(PIECE_BYTES_MAX);
            if !self.connection.send_piece(file, at, length as u32)? {
                return Err(SessionError::CutFile(path.to_owned()));
            }
            at += length;
            self.credit -= length;
        }
        Ok(true)
    }

    fn read_log(
        &mut self,
        attempt: AttemptId,
        stream: LogStream,
        offset: u64,
        length: u32,
    ) -> Result<(), SessionError> {
        let most = u64::from(length).min(PIECE_BYTES_MAX);
        Ok(self.connection.send(
            &match self.shared.files.read_log(attempt, stream, offset, most) {
                Ok((length, bytes)) => FromDataServer::Log {
                    attempt,
                    stream,
                    offset,
                    length,
                    bytes: Payload(bytes),
                },
                Err(error) => FromDataServer::LogUnavailable {
                    attempt,
                    stream,
                    reason: error.to_string(),
                },
            },
        )?)
    }
}

/// Negotiates encryption; returns `None` if the peer has disconnected.
fn negotiate(
    connection: &mut BlockingConnection,
    shared: &Shared,
) -> Result<Option<bool>, SessionError> {
    match connection.receive()? {
        None => Ok(None),
        Some(ToDataServer::Open { encrypt }) => {
            let encrypted = encrypt || shared.settings.encrypt;
            connection.send(&FromDataServer::Opened { encrypted })?;
            Ok(Some(encrypted))
        }
        Some(_) => {
            let reason = "the first message must be Open".to_owned();
            connection.send(&FromDataServer::Refused {
                reason: reason.clone(),
            })?;
            Err(SessionError::Refused(reason))
        }
    }
}

/// Waits for a refused peer to disconnect: closing with unread bytes would discard the refusal. Errors are
/// ignored, since the connection ends anyway.
fn drain(mut socket: &TcpStream) {
    let ready = socket
        .shutdown(Shutdown::Write)
        .and_then(|()| socket.set_read_timeout(Some(FAREWELL_SILENCE_MAX)));
    let mut unread = [0; 4096];
    for _ in 0..FAREWELL_READS_MAX {
        if ready.is_err() || !matches!(socket.read(&mut unread), Ok(1..)) {
            break;
        }
    }
}
