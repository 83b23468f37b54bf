//! The link of a worker to its coordinator: connections, one after the other, for ever.
//!
//! Owns connecting, trying again, giving up a connection that is silent, and what the daemon says of it, once for each
//! change. Does not own what is delivered (`exchange`), nor the attempts, which run on while there is no connection.
//!
//! ```text
//!   apart --connected, Hello, Welcome--> together --closed, broken, silent--> apart
//!   together: Leave order, or told to stop and the answer does not come -> the life ends, the daemon ends
//!   apart: told to stop -> the same at once
//! ```

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use napreduce_core::delivery::Receipt;
use napreduce_core::{Slots, WorkerId};
use napreduce_protocol::{
    Connection, FromWorker, HANDSHAKE_DEADLINE, Hello, MessageReceiver, MessageSender, Role, ToWorker,
    TransportError, WorkerNews, WorkerReport, transport,
};
use napreduce_task::SpareMemory;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::connection_log::ConnectionLog;
use super::environment::WorkerEnvironment;
use super::error::WorkerError;
use super::exchange::{Exchange, Followed, Welcomed};
use super::registration::{Registration, Resources};
use super::worker_directory::random;
use crate::client::ClusterPlace;

const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long a coordinator may take to answer `Hello`: the answer waits for its journal.
const WELCOME_DEADLINE: Duration = Duration::from_secs(10);
/// How long a worker whose name is taken asks again: the one that has it may be an earlier life of it, whose end has not been
/// noticed yet.
const NAME_PATIENCE: Duration = Duration::from_secs(3);
/// How long a coordinator may take to let a worker go that was told to stop.
const LEAVE_DEADLINE: Duration = Duration::from_secs(10);

/// What a worker says of itself to every coordinator.
pub(super) struct Introduction {
    pub(super) incarnation: u64,
    pub(super) slots: Slots,
    pub(super) data_address: String,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum Apart {
    /// It cannot be reached, or not understood.
    Unreachable(String),
    /// It will not do with this worker, however often it is asked.
    NotLetIn { address: String, reason: String },
    /// It said no.
    Refused(String),
    /// Another worker has this name.
    NameTaken(String),
    /// The connection was there and ended.
    Lost(String),
}

/// How often to say what, as the coordinator wants it.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    heartbeat: Duration,
    silence_max: Duration,
}

/// A connection on which the worker is welcome.
struct Together {
    sender: MessageSender,
    receiver: MessageReceiver,
    rhythm: Rhythm,
    /// Time in which nothing was heard, as far as this daemon was there to hear it.
    silent: Duration,
}

/// How a connection ended.
enum End {
    Apart(Apart),
    /// The worker is to end.
    Leave,
}

pub(super) struct Link<S> {
    resources: Resources,
    introduction: Introduction,
    exchange: Exchange,
    registration: Option<Registration>,
    connection_log: ConnectionLog,
    /// Comes true when the daemon is told to stop.
    stop: S,
    /// When it ends by itself, once it was told to stop.
    leave_by: Option<Instant>,
}

impl<S: Future<Output = String> + Unpin> Link<S> {
    pub(super) fn new(resources: Resources, introduction: Introduction, stop: S) -> Link<S> {
        let connection_log = ConnectionLog::new(&resources.environment.name);
        let exchange = Exchange::default();
        Link { resources, introduction, exchange, registration: None, connection_log, stop, leave_by: None }
    }

    /// Runs until the worker may leave or is told to stop; then no attempt of it is left.
    pub(super) async fn run(mut self) -> Result<(), WorkerError> {
        let (mut pause, mut taken_since) = (RETRY_MIN, None::<Instant>);
        let ended = loop {
            let environment = Arc::clone(&self.resources.environment);
            let (before, received) = (self.exchange.number(), self.exchange.received());
            let hello = self.introduction.hello(&environment, before, received);
            let introduced = introduce(&environment.cluster, hello);
            let apart = match self.meanwhile(introduced).await {
                None => break Ok(()),
                Some(Ok((connection, welcome))) => match self.on_welcome(connection, &welcome) {
                    Ok(together) => {
                        pause = RETRY_MIN;
                        match self.converse(together).await {
                            End::Leave => break Ok(()),
                            End::Apart(apart) => apart,
                        }
                    }
                    Err(apart) => apart,
                },
                Some(Err(apart)) => apart,
            };
            if let (Apart::NotLetIn { address, reason }, true) = (&apart, self.connection_log.is_stranger()) {
                break Err(WorkerError::NotLetIn { address: address.clone(), reason: reason.clone() });
            }
            match &apart {
                Apart::NameTaken(reason)
                    if taken_since.is_some_and(|since| since.elapsed() > NAME_PATIENCE) =>
                {
                    break Err(WorkerError::NameTaken { reason: reason.clone() });
                }
                Apart::NameTaken(_) => drop(taken_since.get_or_insert_with(Instant::now)),
                _ => taken_since = None,
            }
            self.connection_log.on_apart(&apart);
            if self.leave_by.is_some() {
                // There is nobody left to say goodbye to.
                break Ok(());
            }
            if self.meanwhile(sleep(jittered(pause))).await.is_none() {
                break Ok(());
            }
            pause = (pause * 2).min(RETRY_MAX);
        };
        if let Some(registration) = self.registration.take() {
            registration.end().await;
        }
        ended
    }

    /// Waits for something while there is no connection; `None` when the daemon is told to stop before.
    async fn meanwhile<T>(&mut self, something: impl Future<Output = T>) -> Option<T> {
        let mut something = std::pin::pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return Some(done),
                Some(news) = next_news(&mut self.registration) => self.exchange.on_news(news),
                why = &mut self.stop => {
                    self.connection_log.on_stop(&why, "no coordinator to tell, so at once");
                    return None;
                }
            }
        }
    }

    /// Begins to converse, as the worker that the coordinator says this is.
    fn on_welcome(&mut self, connection: Connection, welcome: &ToWorker) -> Result<Together, Apart> {
        let &ToWorker::Welcome { worker, journal, received, heartbeat_millis, silence_millis } = welcome
        else {
            return Err(match welcome {
                ToWorker::Refused { reason, name_taken: true } => Apart::NameTaken(reason.clone()),
                ToWorker::Refused { reason, .. } => Apart::Refused(reason.clone()),
                _ => Apart::Unreachable(String::from("the coordinator did not answer Hello")),
            });
        };
        let heartbeat = Duration::from_millis(heartbeat_millis.max(1));
        match self.exchange.on_welcome(journal, worker, received) {
            Welcomed::Back => {}
            Welcomed::Anew => {
                let superseded = self.registration.is_some();
                let registration = Registration::begin(
                    &self.resources,
                    worker,
                    journal,
                    heartbeat,
                    self.registration.take(),
                );
                match registration {
                    Ok(registration) => self.registration = Some(registration),
                    Err(error) => {
                        // As another worker next time, since this one cannot follow an order.
                        self.exchange = Exchange::default();
                        return Err(Apart::Lost(format!("cannot start a thread for attempts: {error}")));
                    }
                }
                self.connection_log.on_anew(superseded);
            }
            Welcomed::Forgotten => {
                let reason = "it has lost what it knew of this worker, which begins anew";
                return Err(Apart::Lost(reason.to_owned()));
            }
        }
        self.connection_log.on_together(worker);
        let (sender, receiver) = connection.split();
        let rhythm = Rhythm { heartbeat, silence_max: Duration::from_millis(silence_millis.max(1)) };
        Ok(Together { sender, receiver, rhythm, silent: Duration::ZERO })
    }

    async fn converse(&mut self, mut together: Together) -> End {
        let mut beat = interval(together.rhythm.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looked = Instant::now();
        loop {
            let leave_by = self.leave_by;
            let done = tokio::select! {
                biased;
                why = &mut self.stop, if leave_by.is_none() => {
                    self.connection_log.on_stop(&why, "asking the coordinator to let this worker go");
                    self.leave_by = Some(Instant::now() + LEAVE_DEADLINE);
                    self.exchange.report(WorkerReport::Draining { hand_back: true });
                    Ok(())
                }
                received = together.receiver.receive::<ToWorker>() => {
                    together.silent = Duration::ZERO;
                    match self.on_received(received) {
                        Followed::Nothing => Ok(()),
                        Followed::Order(ToWorker::Leave { .. }) => {
                            // It counts this worker as gone either way.
                            let _ = together.send(self.exchange.take_acknowledgement()).await;
                            self.connection_log.on_leave();
                            return End::Leave;
                        }
                        Followed::Order(order) => {
                            if let Some(registration) = &self.registration {
                                registration.order(order);
                            }
                            Ok(())
                        }
                        Followed::Broken(reason) => Err(reason),
                    }
                }
                Some(news) = next_news(&mut self.registration) => {
                    self.exchange.on_news(news);
                    while let Some(more) = self.registration.as_mut().and_then(Registration::more_news) {
                        self.exchange.on_news(more);
                    }
                    Ok(())
                }
                _ = beat.tick() => {
                    let passed = looked.elapsed().min(together.rhythm.heartbeat * 2);
                    looked = Instant::now();
                    together.silent += passed;
                    if together.silent > together.rhythm.silence_max {
                        Err("the coordinator was silent")
                    } else {
                        let acknowledgement = self.exchange.take_acknowledgement();
                        let beat = self.exchange.take_heartbeat();
                        together.send(acknowledgement.into_iter().chain([beat])).await
                    }
                }
                () = sleep_until(leave_by.unwrap_or_else(Instant::now)), if leave_by.is_some() => {
                    self.connection_log.on_leave_unanswered(LEAVE_DEADLINE);
                    return End::Leave;
                }
            };
            let sent = match done {
                Ok(()) => together.send(self.exchange.take_unsent()).await,
                broken => broken,
            };
            if let Err(reason) = sent {
                return End::Apart(Apart::Lost(reason.to_owned()));
            }
        }
    }

    fn on_received(&mut self, received: Result<Option<ToWorker>, TransportError>) -> Followed {
        match received {
            Ok(Some(ToWorker::Received { through })) => match self.exchange.on_received(through) {
                true => Followed::Nothing,
                false => Followed::Broken("the coordinator acknowledged what was never reported"),
            },
            Ok(Some(message)) => match message.number().map(|number| self.exchange.on_order(number)) {
                Some(Receipt::Fresh) => Followed::Order(message),
                Some(Receipt::Duplicate) => Followed::Nothing,
                Some(Receipt::Gap) => Followed::Broken("an order is missing"),
                None => Followed::Broken("the coordinator answered a question that was not asked"),
            },
            Ok(None) => Followed::Broken("the coordinator closed the connection"),
            Err(_) => Followed::Broken("the connection broke"),
        }
    }
}

impl Together {
    /// Sends messages; a coordinator that takes nothing for too long is as good as silent.
    async fn send(&mut self, messages: impl IntoIterator<Item = FromWorker>) -> Result<(), &'static str> {
        let mut messages = messages.into_iter().peekable();
        if messages.peek().is_none() {
            return Ok(());
        }
        match timeout(self.rhythm.silence_max, self.sender.send_all(messages)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke"),
            Err(_) => Err("the coordinator took nothing"),
        }
    }
}

impl Introduction {
    fn hello(
        &self,
        environment: &WorkerEnvironment,
        before: Option<(u64, WorkerId)>,
        received: u64,
    ) -> Hello {
        Hello {
            name: environment.name.clone(),
            incarnation: self.incarnation,
            before,
            received,
            slots: self.slots,
            host: environment.host.clone(),
            rack: environment.rack.clone(),
            data_address: self.data_address.clone(),
            directory: environment.paths.root().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            isolation: environment.isolation.in_words(),
            memory: SpareMemory::read().map_or(0, |spare| spare.available),
            process: std::process::id(),
        }
    }
}

/// Connects and says hello; the connection and the answer.
async fn introduce(place: &ClusterPlace, hello: Hello) -> Result<(Connection, ToWorker), Apart> {
    let unreachable = |error: TransportError| Apart::Unreachable(error.to_string());
    let (address, secret) = place.look_up().map_err(|error| Apart::Unreachable(error.to_string()))?;
    let connected = transport::connect(&address, Role::Worker, &secret, HANDSHAKE_DEADLINE).await;
    let mut connection = connected.map_err(|error| match (&error, place) {
        // An address out of a directory may be that of a coordinator which is gone, and somebody else's by now.
        (
            TransportError::SecretRefused | TransportError::OtherSecret | TransportError::OtherVersion { .. },
            ClusterPlace::Address { .. },
        ) => Apart::NotLetIn { address: address.clone(), reason: error.to_string() },
        _ => unreachable(error),
    })?;
    let answered = timeout(WELCOME_DEADLINE, async {
        connection.send(&FromWorker::Hello(Box::new(hello))).await?;
        connection.receive::<ToWorker>().await
    });
    match answered.await {
        Ok(Ok(Some(answer))) => Ok((connection, answer)),
        Ok(Ok(None)) => Err(Apart::Unreachable(format!("{address} closed the connection at our hello"))),
        Ok(Err(error)) => Err(unreachable(error)),
        Err(_) => Err(Apart::Unreachable(format!("{address} did not answer our hello"))),
    }
}

/// What the loop tells next; never, while there is none.
async fn next_news(registration: &mut Option<Registration>) -> Option<WorkerNews> {
    match registration {
        Some(registration) => registration.news().await,
        None => std::future::pending().await,
    }
}

/// Between half of it and all of it, so that the workers of a coordinator that was away do not come all at once.
fn jittered(pause: Duration) -> Duration {
    // Without randomness they come together; that is no reason to stay away.
    let permille = u32::try_from(random().unwrap_or(0) % 500).unwrap_or(0);
    pause * (1_000 - permille) / 1_000
}
