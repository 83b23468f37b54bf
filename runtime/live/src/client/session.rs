//! A connection to a coordinator that is made again when it breaks.
//!
//! Owns patience: how often and how long to try, and which errors no patience helps against. Does not own what is asked.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{ClientError, ClusterPlace};
use crate::cluster_directory::ClusterDirectoryError;
use crate::protocol::{FromCoordinator, ToCoordinator};
use crate::transport::{self, Connection, HANDSHAKE_DEADLINE, Role, TransportError};

const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// A connection that has lasted so long was a good one.
const LASTING: Duration = Duration::from_secs(5);
/// No answer takes so long. The longest waits for a part of another client's upload.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

/// How long to go on trying.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Before the coordinator has answered for the first time: long enough for one that was started at the same time.
    pub first: Duration,
    /// After that: long enough for one that is restarted.
    pub later: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { first: Duration::from_secs(3), later: Duration::from_secs(60) }
    }
}

/// Why one try has failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another try may succeed.
    Passing(String),
    Final(ClientError),
}

impl Trouble {
    pub(super) fn new(error: TransportError) -> Trouble {
        Trouble::Passing(error.to_string())
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Trouble {
        Trouble::Final(error)
    }
}

/// The connection, and what is known of the cluster.
#[derive(Debug)]
pub(super) struct Session {
    place: ClusterPlace,
    patience: Patience,
    connection: Option<Connection>,
    answered_before: bool,
}

impl Session {
    pub(super) fn new(place: ClusterPlace, patience: Patience) -> Session {
        Session { place, patience, connection: None, answered_before: false }
    }

    /// Gives up a connection whose conversation was broken off.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Connects, if that has not happened yet.
    pub(super) async fn connect(&mut self) -> Result<(), ClientError> {
        self.persist(async |_| Ok(())).await
    }

    /// Asks, again if the connection breaks, and gives the answer unless it is a refusal.
    pub(super) async fn ask(&mut self, request: &ToCoordinator) -> Result<FromCoordinator, ClientError> {
        self.persist(async |connection| ask(connection, request).await).await
    }

    /// Asks once; for what must not happen twice.
    pub(super) async fn ask_once(&mut self, request: &ToCoordinator) -> Result<FromCoordinator, ClientError> {
        self.connect().await?;
        let unanswered = ClientError::Unanswered { place: self.place.to_string() };
        let Some(mut connection) = self.connection.take() else { return Err(unanswered) };
        match ask(&mut connection, request).await {
            Ok(answer) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Err(Trouble::Final(error)) => Err(error),
            Err(Trouble::Passing(_)) => Err(unanswered),
        }
    }

    /// Does something with the connection, again from its beginning on a new one whenever it breaks, until the patience
    /// is at its end. Patience begins anew with a connection that has lasted a while: one that breaks at once each time
    /// is no better than none.
    pub(super) async fn persist<T>(
        &mut self,
        mut act: impl AsyncFnMut(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, ClientError> {
        let mut outage = Outage::default();
        loop {
            let tried = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => self.try_to_connect().await,
            };
            let trouble = match tried {
                Ok(mut connection) => {
                    self.answered_before = true;
                    let began = Instant::now();
                    let acted = act(&mut connection).await;
                    if began.elapsed() >= LASTING {
                        outage = Outage::default();
                    }
                    match acted {
                        Ok(done) => {
                            self.connection = Some(connection);
                            return Ok(done);
                        }
                        Err(Trouble::Final(error)) => return Err(error),
                        Err(Trouble::Passing(last)) => last,
                    }
                }
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Passing(last)) => last,
            };
            self.pause(&mut outage, trouble).await?;
        }
    }

    /// Waits before the next try, or gives up.
    async fn pause(&self, outage: &mut Outage, last: String) -> Result<(), ClientError> {
        let patience = if self.answered_before { self.patience.later } else { self.patience.first };
        let began = *outage.began.get_or_insert_with(Instant::now);
        let waited = began.elapsed();
        if waited >= patience {
            let (place, advice) = (self.place.to_string(), self.place.advice());
            return Err(ClientError::Unreachable { place, waited, last, advice });
        }
        sleep(outage.backoff.min(patience - waited)).await;
        outage.backoff = (outage.backoff * 2).min(BACKOFF_MAX);
        Ok(())
    }

    async fn try_to_connect(&self) -> Result<Connection, Trouble> {
        let (address, secret) = self.place.look_up().map_err(|error| match error {
            // One that is starting says so in a moment.
            ClusterDirectoryError::NoCoordinator { .. }
            | ClusterDirectoryError::Missing { .. }
            | ClusterDirectoryError::DamagedRecord { .. } => Trouble::Passing(error.to_string()),
            other => Trouble::Final(other.into()),
        })?;
        let connected = transport::connect(&address, Role::Client, &secret, HANDSHAKE_DEADLINE).await;
        connected.map_err(|error| match &error {
            TransportError::OtherVersion { .. }
            | TransportError::NotNapreduce { .. }
            | TransportError::UnknownRole { .. }
            | TransportError::OtherSecret => Trouble::Final(ClientError::incompatible(&self.place, &error)),
            // A coordinator that is killed in this moment looks the same.
            TransportError::SecretRefused if !self.answered_before => {
                Trouble::Final(ClientError::incompatible(&self.place, &error))
            }
            _ => Trouble::new(error),
        })
    }
}

/// A time without a coordinator.
#[derive(Debug)]
struct Outage {
    began: Option<Instant>,
    backoff: Duration,
}

impl Default for Outage {
    fn default() -> Outage {
        Outage { began: None, backoff: BACKOFF_FIRST }
    }
}

/// Sends a request and receives its answer; a refusal is a final trouble.
pub(super) async fn ask(
    connection: &mut Connection,
    request: &ToCoordinator,
) -> Result<FromCoordinator, Trouble> {
    connection.send(request).await.map_err(Trouble::new)?;
    receive(connection, ANSWER_DEADLINE).await
}

/// Receives a message within limits; a refusal is a final trouble.
pub(super) async fn receive(
    connection: &mut Connection,
    deadline: Duration,
) -> Result<FromCoordinator, Trouble> {
    let awaited = "an answer of the coordinator";
    let received = timeout(deadline, connection.receive()).await;
    match received.unwrap_or(Err(TransportError::Silent { awaited, deadline })) {
        Ok(Some(FromCoordinator::Refused { status, reason })) => {
            Err(Trouble::Final(ClientError::Refused { status, reason }))
        }
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(Trouble::new(TransportError::ClosedEarly { awaited })),
        Err(error) => Err(Trouble::new(error)),
    }
}
