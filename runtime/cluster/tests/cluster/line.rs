//! A connection to the worker, from the coordinator's side. It numbers orders and waits for reports; the test
//! decides what to send.

use std::time::Duration;

use napreduce_cluster::transport::Connection;
use napreduce_engine::{AttemptId, FailureClass, MapOutput, Order, Report, Start, WorkerId};
use napreduce_protocol::{
    FromWorker, Hello, JobDescription, LaunchWork, OutputEntry, PreemptionAccount, ToWorker,
    WorkerReport,
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
    /// Reads the hello of a worker that has connected.
    pub async fn greet(mut connection: Connection) -> Line {
        match soon("hello", connection.receive()).await.unwrap().unwrap() {
            FromWorker::Hello(hello) => Line {
                hello: *hello,
                connection,
                ordered: 0,
                silent: false,
            },
            other => panic!("{other:?} before hello"),
        }
    }

    pub async fn send(&mut self, message: ToWorker) {
        self.connection.send(&message).await.unwrap();
    }

    /// Accepts the worker under an ID; reports up to `received` are acknowledged.
    pub async fn welcome(&mut self, worker: u32, received: u64) {
        self.ordered = self.hello.received;
        let worker = WorkerId(worker);
        // This test sends no heartbeats while it reads a program, which takes a moment.
        let heartbeat_millis = 20;
        let silence_millis = 5_000;
        let welcome = ToWorker::Welcome {
            worker,
            journal: JOURNAL,
            received,
            heartbeat_millis,
            silence_millis,
        };
        self.send(welcome).await;
    }

    /// Sends the next numbered message.
    pub async fn tell(&mut self, message: impl FnOnce(u64) -> ToWorker) {
        self.ordered += 1;
        self.send(message(self.ordered)).await;
    }

    /// Sends an order that needs no other message before it.
    pub async fn order(&mut self, order: Order) {
        self.tell(|number| ToWorker::Ordered {
            number,
            order,
            work: None,
        })
        .await;
    }

    pub async fn define(&mut self, job: JobDescription) {
        self.tell(|number| ToWorker::Define {
            number,
            description: Box::new(job),
        })
        .await;
    }

    pub async fn launch(&mut self, attempt: AttemptId, work: LaunchWork) {
        self.launch_from(attempt, Start::Fresh, work).await;
    }

    pub async fn launch_from(&mut self, attempt: AttemptId, from: Start, work: LaunchWork) {
        let order = Order::Launch {
            attempt,
            from,
            inputs: Vec::new(),
        };
        self.tell(|number| ToWorker::Ordered {
            number,
            order,
            work: Some(work),
        })
        .await;
    }

    /// Launches a reduce over the outputs of `maps`, which worker 1 (this worker) holds.
    pub async fn launch_reduce(&mut self, attempt: AttemptId, maps: &[AttemptId]) {
        self.outputs(maps).await;
        self.launch(attempt, LaunchWork::Reduce { maps: 1 }).await;
    }

    /// Announces one more map output to a reduce; worker 1 (this worker) holds it.
    pub async fn more_inputs(&mut self, attempt: AttemptId, map: AttemptId) {
        self.outputs(&[map]).await;
        let attempts = vec![attempt];
        let maps = vec![map.task.index];
        self.tell(|number| ToWorker::Named {
            number,
            attempts,
            maps,
        })
        .await;
    }

    /// Appends these outputs to the log of map outputs; worker 1 (this worker) holds them.
    async fn outputs(&mut self, maps: &[AttemptId]) {
        let Some(job) = maps.first().map(|map| map.task.job) else {
            return;
        };
        let ready = |map: &AttemptId| {
            OutputEntry::Ready(MapOutput {
                attempt: *map,
                worker: WorkerId(1),
            })
        };
        let entries = maps.iter().map(ready).collect();
        let peers = Vec::new();
        self.tell(|number| ToWorker::Outputs {
            number,
            job,
            entries,
            peers,
        })
        .await;
    }

    /// Returns the next message, or `None` when the worker has disconnected. Answers heartbeats.
    pub async fn next(&mut self) -> Option<FromWorker> {
        let message = soon("a message", self.connection.receive())
            .await
            .ok()
            .flatten()?;
        if matches!(message, FromWorker::Heartbeat { .. }) && !self.silent {
            // Fails if the worker disconnects at the same time.
            let _ = self
                .connection
                .send(&ToWorker::Received { through: 0 })
                .await;
        }
        Some(message)
    }

    /// Returns the next report.
    pub async fn report(&mut self) -> (u64, WorkerReport) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Reported { number, report, .. } => return (number, report),
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                FromWorker::Hello(_) => panic!("a second hello"),
            }
        }
    }

    /// Checks that no report arrives for this long.
    pub async fn hear_nothing_for(&mut self, time: Duration) {
        if let Ok(report) = timeout(time, self.report()).await {
            panic!("{report:?} although nothing was to happen");
        }
    }

    /// Checks that the next report states this event.
    pub async fn assert_happened(&mut self, expected: u64, attempt: AttemptId, report: Report) {
        let happened = WorkerReport::Happened { attempt, report };
        assert_eq!(self.report().await, (expected, happened));
    }

    /// Checks that the next report states that an attempt is done.
    pub async fn assert_finished(&mut self, expected: u64, attempt: AttemptId) {
        match self.report().await {
            (number, WorkerReport::Finished { attempt: found, .. }) => {
                assert_eq!((number, found), (expected, attempt));
            }
            other => panic!("{other:?} instead of the end of {attempt}"),
        }
    }

    /// Returns the next report, which must be the cost of a preemption or of a resume.
    pub async fn account(&mut self, attempt: AttemptId) -> PreemptionAccount {
        match self.report().await.1 {
            WorkerReport::Preempted {
                attempt: found,
                account,
            } if found == attempt => account,
            other => panic!("{other:?} instead of an account of {attempt}"),
        }
    }

    /// Returns the next report, a cost, and checks that the one after it states this event.
    pub async fn preempted(&mut self, attempt: AttemptId, report: Report) -> PreemptionAccount {
        let account = self.account(attempt).await;
        assert_eq!(
            self.report().await.1,
            WorkerReport::Happened { attempt, report }
        );
        account
    }

    /// Returns the reason of the next report, which must refuse a suspend.
    pub async fn suspend_refusal(&mut self, attempt: AttemptId) -> String {
        match self.report().await.1 {
            WorkerReport::Happened {
                attempt: found,
                report: Report::SuspendRefused { reason },
            } if found == attempt => reason,
            other => panic!("{other:?} instead of a refusal"),
        }
    }

    /// Checks that the next report states that an attempt is done.
    pub async fn assert_ends_well(&mut self, attempt: AttemptId) {
        match self.report().await.1 {
            WorkerReport::Finished { attempt: found, .. } if found == attempt => {}
            other => panic!("{other:?} instead of the end of {attempt}"),
        }
    }

    /// Returns class and reason of the next report of a failure.
    pub async fn failure(&mut self) -> (FailureClass, String) {
        loop {
            match self.report().await.1 {
                WorkerReport::Failed { error, .. } => return (error.class, error.message),
                WorkerReport::Happened {
                    report: Report::Started,
                    ..
                } => {}
                other => panic!("{other:?} instead of a failure"),
            }
        }
    }

    /// Waits until the worker has acknowledged orders up to this number.
    pub async fn assert_received(&mut self, expected: u64) {
        loop {
            match self.next().await.expect("the worker hung up") {
                FromWorker::Received { through } if through == expected => return,
                FromWorker::Received { .. } | FromWorker::Heartbeat { .. } => {}
                other => panic!("{other:?} instead of an acknowledgement"),
            }
        }
    }

    /// Waits until the worker disconnects.
    pub async fn assert_closed(mut self) {
        while self.next().await.is_some() {}
    }
}
