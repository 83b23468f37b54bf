//! The link to one worker: the numbered orders and reports, independent of any connection.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use napreduce_engine::delivery::{Inbox, NeverSent, Outbox, Receipt};
use napreduce_engine::{JobId, Time};
use napreduce_protocol::{ToWorker, WorkerMemory, WorkerReport};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::entry::Identity;
use super::last_heard::LastHeard;
use crate::world::{Situation, reached};

/// The link to one worker.
#[derive(Debug)]
pub struct Link {
    kept: LinkSnapshot,
    route: Route,
    pub heard: LastHeard,
    /// The memory reported last.
    memory: WorkerMemory,
    /// Reports after those that were taken in, in order. The worker sends them again over its next connection.
    held: VecDeque<HeldReport>,
    /// Number of orders that the coordinator recovered when it started; `None` once the worker has connected. A worker that
    /// has received more got them from an earlier coordinator, whose journal has lost them.
    recovered: Option<u64>,
}

/// A report that is applied when an output directory has been checked.
#[derive(Debug)]
pub(super) struct HeldReport {
    /// The time of the reported event.
    pub(super) at: Time,
    pub(super) report: WorkerReport,
    /// The job whose output directory is being checked; `None` if only earlier reports wait for a check.
    pub(super) waits_for: Option<JobId>,
}

/// A worker that has sent `Hello`, and its connection.
pub struct Caller {
    pub connection: u64,
    pub messages: UnboundedSender<ToWorker>,
    pub heard: LastHeard,
}

/// The part of a link that survives a restart of the coordinator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LinkSnapshot {
    pub(super) identity: Identity,
    orders: Outbox<ToWorker>,
    reports: Inbox,
    /// Jobs that were defined on the worker.
    defined: BTreeSet<JobId>,
    /// Number of entries sent of each job's map output log.
    #[serde(default, rename = "read")]
    outputs_sent: BTreeMap<JobId, usize>,
    /// Whether it may leave; it then counts as gone.
    leaving: bool,
    /// The reason of a requested drain.
    #[serde(default)]
    drain_reason: Option<String>,
}

/// The destination of messages.
#[derive(Debug)]
enum Route {
    Down,
    /// To a worker in this process; delivery is certain.
    Local(UnboundedSender<ToWorker>),
    Connected {
        connection: u64,
        messages: UnboundedSender<ToWorker>,
        /// The first message, until it is sent.
        welcome: Option<ToWorker>,
        /// Number of the last order sent.
        sent: u64,
        /// Number of the last report acknowledged.
        acknowledged: u64,
        /// Whether the worker waits for an answer.
        answer_is_due: bool,
    },
}

impl Link {
    pub(super) fn new(identity: Identity) -> Link {
        Link::restored(LinkSnapshot {
            identity,
            orders: Outbox::default(),
            reports: Inbox::default(),
            defined: BTreeSet::new(),
            outputs_sent: BTreeMap::new(),
            leaving: false,
            drain_reason: None,
        })
    }

    /// Restores a link after a restart of the coordinator.
    pub fn restored(kept: LinkSnapshot) -> Link {
        Link {
            kept,
            route: Route::Down,
            heard: LastHeard::now(),
            memory: WorkerMemory::default(),
            held: VecDeque::new(),
            recovered: None,
        }
    }

    /// Notes that all its orders so far are recovered ones.
    pub fn note_recovered(&mut self) {
        self.recovered = Some(self.kept.orders.sent());
    }

    /// Starts the silence timeout now.
    pub fn begin_to_listen(&mut self) {
        self.heard.stamp();
    }

    pub fn kept(&self) -> &LinkSnapshot {
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
        self.kept
            .drain_reason
            .as_deref()
            .filter(|reason| !reason.is_empty())
    }

    pub(super) fn set_drain_reason(&mut self, reason: Option<String>) {
        self.kept.drain_reason = reason;
    }

    /// Queues the message that `with_number` makes of the next number; `flush` sends it.
    pub(super) fn queue(&mut self, with_number: impl FnOnce(u64) -> ToWorker) {
        let message = with_number(self.kept.orders.next_number());
        match &message {
            ToWorker::Define { description, .. } => {
                self.kept.defined.insert(description.job);
            }
            ToWorker::Outputs { job, entries, .. } => {
                *self.kept.outputs_sent.entry(*job).or_default() += entries.len();
            }
            ToWorker::Forget { job, .. } => {
                self.kept.defined.remove(job);
                self.kept.outputs_sent.remove(job);
            }
            ToWorker::Leave { .. } => self.kept.leaving = true,
            _ => {}
        }
        self.kept.orders.push(message);
    }

    /// Returns whether a job is defined on the worker.
    pub(super) fn is_defined(&self, job: JobId) -> bool {
        self.kept.defined.contains(&job)
    }

    /// Returns the number of entries sent of a job's map output log.
    pub(super) fn outputs_sent(&self, job: JobId) -> usize {
        self.kept
            .outputs_sent
            .get(&job)
            .copied()
            .unwrap_or_default()
    }

    /// Classifies a report by its number; a fresh one must be journaled and then applied.
    pub fn classify_report(&self, number: u64) -> Receipt {
        let next = self.received() + self.held.len() as u64 + 1;
        match number.cmp(&next) {
            Ordering::Less => Receipt::Duplicate,
            Ordering::Equal => Receipt::Fresh,
            Ordering::Greater => Receipt::Gap,
        }
    }

    /// Returns whether a report must wait for earlier ones.
    pub(super) fn holds_reports(&self) -> bool {
        !self.held.is_empty()
    }

    /// Holds a report until the output directory that it waits for, and those of earlier ones, have been checked.
    pub(super) fn hold(&mut self, report: HeldReport) {
        self.held.push_back(report);
    }

    /// Calls `amend` with the held reports that wait for the check of a job's output directory, which is over.
    pub(super) fn end_wait(&mut self, job: JobId, mut amend: impl FnMut(&mut WorkerReport)) {
        for held in &mut self.held {
            if held.waits_for == Some(job) {
                held.waits_for = None;
                amend(&mut held.report);
            }
        }
    }

    /// Returns the next held report, unless it waits for a check.
    pub(super) fn take_held(&mut self) -> Option<HeldReport> {
        if self.held.front()?.waits_for.is_some() {
            return None;
        }
        self.held.pop_front()
    }

    /// Counts a journaled report as received.
    pub(super) fn take_in(&mut self, number: u64) {
        self.kept.reports.accept(number);
    }

    pub fn received(&self) -> u64 {
        self.kept.reports.received()
    }

    /// Records that the worker has received orders up to this number.
    pub fn acknowledge(&mut self, through: u64) -> Result<(), NeverSent> {
        self.kept.orders.acknowledge(through)
    }

    /// Returns whether a worker that has received orders up to this number can resume.
    pub fn can_resume_after(&self, received: u64) -> bool {
        // Acknowledged orders are gone and cannot be sent again.
        let first = self.kept.orders.acknowledged();
        let last = self.recovered.unwrap_or(self.kept.orders.sent());
        (first..=last).contains(&received)
    }

    pub(super) fn connect_local(&mut self, orders: UnboundedSender<ToWorker>) {
        self.route = Route::Local(orders);
    }

    /// Attaches a connection of a worker that has orders up to `received`; `welcome` is the first message. The next
    /// flush sends it, since it acknowledges reports.
    pub fn connect(&mut self, caller: Caller, received: u64, welcome: ToWorker) {
        let Caller {
            connection,
            messages,
            heard,
        } = caller;
        let acknowledged = self.received();
        if !self.held.is_empty() {
            reached(Situation::HeldReportsDropped);
        }
        self.held.clear();
        self.recovered = None;
        if self.kept.orders.sent() > received {
            reached(Situation::OrdersRepeated);
        }
        self.route = Route::Connected {
            connection,
            messages,
            welcome: Some(welcome),
            sent: received,
            acknowledged,
            answer_is_due: false,
        };
        self.heard = heard;
    }

    /// Handles the end of a connection; returns false if another one has replaced it.
    pub fn disconnect(&mut self, ended: u64) -> bool {
        let Route::Connected { connection, .. } = self.route else {
            return false;
        };
        if connection != ended {
            return false;
        }
        self.route = Route::Down;
        true
    }

    /// Requests an answer to the worker.
    pub fn ask_for_answer(&mut self) {
        if let Route::Connected { answer_is_due, .. } = &mut self.route {
            *answer_is_due = true;
        }
    }

    /// Returns the messages that the next flush sends over a connection.
    #[cfg(feature = "simulated")]
    pub(super) fn unsent(&self) -> impl Iterator<Item = &ToWorker> {
        let first = match &self.route {
            Route::Connected { sent, .. } => *sent + 1,
            _ => u64::MAX,
        };
        let unsent = self.kept.orders.unacknowledged_from(first);
        unsent.map(|(_, message)| message)
    }

    /// Returns the message that was queued last.
    #[cfg(feature = "simulated")]
    pub(super) fn last_order(&self) -> Option<&ToWorker> {
        let last = self.kept.orders.sent();
        let mut found = self.kept.orders.unacknowledged_from(last);
        found.next().map(|(_, message)| message)
    }

    /// Sends queued messages; their causes must be journaled.
    pub(super) fn flush(&mut self) {
        match &mut self.route {
            Route::Down => {}
            Route::Local(orders) => {
                for (_, message) in self.kept.orders.unacknowledged() {
                    // An embedded worker ends after its coordinator.
                    let _ = orders.send(message.clone());
                }
                let sent = self.kept.orders.sent();
                self.kept
                    .orders
                    .acknowledge(sent)
                    .expect("as many were sent");
            }
            Route::Connected {
                messages,
                welcome,
                sent,
                acknowledged,
                answer_is_due,
                ..
            } => {
                // An ended connection is reported separately; its lost messages are sent again on the next.
                if let Some(welcome) = welcome.take() {
                    let _ = messages.send(welcome);
                }
                for (_, message) in self.kept.orders.unacknowledged_from(*sent + 1) {
                    let _ = messages.send(message.clone());
                }
                *sent = self.kept.orders.sent();
                let through = self.kept.reports.received();
                if *answer_is_due || through > *acknowledged {
                    let _ = messages.send(ToWorker::Received { through });
                    *acknowledged = through;
                    *answer_is_due = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use napreduce_engine::Slots;

    use super::*;

    fn link() -> Link {
        Link::new(Identity {
            name: "w".to_owned(),
            incarnation: 1,
            slots: Slots { map: 1, reduce: 1 },
            host: "h".to_owned(),
            rack: "r".to_owned(),
            data_address: String::new(),
            directory: "/w".into(),
            architecture: String::new(),
            isolation: String::new(),
        })
    }

    fn forget(number: u64) -> ToWorker {
        ToWorker::Forget {
            number,
            job: JobId(1),
        }
    }

    #[test]
    fn worker_with_orders_that_the_journal_lost_cannot_resume() {
        let mut link = link();
        link.queue(forget);
        link.note_recovered();
        link.queue(forget);
        assert!(link.can_resume_after(1));
        // Its second order is not this one.
        assert!(!link.can_resume_after(2));
        let (messages, _receiver) = tokio::sync::mpsc::unbounded_channel();
        let caller = Caller {
            connection: 1,
            messages,
            heard: LastHeard::now(),
        };
        link.connect(caller, 1, forget(0));
        assert!(link.can_resume_after(2));
    }

    /// It acknowledges reports, which may be in a batch that is not journaled yet.
    #[test]
    fn welcome_waits_for_the_flush_and_comes_before_orders() {
        let mut link = link();
        link.queue(forget);
        let (messages, mut sent) = tokio::sync::mpsc::unbounded_channel();
        let caller = Caller {
            connection: 1,
            messages,
            heard: LastHeard::now(),
        };
        let welcome = ToWorker::Received { through: 7 };
        link.connect(caller, 0, welcome.clone());
        assert!(sent.is_empty());
        link.flush();
        assert_eq!(sent.try_recv(), Ok(welcome));
        assert_eq!(sent.try_recv(), Ok(forget(1)));
    }
}
