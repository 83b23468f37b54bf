//! A connection to the worker, seen from the coordinator's side.
//!
//! Owns the numbers of orders, and reading what comes until the awaited comes. Does not own what is said: the
//! test does.

use std::time::Duration;

use napreduce_cluster::transport::Connection;
use napreduce_engine::{AttemptId, FailureClass, MapOutput, Order, Report, Start, WorkerId};
use napreduce_protocol::{
    FromWorker, Hello, JobDescription, LaunchWork, OutputEntry, PreemptionAccount, ToWorker, WorkerReport,
};
use tokio::time::timeout;

use super::script::{JOURNAL, soon};

/// A connection to the worker.
pub struct Line {
    pub hello: Hello,
    connection: Connection,
    /// The number of the last order.
    ordered: u64,
    /// Whether heartbeats are left unanswered.
    pub silent: bool,
}

impl Line {
    /// A worker has connected and says hello.
    pub async fn greet(mut connection: Connection) -> Line {
        match soon("hello", connection.receive()).await.unwrap().unwrap() {
            FromWorker::Hello(hello) => Line { hello: *hello, connection, ordered: 0, silent: false },
            other => panic!("{other:?} before hello"),
        }
    }

    pub async fn send(&mut self, message: ToWorker) {
        self.connection.send(&message).await.unwrap();
    }

    /// Lets it in under a number, with reports up to `received` kept.
    pub async fn welcome(&mut self, worker: u32, received: u64) {
        self.ordered = self.hello.received;
        let worker = WorkerId(worker);
        // Reading a program for a job takes this test a moment, in which it says nothing.
        let (heartbeat_millis, silence_millis) = (20, 5_000);
        let welcome =
            ToWorker::Welcome { worker, journal: JOURNAL, received, heartbeat_millis, silence_millis };
        self.send(welcome).await;
    }

    /// Sends the next numbered message.
    pub async fn tell(&mut self, message: impl FnOnce(u64) -> ToWorker) {
        self.ordered += 1;
        self.send(message(self.ordered)).await;
    }

    /// Sends an order that takes nothing else to carry it out.
    pub async fn order(&mut self, order: Order) {
        self.tell(|number| ToWorker::Ordered { number, order, work: None }).await;
    }

    pub async fn define(&mut self, job: JobDescription) {
        self.tell(|number| ToWorker::Define { number, description: Box::new(job) }).await;
    }

    pub async fn launch(&mut self, attempt: AttemptId, work: LaunchWork) {
        self.launch_from(attempt, Start::Fresh, work).await;
    }

    pub async fn launch_from(&mut self, attempt: AttemptId, from: Start, work: LaunchWork) {
        let order = Order::Launch { attempt, from, inputs: Vec::new() };
        self.tell(|number| ToWorker::Ordered { number, order, work: Some(work) }).await;
    }

    /// A reduce over the output of `maps`, which this worker, number 1, holds.
    pub async fn launch_reduce(&mut self, attempt: AttemptId, maps: &[AttemptId]) {
        self.outputs(maps).await;
        self.launch(attempt, LaunchWork::Reduce { maps: 1 }).await;
    }

    /// One more map output for a reduce, which this worker, number 1, holds.
    pub async fn more_inputs(&mut self, attempt: AttemptId, map: AttemptId) {
        self.outputs(&[map]).await;
        let (attempts, maps) = (vec![attempt], vec![map.task.index]);
        self.tell(|number| ToWorker::Named { number, attempts, maps }).await;
    }

    /// The log of map outputs goes on by these, which this worker, number 1, holds.
    async fn outputs(&mut self, maps: &[AttemptId]) {
        let Some(job) = maps.first().map(|map| map.task.job) else { return };
        let ready = |map: &AttemptId| OutputEntry::Ready(MapOutput { attempt: *map, worker: WorkerId(1) });
        let (entries, peers) = (maps.iter().map(ready).collect(), Vec::new());
        self.tell(|number| ToWorker::Outputs { number, job, entries, peers }).await;
    }

    /// The next message; `None` when the worker has hung up. Heartbeats are answered.
    pub async fn next(&mut self) -> Option<FromWorker> {
        let message = soon("a message", self.connection.receive()).await.ok().flatten()?;
        if matches!(message, FromWorker::Heartbeat { .. }) && !self.silent {
            // It may hang up at the same time.
            let _ = self.connection.send(&ToWorker::Received { through: 0 }).await;
        }
        Some(message)
    }

    /// The next report.
    pub async fn report(&mut self) -> (u64, WorkerReport) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Reported { number, report } => return (number, report),
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                FromWorker::Hello(_) => panic!("a second hello"),
            }
        }
    }

    /// No report comes for so long.
    pub async fn hear_nothing_for(&mut self, time: Duration) {
        if let Ok(report) = timeout(time, self.report()).await {
            panic!("{report:?} although nothing was to happen");
        }
    }

    /// The next report is that this happened.
    pub async fn assert_happened(&mut self, expected: u64, attempt: AttemptId, report: Report) {
        let happened = WorkerReport::Happened { attempt, report };
        assert_eq!(self.report().await, (expected, happened));
    }

    /// The next report is that an attempt is done.
    pub async fn assert_finished(&mut self, expected: u64, attempt: AttemptId) {
        match self.report().await {
            (number, WorkerReport::Finished { attempt: found, .. }) => {
                assert_eq!((number, found), (expected, attempt));
            }
            other => panic!("{other:?} instead of the end of {attempt}"),
        }
    }

    /// The next report is the account of a preemption, or of the return from one.
    pub async fn account(&mut self, attempt: AttemptId) -> PreemptionAccount {
        match self.report().await.1 {
            WorkerReport::Preempted { attempt: found, account } if found == attempt => account,
            other => panic!("{other:?} instead of an account of {attempt}"),
        }
    }

    /// The next reports are an account, and that this happened.
    pub async fn preempted(&mut self, attempt: AttemptId, report: Report) -> PreemptionAccount {
        let account = self.account(attempt).await;
        assert_eq!(self.report().await.1, WorkerReport::Happened { attempt, report });
        account
    }

    /// The next report is that it is not suspended; why.
    pub async fn suspend_refusal(&mut self, attempt: AttemptId) -> String {
        match self.report().await.1 {
            WorkerReport::Happened { attempt: found, report: Report::SuspendRefused { reason } }
                if found == attempt =>
            {
                reason
            }
            other => panic!("{other:?} instead of a refusal"),
        }
    }

    /// The next report is that an attempt is done.
    pub async fn assert_ends_well(&mut self, attempt: AttemptId) {
        match self.report().await.1 {
            WorkerReport::Finished { attempt: found, .. } if found == attempt => {}
            other => panic!("{other:?} instead of the end of {attempt}"),
        }
    }

    /// The next report that is a failure; its class and reason.
    pub async fn failure(&mut self) -> (FailureClass, String) {
        loop {
            match self.report().await.1 {
                WorkerReport::Happened { report: Report::Failed { class, reason, .. }, .. } => {
                    return (class, reason);
                }
                WorkerReport::Happened { report: Report::Started, .. } => {}
                other => panic!("{other:?} instead of a failure"),
            }
        }
    }

    /// Waits until the worker has said that it received orders up to this number.
    pub async fn assert_received(&mut self, expected: u64) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Received { through } if through == expected => return,
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                other => panic!("{other:?} instead of an acknowledgement"),
            }
        }
    }

    /// Waits until the worker hangs up.
    pub async fn assert_closed(mut self) {
        while self.next().await.is_some() {}
    }
}
