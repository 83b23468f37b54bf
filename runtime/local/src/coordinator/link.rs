//! The link to one worker: what it was told and is to be told, whatever becomes of its connection.
//!
//! Owns the numbering of orders and reports, and which of them are on their way. Does not own the connection
//! itself nor when a silent worker is lost.

use napreduce_engine::JobId;
use napreduce_engine::delivery::{Inbox, NeverSent, Outbox, Receipt};
use napreduce_protocol::{ToWorker, WorkerMemory};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::UnboundedSender;

use super::entry::Identity;
use super::last_heard::LastHeard;

/// One worker.
#[derive(Debug)]
pub struct Link {
    kept: KeptLink,
    route: Route,
    pub heard: LastHeard,
    /// By its last word.
    memory: WorkerMemory,
}

/// Who has said hello, and the connection.
pub struct Caller {
    pub connection: u64,
    pub messages: UnboundedSender<ToWorker>,
    pub heard: LastHeard,
}

/// What of a link survives a restart of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptLink {
    pub(super) identity: Identity,
    orders: Outbox<ToWorker>,
    reports: Inbox,
    /// Jobs that it was told of.
    defined: BTreeSet<JobId>,
    /// How many entries of the log of their map outputs it was told.
    #[serde(default)]
    read: BTreeMap<JobId, usize>,
    /// It may go, and counts as gone.
    leaving: bool,
    /// Why it is to leave, if somebody has said so.
    #[serde(default)]
    drain_reason: Option<String>,
}

/// Where messages go.
#[derive(Debug)]
enum Route {
    Down,
    /// To a worker in this process: what is sent has arrived.
    Local(UnboundedSender<ToWorker>),
    Connected {
        connection: u64,
        messages: UnboundedSender<ToWorker>,
        /// Orders up to this number are on their way.
        sent: u64,
        /// What was last said to be kept of the reports.
        acknowledged: u64,
        /// It waits for a sign of life.
        answer: bool,
    },
}

impl Link {
    pub(super) fn new(identity: Identity) -> Link {
        let (orders, reports) = (Outbox::default(), Inbox::default());
        let (defined, read) = (BTreeSet::new(), BTreeMap::new());
        let (leaving, drain_reason) = (false, None);
        Link::restored(KeptLink { identity, orders, reports, defined, read, leaving, drain_reason })
    }

    /// As it was when the coordinator ended.
    pub fn restored(kept: KeptLink) -> Link {
        Link { kept, route: Route::Down, heard: LastHeard::now(), memory: WorkerMemory::default() }
    }

    /// Silence counts from now on.
    pub fn begin_to_listen(&mut self) {
        self.heard.stamp();
    }

    pub fn kept(&self) -> &KeptLink {
        &self.kept
    }

    pub fn identity(&self) -> &Identity {
        &self.kept.identity
    }

    pub fn is_connected(&self) -> bool {
        !matches!(self.route, Route::Down)
    }

    pub fn is_leaving(&self) -> bool {
        self.kept.leaving
    }

    pub fn memory(&self) -> &WorkerMemory {
        &self.memory
    }

    pub fn set_memory(&mut self, memory: WorkerMemory) {
        self.memory = memory;
    }

    pub fn drain_reason(&self) -> Option<&str> {
        self.kept.drain_reason.as_deref().filter(|reason| !reason.is_empty())
    }

    pub(super) fn set_drain_reason(&mut self, reason: Option<String>) {
        self.kept.drain_reason = reason;
    }

    /// Puts what it is to be told, by its number, into the queue; `flush` sends it.
    pub(super) fn tell(&mut self, message: impl FnOnce(u64) -> ToWorker) {
        let message = message(self.kept.orders.next_number());
        match &message {
            ToWorker::Define { description, .. } => drop(self.kept.defined.insert(description.job)),
            ToWorker::Outputs { job, entries, .. } => {
                *self.kept.read.entry(*job).or_default() += entries.len();
            }
            ToWorker::Forget { job, .. } => {
                self.kept.defined.remove(job);
                self.kept.read.remove(job);
            }
            ToWorker::Leave { .. } => self.kept.leaving = true,
            _ => {}
        }
        self.kept.orders.push(message);
    }

    /// Whether it was told of a job and not yet to forget it.
    pub(super) fn knows(&self, job: JobId) -> bool {
        self.kept.defined.contains(&job)
    }

    /// How many entries of the log of a job's map outputs it was told.
    pub(super) fn read_of(&self, job: JobId) -> usize {
        self.kept.read.get(&job).copied().unwrap_or_default()
    }

    /// What a report of this number is; a fresh one is to be journaled and then taken in.
    pub fn look(&self, number: u64) -> Receipt {
        self.kept.reports.clone().accept(number)
    }

    /// Takes in a report that was journaled.
    pub(super) fn take_in(&mut self, number: u64) {
        self.kept.reports.accept(number);
    }

    pub fn received(&self) -> u64 {
        self.kept.reports.received()
    }

    /// The worker has orders up to this number.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), NeverSent> {
        self.kept.orders.acknowledge(through)
    }

    /// Whether a worker that has orders up to this number can go on where it was.
    pub fn can_resume_after(&self, received: u64) -> bool {
        (self.kept.orders.acknowledged()..=self.kept.orders.sent()).contains(&received)
    }

    pub(super) fn connect_local(&mut self, orders: UnboundedSender<ToWorker>) {
        self.route = Route::Local(orders);
    }

    /// A connection was made; the worker has orders up to `received`, and `welcome` is the first
    /// message to it.
    pub fn connect(&mut self, caller: Caller, received: u64, welcome: ToWorker) {
        let Caller { connection, messages, heard } = caller;
        // Should it be gone again already, the end of the connection is on its way.
        let _ = messages.send(welcome);
        let acknowledged = self.received();
        self.route = Route::Connected { connection, messages, sent: received, acknowledged, answer: false };
        self.heard = heard;
    }

    /// A connection ended; another one may have taken its place.
    pub fn disconnect(&mut self, ended: u64) -> bool {
        let current = matches!(self.route, Route::Connected { connection, .. } if connection == ended);
        if current {
            self.route = Route::Down;
        }
        current
    }

    /// It wants to hear something.
    pub fn ask_for_answer(&mut self) {
        if let Route::Connected { answer, .. } = &mut self.route {
            *answer = true;
        }
    }

    /// Sends what is not on its way; to be called when what led to it is in the journal.
    pub(super) fn flush(&mut self) {
        match &mut self.route {
            Route::Down => {}
            Route::Local(orders) => {
                for (_, message) in self.kept.orders.unacknowledged() {
                    // An embedded worker ends after its coordinator only.
                    let _ = orders.send(message.clone());
                }
                let sent = self.kept.orders.sent();
                self.kept.orders.acknowledge(sent).expect("as many were sent");
            }
            Route::Connected { messages, sent, acknowledged, answer, .. } => {
                // A connection that has ended says so itself; what it loses is sent again on the next.
                for (_, message) in self.kept.orders.unacknowledged_from(*sent + 1) {
                    let _ = messages.send(message.clone());
                }
                *sent = self.kept.orders.sent();
                let through = self.kept.reports.received();
                if *answer || through > *acknowledged {
                    let _ = messages.send(ToWorker::Received { through });
                    (*acknowledged, *answer) = (through, false);
                }
            }
        }
    }
}
