//! The link of a worker to its coordinator: connects, reconnects and drops silent connections; each change is
//! logged once. Attempts continue to run while there is no connection.
//!
//! ```text
//!   apart --connected, Hello, Welcome--> together --closed, broken, silent--> apart
//!   together: Leave order, or stop without an answer in time -> registration and daemon end
//!   apart: stop -> the same at once; within the grace period it first tries to hand over its work
//! ```

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use napreduce_engine::WorkerId;
use napreduce_engine::delivery::Receipt;
use napreduce_local::clock::now;
use napreduce_local::worker::ticks;
#[cfg(feature = "simulated")]
use napreduce_local::world::{Fact, note};
use napreduce_local::world::{Situation, reached};
use napreduce_protocol::{Backoff, FromWorker, ToWorker, WorkerNews, WorkerReport, whole_millis};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::connection_log::ConnectionLog;
use super::error::WorkerError;
use super::exchange::{Exchange, Followed, Welcomed};
use super::introduction::{Apart, Introduction, introduce};
use super::registration::{Registration, Resources};
use super::stop::{Stop, StopRequest};
use crate::transport::{Connection, MessageReceiver, MessageSender, TransportError};

/// Pauses between tries to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
/// How long a worker retries after the time when its name should have become free. It exceeds the longest pause between
/// two tries.
const NAME_MARGIN: Duration = Duration::from_secs(3);
/// Maximum wait for the coordinator to release a stopping worker.
const LEAVE_DEADLINE: Duration = Duration::from_secs(10);

/// Heartbeat interval and silence limit, set by the coordinator.
#[derive(Debug, Clone, Copy)]
struct Rhythm {
    heartbeat: Duration,
    silence_max: Duration,
}

/// An established connection.
struct Together {
    sender: MessageSender,
    receiver: MessageReceiver,
    rhythm: Rhythm,
    /// Time without a message, as measured while this daemon was running.
    silent: Duration,
}

/// A request to stop.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    /// The deadline.
    by: Instant,
    /// Whether attempts are checkpointed first.
    saves: bool,
}

/// The attempts and the deadline of a worker after it was asked to stop.
struct LeaveState {
    /// When it exits, whatever runs.
    deadline: Option<Instant>,
    /// Whether a request to stop can still make the deadline earlier.
    accepts_requests: bool,
}

/// The end of a connection.
enum End {
    Apart(Apart),
    /// The worker must exit.
    Leave,
}

pub(super) struct Link<'a> {
    resources: Resources,
    introduction: Introduction,
    exchange: Exchange,
    registration: Option<Registration>,
    connection_log: ConnectionLog,
    /// Requests to stop the daemon.
    stop: &'a mut Stop,
    leaving: Option<Leaving>,
}

impl<'a> Link<'a> {
    pub(super) fn new(
        resources: Resources,
        introduction: Introduction,
        stop: &'a mut Stop,
    ) -> Link<'a> {
        let connection_log = ConnectionLog::new(&resources.environment.name);
        let exchange = Exchange::default();
        Link {
            resources,
            introduction,
            exchange,
            registration: None,
            connection_log,
            stop,
            leaving: None,
        }
    }

    /// Runs until the worker may leave or is stopped; no attempt is left then.
    pub(super) async fn run(mut self) -> Result<(), WorkerError> {
        let mut backoff = BACKOFF;
        // Since when the name of this worker is in use by another.
        let mut name_taken_since = None::<Instant>;
        let ended = loop {
            let environment = Arc::clone(&self.resources.environment);
            let hello = self.introduction.hello(
                &self.resources,
                self.exchange.number(),
                self.exchange.received(),
            );
            let configuration = &environment.configuration;
            let introduced = introduce(&configuration.world, &configuration.cluster, hello);
            let apart = match self.meanwhile(introduced).await {
                None => break Ok(()),
                Some(Ok((connection, welcome))) => match self.on_welcome(connection, &welcome) {
                    Ok(together) => {
                        backoff.reset();
                        match self.converse(together).await {
                            End::Leave => break Ok(()),
                            End::Apart(apart) => apart,
                        }
                    }
                    Err(apart) => apart,
                },
                Some(Err(apart)) => apart,
            };
            if let Apart::NotLetIn { address, reason } = &apart
                && self.connection_log.is_stranger
            {
                break Err(WorkerError::NotLetIn {
                    address: address.clone(),
                    reason: reason.clone(),
                });
            }
            if let Apart::NameTaken { reason, free_in } = &apart {
                // The holder may be a predecessor that lost its power, which the coordinator has not noticed.
                let since = *name_taken_since.get_or_insert_with(now);
                if since.elapsed() > *free_in + NAME_MARGIN {
                    break Err(WorkerError::NameTaken {
                        reason: reason.clone(),
                    });
                }
            } else {
                name_taken_since = None;
            }
            self.connection_log.on_apart(&apart);
            if let Some(leaving) = self.leaving {
                let has_work_to_save = leaving.saves && self.runs_something();
                if !has_work_to_save {
                    // No connection: no need to sign off.
                    break Ok(());
                }
            }
            let random = &environment.configuration.world.random;
            let pause = random.jittered(backoff.next_pause());
            if self.meanwhile(sleep(pause)).await.is_none() {
                break Ok(());
            }
        };
        if let Some(registration) = self.registration.take() {
            registration.end().await;
        }
        ended
    }

    /// Waits for a future while disconnected; `None` if the daemon is stopped first.
    async fn meanwhile<T>(&mut self, awaited: impl Future<Output = T>) -> Option<T> {
        let mut awaited = std::pin::pin!(awaited);
        loop {
            let LeaveState {
                deadline,
                accepts_requests,
            } = self.leave_state();
            tokio::select! {
                result = &mut awaited => return Some(result),
                Some(news) = next_news(&mut self.registration) => self.exchange.on_news(news),
                request = self.stop.next(), if accepts_requests => match request.grace {
                    Some(_) if self.runs_something() => self.begin_to_leave(&request),
                    _ => {
                        self.connection_log.on_stop(&request.why, "not connected, so at once");
                        return None;
                    }
                },
                () = sleep_until(deadline.unwrap_or_else(now)), if deadline.is_some() => {
                    reached(Situation::LeaveUnanswered);
                    self.connection_log.on_leave_unanswered();
                    return None;
                }
            }
        }
    }

    fn runs_something(&self) -> bool {
        self.registration
            .as_ref()
            .is_some_and(Registration::runs_something)
    }

    fn leave_state(&self) -> LeaveState {
        match self.leaving {
            Some(leaving) => LeaveState {
                deadline: Some(leaving.by),
                accepts_requests: leaving.saves,
            },
            None => LeaveState {
                deadline: None,
                accepts_requests: true,
            },
        }
    }

    /// Asks the coordinator to release this worker once connected. A repeated request never moves the
    /// deadline back.
    fn begin_to_leave(&mut self, request: &StopRequest) {
        let mut by = now() + request.grace.unwrap_or(LEAVE_DEADLINE);
        let saves = request.grace.is_some();
        if let Some(earlier) = self.leaving {
            if saves && earlier.by <= by {
                return;
            }
            by = by.min(earlier.by);
        }
        let how = match request.grace {
            Some(grace) => format!("attempts save their work; leaving within {grace:?}"),
            None => String::from("asking the coordinator to release this worker"),
        };
        self.connection_log.on_stop(&request.why, &how);
        self.leaving = Some(Leaving { by, saves });
        self.report_leaving(request.grace.unwrap_or_default(), request.why.clone());
    }

    fn report_leaving(&mut self, grace: Duration, why: String) {
        let grace_millis = whole_millis(grace);
        self.exchange.report(
            now().into_std(),
            WorkerReport::Leaving { grace_millis, why },
        );
    }

    /// Starts the conversation under the identity that the coordinator assigned.
    fn on_welcome(
        &mut self,
        connection: Connection,
        welcome: &ToWorker,
    ) -> Result<Together, Apart> {
        let &ToWorker::Welcome {
            worker,
            journal,
            received,
            heartbeat_millis,
            silence_millis,
        } = welcome
        else {
            return Err(refusal(welcome));
        };
        let heartbeat = Duration::from_millis(heartbeat_millis.max(1));
        match self.exchange.on_welcome(journal, worker, received) {
            Welcomed::Back => {}
            Welcomed::Fresh => self.begin_life(worker, journal, heartbeat)?,
            Welcomed::Forgotten => {
                reached(Situation::WorkerForgotten);
                let reason = "the coordinator has no record of this worker; rejoining";
                return Err(Apart::Lost(reason.to_owned()));
            }
        }
        self.connection_log.on_together(worker);
        let (sender, receiver) = connection.split();
        let rhythm = Rhythm {
            heartbeat,
            silence_max: Duration::from_millis(silence_millis.max(1)),
        };
        Ok(Together {
            sender,
            receiver,
            rhythm,
            silent: Duration::ZERO,
        })
    }

    /// Begins a life under a new identity; an earlier one ends.
    fn begin_life(
        &mut self,
        worker: WorkerId,
        journal: u64,
        heartbeat: Duration,
    ) -> Result<(), Apart> {
        let previous = self.registration.take();
        let is_superseded = previous.is_some();
        if is_superseded {
            reached(Situation::WorkerSuperseded);
        }
        let begun = Registration::begin(&self.resources, worker, journal, heartbeat, previous);
        match begun {
            Ok(registration) => self.registration = Some(registration),
            Err(error) => {
                // Reconnect as a new worker, since this one cannot carry out orders.
                self.exchange = Exchange::default();
                return Err(Apart::Lost(format!(
                    "cannot start a thread for attempts: {error}"
                )));
            }
        }
        self.connection_log.on_new_identity(is_superseded);
        if self.leaving.is_some() {
            // Its unsaved work belonged to its previous identity.
            let why = String::from("it was stopped before it joined");
            self.report_leaving(Duration::ZERO, why);
        }
        Ok(())
    }

    /// Exchanges messages until the connection ends.
    async fn converse(&mut self, mut together: Together) -> End {
        let mut beat = ticks(together.rhythm.heartbeat);
        let mut last_beat = now();
        loop {
            let LeaveState {
                deadline,
                accepts_requests,
            } = self.leave_state();
            let done = tokio::select! {
                biased;
                request = self.stop.next(), if accepts_requests => {
                    self.begin_to_leave(&request);
                    Ok(())
                }
                received = together.receiver.receive::<ToWorker>() => {
                    together.silent = Duration::ZERO;
                    match self.on_received(received) {
                        Followed::Nothing => Ok(()),
                        Followed::Order(ToWorker::Leave { .. }) => {
                            // The coordinator has released this worker even if this message is lost.
                            let _ = together.send(self.exchange.take_acknowledgement()).await;
                            self.connection_log.on_leave();
                            return End::Leave;
                        }
                        Followed::Order(order) => {
                            self.forward(order);
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
                    let passed = last_beat.elapsed().min(together.rhythm.heartbeat * 2);
                    last_beat = now();
                    together.silent += passed;
                    if together.silent > together.rhythm.silence_max {
                        Err("the coordinator was silent")
                    } else {
                        let mut messages = Vec::from_iter(self.exchange.take_acknowledgement());
                        messages.push(self.exchange.take_heartbeat());
                        together.send(messages).await
                    }
                }
                () = sleep_until(deadline.unwrap_or_else(now)), if deadline.is_some() => {
                    reached(Situation::LeaveUnanswered);
                    self.connection_log.on_leave_unanswered();
                    return End::Leave;
                }
            };
            let sent = match done {
                Ok(()) => {
                    together
                        .send(self.exchange.take_unsent(now().into_std()))
                        .await
                }
                broken => broken,
            };
            if let Err(reason) = sent {
                return End::Apart(Apart::Lost(reason.to_owned()));
            }
        }
    }

    /// Passes an order on to the loop that carries it out.
    fn forward(&self, order: ToWorker) {
        #[cfg(feature = "simulated")]
        if let Some((_, worker)) = self.exchange.number() {
            note(&Fact::OrderFollowed {
                worker,
                message: &order,
            });
        }
        if let Some(registration) = &self.registration {
            registration.order(order);
        }
    }

    fn on_received(&mut self, received: Result<Option<ToWorker>, TransportError>) -> Followed {
        let message = match received {
            Ok(Some(message)) => message,
            Ok(None) => return Followed::Broken("the coordinator closed the connection"),
            Err(_) => return Followed::Broken("the connection broke"),
        };
        if let ToWorker::Received { through } = message {
            if self.exchange.on_received(through) {
                return Followed::Nothing;
            }
            return Followed::Broken(
                "protocol error: acknowledgement of a report that was not sent",
            );
        }
        let Some(number) = message.number() else {
            return Followed::Broken("protocol error: unexpected answer");
        };
        match self.exchange.on_order(number) {
            Receipt::Fresh => Followed::Order(message),
            Receipt::Duplicate => Followed::Nothing,
            Receipt::Gap => Followed::Broken("protocol error: an order is missing"),
        }
    }
}

/// Returns why the worker is not connected after an answer other than a welcome.
fn refusal(answer: &ToWorker) -> Apart {
    match answer {
        ToWorker::Refused {
            reason,
            name_free_in_millis: Some(millis),
        } => Apart::NameTaken {
            reason: reason.clone(),
            free_in: Duration::from_millis(*millis),
        },
        ToWorker::Refused { reason, .. } => Apart::Refused(reason.clone()),
        _ => Apart::Unreachable(String::from("the coordinator did not answer Hello")),
    }
}

impl Together {
    /// Sends messages; a blocked coordinator counts as silent after a timeout.
    async fn send(
        &mut self,
        messages: impl IntoIterator<Item = FromWorker>,
    ) -> Result<(), &'static str> {
        let mut messages = messages.into_iter().peekable();
        if messages.peek().is_none() {
            return Ok(());
        }
        match timeout(self.rhythm.silence_max, self.sender.send_all(messages)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the connection broke"),
            Err(_) => Err("the coordinator accepted no data in time"),
        }
    }
}

/// Returns the loop's next news; never resolves if there is no registration.
async fn next_news(registration: &mut Option<Registration>) -> Option<WorkerNews> {
    match registration {
        Some(registration) => registration.news().await,
        None => std::future::pending().await,
    }
}
