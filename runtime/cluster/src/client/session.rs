//! A connection to a coordinator that reconnects: how often and how long to retry, and which errors are
//! final.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_local::world::World;
use napreduce_protocol::printing::print_error;
use napreduce_protocol::{Answer, Backoff, FromCoordinator, Request, ToCoordinator};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::{ClientError, ClusterPlace};
use crate::cluster_directory::ClusterDirectoryError;
use crate::transport::{
    self, Connection, HANDSHAKE_DEADLINE, Role, SILENCE_MAX, TransferClock, TransportError,
};

const MINUTE: Duration = Duration::from_secs(60);
/// Pauses between tries to reach the coordinator.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
/// A connection that lasted this long resets the retry limit.
const LASTING: Duration = Duration::from_secs(5);
/// Upper bound on any answer; the longest waits for another client's upload.
pub(super) const ANSWER_DEADLINE: Duration = MINUTE;

/// Duration of a wait before it is first reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum consecutive refusals of the secret. A coordinator killed during a handshake looks like a refusal.
const REFUSALS_MAX: u32 = 3;

/// Retry limits. The defaults are a minute, or a second for a cluster that is not running.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Before the coordinator's first answer: long enough for a restart.
    pub first: Duration,
    /// After the first answer.
    pub later: Duration,
    /// While the cluster directory records no coordinator and none is starting. Long enough for one started
    /// at the same time; limited by `first`.
    pub absent: Duration,
    /// Limit on the answer of a listening coordinator to a repeatable request; for others it is a minute.
    pub answer: Duration,
    /// Limit on the time in which no byte of a message is transferred. Then the client connects again.
    pub silence: Duration,
    /// Whether to report waiting on standard error.
    pub tell: bool,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            first: MINUTE,
            later: MINUTE,
            absent: Duration::from_secs(1),
            answer: ANSWER_DEADLINE,
            silence: SILENCE_MAX,
            tell: true,
        }
    }
}

/// The error of one try.
#[derive(Debug, Error)]
pub(super) enum TryError {
    /// Another try may succeed.
    #[error("{0}")]
    Transient(String),
    /// Another try may succeed, but the cluster is probably not running.
    #[error(transparent)]
    Absent(ClusterDirectoryError),
    #[error(transparent)]
    Final(#[from] ClientError),
}

impl TryError {
    pub(super) fn new(error: TransportError) -> TryError {
        TryError::Transient(error.to_string())
    }
}

/// A connection to a cluster's coordinator.
#[derive(Debug)]
pub(super) struct Session {
    world: World,
    place: ClusterPlace,
    patience: Patience,
    connection: Option<Connection>,
    answered_before: bool,
    /// Number of consecutive refusals of the secret.
    refusals: u32,
    /// Set when an exchange that was interrupted has made progress, which resets the retry limit.
    advanced: Arc<AtomicBool>,
}

impl Session {
    pub(super) fn new(world: World, place: ClusterPlace, patience: Patience) -> Session {
        Session {
            world,
            place,
            patience,
            connection: None,
            answered_before: false,
            refusals: 0,
            advanced: Arc::default(),
        }
    }

    /// Returns its surroundings.
    pub(super) fn world(&self) -> World {
        self.world.clone()
    }

    /// Whether to report waiting on standard error.
    pub(super) fn tells(&self) -> bool {
        self.patience.tell
    }

    /// Returns the flag that an exchange sets when it has made progress.
    pub(super) fn advanced(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.advanced)
    }

    /// Drops a connection whose conversation was interrupted.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Connects unless connected.
    pub(super) async fn connect(&mut self) -> Result<(), ClientError> {
        self.retry(async |_| Ok(())).await
    }

    /// Sends a request; repeats it on a new connection if it is repeatable.
    pub(super) async fn ask<R: Request>(&mut self, request: R) -> Result<R::Answer, ClientError> {
        let message = request.into();
        if R::REPEATABLE {
            let patience = self.patience.answer;
            return self
                .retry(async |connection| {
                    exchange_within::<R>(connection, &message, patience).await
                })
                .await;
        }
        self.connect().await?;
        let unanswered = ClientError::Unanswered {
            place: self.place.to_string(),
        };
        let Some(mut connection) = self.connection.take() else {
            return Err(unanswered);
        };
        let transfers = connection.transfers();
        let exchange = exchange_within::<R>(&mut connection, &message, ANSWER_DEADLINE);
        match self.watch(&transfers, exchange).await {
            Ok(answer) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Err(TryError::Final(error)) => Err(error),
            Err(TryError::Transient(_) | TryError::Absent(_)) => Err(unanswered),
        }
    }

    /// Runs an exchange, restarting it on a new connection whenever that breaks, until the retry limit. The
    /// limit is reset only by a connection that lasted: one that always breaks at once counts as an outage.
    pub(super) async fn retry<T>(
        &mut self,
        mut act: impl AsyncFnMut(&mut Connection) -> Result<T, TryError>,
    ) -> Result<T, ClientError> {
        let mut outage = Outage::default();
        loop {
            let tried = match self.connection.take() {
                Some(connection) => Ok(connection),
                None => self.try_to_connect().await,
            };
            let error = match tried {
                Ok(mut connection) => {
                    self.answered_before = true;
                    let began = Instant::now();
                    let transfers = connection.transfers();
                    let acted = self.watch(&transfers, act(&mut connection)).await;
                    if self.advanced.swap(false, Ordering::Relaxed) || began.elapsed() >= LASTING {
                        outage = Outage::default();
                    }
                    match acted {
                        Ok(done) => {
                            self.connection = Some(connection);
                            return Ok(done);
                        }
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.pause(&mut outage, error).await?;
        }
    }

    /// Runs an exchange. Reports when a message has stopped on its way.
    async fn watch<T>(
        &self,
        transfers: &[TransferClock; 2],
        exchange: impl Future<Output = T>,
    ) -> T {
        let mut exchange = pin!(exchange);
        let mut report_after = REPORT_AFTER;
        loop {
            tokio::select! {
                biased;
                done = &mut exchange => return done,
                () = sleep(REPORT_AFTER) => {}
            }
            let silence = transfers
                .iter()
                .filter_map(TransferClock::silence)
                .max()
                .unwrap_or_default();
            if silence < REPORT_AFTER {
                report_after = REPORT_AFTER;
            } else if self.patience.tell && silence >= report_after {
                report_after = silence + REPORT_INTERVAL;
                print_error(format_args!(
                    "waiting for the coordinator of {}: no data was transferred for {silence:.0?}; \
                     reconnecting after {:.0?}",
                    self.place, self.patience.silence
                ));
            }
        }
    }

    /// Waits before the next try; fails if the limit is reached or the error is final.
    async fn pause(&self, outage: &mut Outage, error: TryError) -> Result<(), ClientError> {
        if let TryError::Final(error) = error {
            return Err(error);
        }
        let Patience {
            first,
            later,
            absent,
            tell,
            ..
        } = self.patience;
        let patience = match &error {
            TryError::Absent(_) if !self.answered_before => absent.min(first),
            _ if self.answered_before => later,
            _ => first,
        };
        let began = *outage.began.get_or_insert_with(Instant::now);
        let waited = began.elapsed();
        if waited >= patience {
            return Err(self.give_up(error, waited));
        }
        let left = patience - waited;
        if tell && waited >= outage.report_after {
            outage.report_after = waited + REPORT_INTERVAL;
            print_error(format_args!(
                "waiting for the coordinator of {}: {error}; retrying for {left:.0?}",
                self.place
            ));
        }
        sleep(outage.backoff.next_pause().min(left)).await;
        Ok(())
    }

    fn give_up(&self, error: TryError, waited: Duration) -> ClientError {
        match error {
            TryError::Final(error) => error,
            TryError::Absent(error) => error.into(),
            TryError::Transient(last) => {
                let place = self.place.to_string();
                let advice = self.place.advice();
                ClientError::Unreachable {
                    place,
                    waited,
                    last,
                    advice,
                }
            }
        }
    }

    async fn try_to_connect(&mut self) -> Result<Connection, TryError> {
        let (address, secret) = self.place.look_up().map_err(|error| match error {
            // A starting coordinator publishes its address soon.
            error if error.is_absence() && self.place.is_starting(&self.world.process) => {
                TryError::Transient(error.to_string())
            }
            error if error.is_absence() => TryError::Absent(error),
            ClusterDirectoryError::DamagedRecord { .. } => TryError::Transient(error.to_string()),
            other => TryError::Final(other.into()),
        })?;
        // A stopped coordinator accepts connections but does not answer.
        let limit = HANDSHAKE_DEADLINE.min(self.patience.first.max(self.patience.later));
        let connected =
            transport::connect(&self.world, &address, Role::Client, &secret, limit).await;
        let refused = matches!(connected, Err(TransportError::SecretRefused));
        self.refusals = if refused { self.refusals + 1 } else { 0 };
        let connected = connected.map(|mut connection| {
            connection.limit_silence(self.patience.silence);
            connection
        });
        connected.map_err(|error| match &error {
            TransportError::OtherVersion { .. }
            | TransportError::NotNapreduce { .. }
            | TransportError::UnknownRole { .. }
            | TransportError::OtherSecret => {
                TryError::Final(ClientError::incompatible(&self.place, &error))
            }
            TransportError::SecretRefused
                if !self.answered_before && self.refusals >= REFUSALS_MAX =>
            {
                TryError::Final(ClientError::incompatible(&self.place, &error))
            }
            _ => TryError::new(error),
        })
    }
}

/// A time without a coordinator.
#[derive(Debug)]
struct Outage {
    began: Option<Instant>,
    backoff: Backoff,
    /// The duration after which the outage is next reported.
    report_after: Duration,
}

impl Default for Outage {
    fn default() -> Outage {
        Outage {
            began: None,
            backoff: BACKOFF,
            report_after: REPORT_AFTER,
        }
    }
}

/// Sends a request and receives its answer; a refusal is final.
pub(super) async fn exchange<R: Request>(
    connection: &mut Connection,
    request: R,
) -> Result<R::Answer, TryError> {
    exchange_within::<R>(connection, &request.into(), ANSWER_DEADLINE).await
}

pub(super) async fn exchange_within<R: Request>(
    connection: &mut Connection,
    message: &ToCoordinator,
    deadline: Duration,
) -> Result<R::Answer, TryError> {
    connection.send(message).await.map_err(TryError::new)?;
    let answer = receive(connection, deadline).await?;
    Ok(R::Answer::from_message(answer).map_err(|other| ClientError::unexpected(&other))?)
}

/// Receives a message within limits; a refusal is final.
pub(super) async fn receive(
    connection: &mut Connection,
    deadline: Duration,
) -> Result<FromCoordinator, TryError> {
    match connection
        .receive_within(deadline, "an answer of the coordinator")
        .await
    {
        Ok(FromCoordinator::Refused { status, reason }) => {
            Err(TryError::Final(ClientError::Refused { status, reason }))
        }
        Ok(answer) => Ok(answer),
        Err(error) => Err(TryError::new(error)),
    }
}
