//! Exactly-once delivery between a worker and its coordinator across connections: numbering of reports and
//! orders, and the effect of a welcome. Pure: performs no I/O.

use std::collections::BTreeMap;
use std::time::Instant;

use napreduce_engine::delivery::{Inbox, Outbox, Receipt};
use napreduce_engine::{AttemptId, WorkerId};
#[cfg(feature = "simulated")]
use napreduce_local::world::{Fact, note};
use napreduce_protocol::{
    AttemptProgress, FromWorker, ToWorker, WorkerMemory, WorkerNews, WorkerReport, whole_micros,
};

/// The worker's side of the conversation.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// The coordinator's journal that assigned the number, and the number.
    number: Option<(u64, WorkerId)>,
    /// When each report happened, and the report.
    reports: Outbox<(Instant, WorkerReport)>,
    orders: Inbox,
    /// The first report not written to the present connection.
    unsent: u64,
    /// The last order acknowledged to the coordinator.
    acknowledged: u64,
    progress: BTreeMap<AttemptId, AttemptProgress>,
    memory: WorkerMemory,
}

/// The effect of a welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Welcomed {
    /// The conversation continues.
    Back,
    /// The worker's identity is superseded by a new one.
    Fresh,
    /// The coordinator has lost acknowledged reports; the worker must register again.
    Forgotten,
}

impl Exchange {
    pub(super) fn number(&self) -> Option<(u64, WorkerId)> {
        self.number
    }

    /// Returns the number of the last order received.
    pub(super) fn received(&self) -> u64 {
        self.orders.received()
    }

    /// Begins a new connection; the coordinator has the reports up to `received`.
    pub(super) fn on_welcome(&mut self, journal: u64, worker: WorkerId, received: u64) -> Welcomed {
        if self.number != Some((journal, worker)) {
            // Memory belongs to the machine, not to the worker's identity.
            let memory = std::mem::take(&mut self.memory);
            *self = Exchange {
                number: Some((journal, worker)),
                memory,
                ..Exchange::default()
            };
            return Welcomed::Fresh;
        }
        let is_known =
            self.reports.acknowledged() <= received && self.reports.acknowledge(received).is_ok();
        if !is_known {
            self.number = None;
            return Welcomed::Forgotten;
        }
        self.unsent = received + 1;
        self.acknowledged = self.orders.received();
        Welcomed::Back
    }

    /// Takes news from the worker's loop.
    pub(super) fn on_news(&mut self, news: WorkerNews) {
        match news {
            WorkerNews::Report { at, report } => {
                if let WorkerReport::Happened { attempt, .. }
                | WorkerReport::Finished { attempt, .. }
                | WorkerReport::Failed { attempt, .. } = &report
                {
                    // The report supersedes earlier progress.
                    self.progress.remove(attempt);
                }
                self.report(at, report);
            }
            WorkerNews::Progress(progress) => {
                for progress in progress {
                    self.progress.insert(progress.attempt, progress);
                }
            }
            WorkerNews::Memory(memory) => self.memory = memory,
        }
    }

    /// Keeps a report of what happened at this time until the coordinator acknowledges it.
    pub(super) fn report(&mut self, at: Instant, report: WorkerReport) {
        #[cfg(feature = "simulated")]
        if let Some((_, worker)) = self.number {
            note(&Fact::ReportMade {
                worker,
                number: self.reports.next_number(),
                report: &report,
            });
        }
        self.reports.push((at, report));
    }

    /// Returns the reports not written to the present connection, with their ages, and counts them as written.
    pub(super) fn take_unsent(&mut self, now: Instant) -> Vec<FromWorker> {
        let mut messages = Vec::new();
        for (number, (at, report)) in self.reports.unacknowledged_from(self.unsent) {
            let age = now.saturating_duration_since(*at);
            messages.push(FromWorker::Reported {
                number,
                age_micros: whole_micros(age),
                report: report.clone(),
            });
        }
        self.unsent = self.reports.next_number();
        messages
    }

    /// Classifies an order; only fresh ones are carried out.
    pub(super) fn on_order(&mut self, number: u64) -> Receipt {
        self.orders.accept(number)
    }

    /// Drops the reports acknowledged up to this number; returns false if the number is invalid.
    pub(super) fn on_received(&mut self, through: u64) -> bool {
        self.reports.acknowledge(through).is_ok()
    }

    /// Returns the acknowledgement of orders that is due, if any.
    pub(super) fn take_acknowledgement(&mut self) -> Option<FromWorker> {
        let received = self.orders.received();
        if received <= self.acknowledged {
            return None;
        }
        self.acknowledged = received;
        Some(FromWorker::Received { through: received })
    }

    /// Returns a heartbeat with the attempts' progress and the state of memory.
    pub(super) fn take_heartbeat(&mut self) -> FromWorker {
        let progress = std::mem::take(&mut self.progress).into_values().collect();
        FromWorker::Heartbeat {
            progress,
            memory: self.memory.clone(),
        }
    }
}

/// The effect of a message from the coordinator.
#[derive(Debug)]
pub(super) enum Followed {
    Nothing,
    /// Deliver to the worker.
    Order(ToWorker),
    /// Drop the connection, for this reason.
    Broken(&'static str),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use napreduce_engine::{JobId, Report, TaskId, TaskKind};
    use napreduce_local::clock::now;
    use napreduce_protocol::SuspendedMemory;

    use super::*;

    fn attempt(index: u32) -> AttemptId {
        AttemptId {
            task: TaskId {
                job: JobId(1),
                kind: TaskKind::Map,
                index,
            },
            number: 1,
        }
    }

    fn started(index: u32) -> WorkerNews {
        let report = WorkerReport::Happened {
            attempt: attempt(index),
            report: Report::Started,
        };
        WorkerNews::Report {
            at: now().into_std(),
            report,
        }
    }

    fn numbers(messages: &[FromWorker]) -> Vec<u64> {
        let number = |message: &FromWorker| match message {
            FromWorker::Reported { number, .. } => *number,
            other => panic!("{other:?} is no report"),
        };
        messages.iter().map(number).collect()
    }

    #[test]
    fn unacknowledged_reports_are_sent_again() {
        let mut exchange = Exchange::default();
        assert_eq!(exchange.on_welcome(7, WorkerId(1), 0), Welcomed::Fresh);
        (0..3).for_each(|index| exchange.on_news(started(index)));
        assert_eq!(numbers(&exchange.take_unsent(now().into_std())), [1, 2, 3]);
        assert!(exchange.take_unsent(now().into_std()).is_empty());
        exchange.on_news(started(3));
        assert_eq!(exchange.on_welcome(7, WorkerId(1), 2), Welcomed::Back);
        assert_eq!(numbers(&exchange.take_unsent(now().into_std())), [3, 4]);
        assert!(exchange.on_received(4));
        assert!(!exchange.on_received(5));
    }

    #[test]
    fn age_of_a_report_is_that_of_each_sending() {
        let mut exchange = Exchange::default();
        exchange.on_welcome(7, WorkerId(1), 0);
        let at = now().into_std();
        let report = WorkerReport::Happened {
            attempt: attempt(0),
            report: Report::Started,
        };
        exchange.on_news(WorkerNews::Report { at, report });
        for seconds in [1, 90] {
            let sent = exchange.take_unsent(at + Duration::from_secs(seconds));
            let [FromWorker::Reported { age_micros, .. }] = sent[..] else {
                panic!("{sent:?}")
            };
            assert_eq!(age_micros, seconds * 1_000_000);
            // The connection breaks before the coordinator has it.
            assert_eq!(exchange.on_welcome(7, WorkerId(1), 0), Welcomed::Back);
        }
    }

    #[test]
    fn new_worker_number_resets_exchange() {
        for (journal, worker) in [(7, WorkerId(2)), (8, WorkerId(1))] {
            let mut exchange = Exchange::default();
            exchange.on_welcome(7, WorkerId(1), 0);
            exchange.on_news(started(0));
            assert_eq!(exchange.on_order(1), Receipt::Fresh);
            assert_eq!(exchange.on_welcome(journal, worker, 0), Welcomed::Fresh);
            assert!(exchange.take_unsent(now().into_std()).is_empty());
            assert_eq!(
                (exchange.number(), exchange.received()),
                (Some((journal, worker)), 0)
            );
        }
    }

    #[test]
    fn forgetful_coordinator_gets_new_worker() {
        for received in [0, 9] {
            let mut exchange = Exchange::default();
            exchange.on_welcome(7, WorkerId(1), 0);
            exchange.on_news(started(0));
            assert!(exchange.on_received(1));
            assert_eq!(
                exchange.on_welcome(7, WorkerId(1), received),
                Welcomed::Forgotten
            );
            assert_eq!(exchange.number(), None);
        }
    }

    #[test]
    fn orders_are_acknowledged_once() {
        let mut exchange = Exchange::default();
        exchange.on_welcome(7, WorkerId(1), 0);
        assert_eq!(exchange.on_order(1), Receipt::Fresh);
        assert_eq!(exchange.on_order(1), Receipt::Duplicate);
        assert_eq!(exchange.on_order(3), Receipt::Gap);
        assert_eq!(
            exchange.take_acknowledgement(),
            Some(FromWorker::Received { through: 1 })
        );
        assert_eq!(exchange.take_acknowledgement(), None);
    }

    #[test]
    fn heartbeat_carries_latest_progress_of_running_attempts() {
        let mut exchange = Exchange::default();
        let progress = |index, bytes_done| AttemptProgress {
            attempt: attempt(index),
            bytes_done,
            bytes_total: 9,
        };
        exchange.on_news(WorkerNews::Progress(vec![progress(0, 1), progress(1, 1)]));
        exchange.on_news(WorkerNews::Progress(vec![progress(1, 2)]));
        exchange.on_news(started(0));
        let beat = |progress| FromWorker::Heartbeat {
            progress,
            memory: WorkerMemory::default(),
        };
        assert_eq!(exchange.take_heartbeat(), beat(vec![progress(1, 2)]));
        assert_eq!(exchange.take_heartbeat(), beat(Vec::new()));
    }

    #[test]
    fn each_heartbeat_carries_memory_state() {
        let mut exchange = Exchange::default();
        let holds = |resident_bytes| {
            let held = SuspendedMemory {
                attempt: attempt(1),
                resident_bytes,
                swapped_bytes: 1,
            };
            WorkerMemory {
                suspended: vec![held],
                free_bytes: 7,
                ..WorkerMemory::default()
            }
        };
        let beat = |memory| FromWorker::Heartbeat {
            progress: Vec::new(),
            memory,
        };
        exchange.on_news(WorkerNews::Memory(holds(9)));
        assert_eq!(exchange.take_heartbeat(), beat(holds(9)));
        assert_eq!(exchange.take_heartbeat(), beat(holds(9)));
        exchange.on_news(WorkerNews::Memory(holds(2)));
        assert_eq!(exchange.take_heartbeat(), beat(holds(2)));
        // It is only sent on changes, possibly long after another coordinator has started.
        assert_eq!(exchange.on_welcome(7, WorkerId(9), 0), Welcomed::Fresh);
        assert_eq!(exchange.take_heartbeat(), beat(holds(2)));
    }
}
