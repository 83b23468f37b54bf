//! The client side of one connection to a data server: encryption, credit, and the timeout for a silent peer.
//!
//! The server is not trusted: lengths are checked against the credit and the index before data is read, and
//! allocations grow with received data.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use napreduce_data::{AssemblyError, SegmentAssembly};
use napreduce_protocol::{Counter, FetchItem, FromDataServer, TaskError, ToDataServer};

use super::pause::SocketGuard;
use super::{Shared, write_failed};
use crate::shuffle::data_connection::DataConnection;
use crate::transport::{Role, TransportError, blocking};

/// Interval at which a waiting connection checks whether it is still needed.
const TICK: Duration = Duration::from_millis(200);

const BUSY_MIN: Duration = Duration::from_millis(20);
const BUSY_MAX: Duration = Duration::from_secs(10);

/// The reason why a fetch was not completed.
#[derive(Debug)]
pub(super) enum FetchError {
    /// Cancelled or paused.
    Stopped,
    /// The server is busy and asks to retry after this time; not a failure.
    Busy(Duration),
    /// The connection is broken; another one may work.
    Broken(String),
    /// The received data is damaged; the connection is closed.
    Damaged(String),
    /// The segment is not the requested one; retries do not help.
    Other(String),
    /// This attempt cannot continue.
    Fatal(TaskError),
}

impl From<TransportError> for FetchError {
    fn from(error: TransportError) -> FetchError {
        FetchError::Broken(error.to_string())
    }
}

impl From<AssemblyError> for FetchError {
    fn from(error: AssemblyError) -> FetchError {
        match error {
            AssemblyError::Checksum { .. } => FetchError::Damaged(error.to_string()),
            AssemblyError::Surplus { .. } | AssemblyError::Incomplete { .. } => {
                FetchError::Broken(error.to_string())
            }
            AssemblyError::Write(error) => FetchError::Fatal(write_failed(&error)),
        }
    }
}

/// A connection between two batches.
pub(super) struct IdleConnection {
    pub(super) address: String,
    pub(super) since: Instant,
    connection: DataConnection,
    /// Socket of the same connection, to wake a thread that reads or writes.
    socket: TcpStream,
    /// Bytes that the server may still send.
    granted: u64,
}

/// An open connection to a data server.
pub(super) struct FetchConnection<'a> {
    shared: &'a Shared,
    address: String,
    connection: DataConnection,
    socket: TcpStream,
    /// Bytes that the server may still send.
    granted: u64,
    /// Time without expected data. Counted in ticks, so that time while this process was stopped does not
    /// count.
    silent: Duration,
    _attached: SocketGuard<'a>,
}

impl<'a> FetchConnection<'a> {
    /// Connects; adds the time to `spent`.
    pub(super) fn open(
        shared: &'a Shared,
        address: &str,
        spent: &mut Duration,
    ) -> Result<FetchConnection<'a>, FetchError> {
        let network = &shared.settings.network;
        let deadline = network.limits.silence_max;
        let began = Instant::now();
        let role = Role::Task(shared.settings.context.attempt().task.job);
        let connected = blocking::connect(address, role, &network.token, deadline, TICK);
        *spent += began.elapsed().min(deadline);
        let mut connection = connected?;
        let broken = |error: std::io::Error| FetchError::Broken(error.to_string());
        let socket = connection.socket.try_clone().map_err(broken)?;
        let attached = shared.pause.attach(&socket).map_err(broken)?;
        connection.send(&ToDataServer::Open {
            encrypt: network.encrypt,
        })?;
        let mut silent = Duration::ZERO;
        let answer = loop {
            match connection.receive() {
                Err(TransportError::TimedOut { .. }) => wait(shared, &mut silent)?,
                received => break received?,
            }
        };
        match answer {
            Some(FromDataServer::Opened { encrypted }) if encrypted || !network.encrypt => {
                let connection = DataConnection::new(connection, encrypted)?;
                let address = address.to_owned();
                let granted = 0;
                let silent = Duration::ZERO;
                Ok(FetchConnection {
                    shared,
                    address,
                    connection,
                    socket,
                    granted,
                    silent,
                    _attached: attached,
                })
            }
            Some(FromDataServer::Opened { .. }) => Err(FetchError::Broken(
                "the server does not encrypt the connection".to_owned(),
            )),
            Some(FromDataServer::Busy { millis }) => Err(busy(millis)),
            Some(FromDataServer::Refused { reason }) => {
                Err(FetchError::Broken(format!("refused: {reason}")))
            }
            Some(_) => Err(FetchError::Broken(
                "protocol error: the server did not answer Open".to_owned(),
            )),
            None => Err(TransportError::CutShort.into()),
        }
    }

    /// Reuses a connection left open by an earlier batch.
    pub(super) fn reuse(
        shared: &'a Shared,
        idle: IdleConnection,
    ) -> Result<FetchConnection<'a>, FetchError> {
        let IdleConnection {
            address,
            connection,
            socket,
            granted,
            ..
        } = idle;
        let attached = shared
            .pause
            .attach(&socket)
            .map_err(|error| FetchError::Broken(error.to_string()))?;
        let silent = Duration::ZERO;
        Ok(FetchConnection {
            shared,
            address,
            connection,
            socket,
            granted,
            silent,
            _attached: attached,
        })
    }

    pub(super) fn into_idle(self) -> IdleConnection {
        let FetchConnection {
            address,
            connection,
            socket,
            granted,
            ..
        } = self;
        IdleConnection {
            address,
            since: Instant::now(),
            connection,
            socket,
            granted,
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the time without expected data.
    pub(super) fn silent(&self) -> Duration {
        self.silent
    }

    pub(super) fn request(&mut self, items: Vec<FetchItem>) -> Result<(), FetchError> {
        let partition = self.shared.settings.partition;
        self.connection
            .send(&ToDataServer::Fetch { partition, items })?;
        self.top_up()
    }

    /// Receives the next message.
    pub(super) fn next(&mut self) -> Result<FromDataServer, FetchError> {
        loop {
            match self.connection.receive() {
                Ok(Some(FromDataServer::Busy { millis })) => return Err(busy(millis)),
                Ok(Some(FromDataServer::Refused { reason })) => {
                    return Err(FetchError::Broken(format!("refused: {reason}")));
                }
                Ok(Some(message)) => {
                    self.silent = Duration::ZERO;
                    return Ok(message);
                }
                Ok(None) => {
                    return Err(FetchError::Broken(
                        "the server closed the connection".to_owned(),
                    ));
                }
                Err(TransportError::TimedOut { .. }) => wait(self.shared, &mut self.silent)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives blocks until the assembly is complete.
    pub(super) fn receive_blocks(
        &mut self,
        assembly: &mut SegmentAssembly,
    ) -> Result<(), FetchError> {
        while assembly.missing() > 0 {
            match self.next()? {
                FromDataServer::Blocks { length } => {
                    self.check_length(u64::from(length), assembly)?;
                    self.receive_raw(length as usize, assembly)?;
                }
                FromDataServer::Chunk(bytes) => {
                    self.check_length(bytes.0.len() as u64, assembly)?;
                    self.accept_chunk(&bytes.0, assembly)?;
                }
                other => {
                    return Err(FetchError::Broken(format!(
                        "protocol error: expected blocks, got {other:?}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_length(&self, length: u64, assembly: &SegmentAssembly) -> Result<(), FetchError> {
        if length == 0 || length > self.granted || length > assembly.missing() {
            return Err(FetchError::Broken(format!(
                "the server announced {length} bytes, but only {} are missing and {} granted",
                assembly.missing(),
                self.granted
            )));
        }
        Ok(())
    }

    fn receive_raw(
        &mut self,
        length: usize,
        assembly: &mut SegmentAssembly,
    ) -> Result<(), FetchError> {
        let mut left = length;
        while left > 0 {
            let DataConnection::Plain(connection) = &mut self.connection else {
                return Err(FetchError::Broken(
                    "unencrypted blocks on an encrypted connection".to_owned(),
                ));
            };
            let mut accepted = Ok(());
            match connection.receive_raw(left, |bytes| accepted = assembly.accept(bytes)) {
                Ok(count) => {
                    left -= count;
                    self.consumed(count)?;
                    accepted?;
                }
                Err(TransportError::TimedOut { .. }) => wait(self.shared, &mut self.silent)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn accept_chunk(
        &mut self,
        bytes: &[u8],
        assembly: &mut SegmentAssembly,
    ) -> Result<(), FetchError> {
        assembly.accept(bytes)?;
        self.consumed(bytes.len())
    }

    fn consumed(&mut self, count: usize) -> Result<(), FetchError> {
        let bytes = count as u64;
        self.silent = Duration::ZERO;
        self.granted -= bytes;
        let context = &self.shared.settings.context;
        context.progress().advance(bytes);
        context.counters().add(Counter::ShuffleNetworkBytes, bytes);
        if self.shared.must_stop() {
            return Err(FetchError::Stopped);
        }
        self.top_up()
    }

    /// Grants credit in halves of the window, not with every read.
    fn top_up(&mut self) -> Result<(), FetchError> {
        if self.granted <= self.shared.window / 2 {
            let bytes = self.shared.window - self.granted;
            self.connection.send(&ToDataServer::Grant { bytes })?;
            self.granted += bytes;
        }
        Ok(())
    }
}

/// Returns the backoff requested by a busy server, within bounds.
fn busy(millis: u32) -> FetchError {
    FetchError::Busy(Duration::from_millis(u64::from(millis)).clamp(BUSY_MIN, BUSY_MAX))
}

/// Counts one more tick without data from the server.
fn wait(shared: &Shared, silent: &mut Duration) -> Result<(), FetchError> {
    if shared.must_stop() {
        return Err(FetchError::Stopped);
    }
    shared.settings.context.progress().still_waiting();
    *silent += TICK;
    if *silent >= shared.settings.network.limits.silence_max {
        return Err(FetchError::Broken(format!(
            "the server sent nothing for {silent:?}"
        )));
    }
    Ok(())
}
