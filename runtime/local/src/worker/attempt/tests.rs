//! Tests of attempts on a scripted machine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use napreduce_engine::{JobId, TaskId, TaskKind};
use napreduce_protocol::{FromTask, MapTask, PROTOCOL_VERSION, Preempted, Split};
use tokio::sync::mpsc::unbounded_channel;

use super::super::configuration::SuspendRules;
use super::super::scripted::{Request, ScriptedMachine, ScriptedTask};
use super::*;
use crate::process::{ChildEvent, SpareMemory};
use crate::world::World;

const ATTEMPT: AttemptId = AttemptId {
    task: TaskId {
        job: JobId(1),
        kind: TaskKind::Map,
        index: 0,
    },
    number: 1,
};

/// An attempt whose task process has just been started.
struct RunningAttempt {
    task: ScriptedTask,
    orders: UnboundedSender<AttemptOrder>,
    news: UnboundedReceiver<WorkerNews>,
    events: UnboundedReceiver<(AttemptId, AttemptEvent)>,
}

impl RunningAttempt {
    async fn start(machine: ScriptedMachine, task: ScriptedTask) -> RunningAttempt {
        let (orders, inbox) = unbounded_channel();
        let (reports, news) = unbounded_channel();
        let (sender, events) = unbounded_channel();
        tokio::spawn(supervision(machine, inbox, reports, sender).run());
        let mut attempt = RunningAttempt {
            task,
            orders,
            news,
            events,
        };
        assert!(matches!(attempt.task.receive().await, ToTask::Start(_)));
        attempt.task.send(&FromTask::Hello {
            version: PROTOCOL_VERSION,
        });
        assert_eq!(attempt.report().await, Report::Started);
        attempt
    }

    fn order(&self, order: Order) {
        self.orders
            .send(AttemptOrder {
                order,
                inputs: Vec::new(),
            })
            .expect("the attempt runs");
    }

    async fn event(&mut self) -> AttemptEvent {
        self.events.recv().await.expect("an event").1
    }

    async fn worker_report(&mut self) -> WorkerReport {
        match self.news.recv().await.expect("a report") {
            WorkerNews::Report { report, .. } => report,
            news => panic!("{news:?}"),
        }
    }

    async fn report(&mut self) -> Report {
        match self.worker_report().await {
            WorkerReport::Happened { report, .. } => report,
            other => panic!("{other:?}"),
        }
    }

    async fn account(&mut self) -> Preempted {
        match self.worker_report().await {
            WorkerReport::Preempted { account, .. } => account.what,
            other => panic!("{other:?}"),
        }
    }

    async fn request(&mut self) -> Request {
        self.task.requests.recv().await.expect("a request")
    }
}

fn supervision(
    machine: ScriptedMachine,
    orders: UnboundedReceiver<AttemptOrder>,
    news: UnboundedSender<WorkerNews>,
    events: UnboundedSender<(AttemptId, AttemptEvent)>,
) -> Supervision {
    let processes: Arc<dyn Processes> = Arc::new(machine);
    Supervision {
        tasks: World::real().tasks,
        description: description(),
        launch: Launch::default(),
        limits: Limits {
            silence: Duration::from_secs(3_600),
            standstill: None,
        },
        bounds: None,
        memory: None,
        logs: None,
        host: None,
        admission: Arc::new(Admission::new(
            SuspendRules::default(),
            Arc::clone(&processes),
        )),
        processes,
        marks: Vec::new(),
        orders,
        news,
        events,
    }
}

/// A map without files.
fn description() -> TaskDescription {
    let missing = PathBuf::from("/nonexistent/napreduce");
    let split = Split {
        path: missing.clone(),
        offset: 0,
        length: 1,
        file_length: 1,
        version: None,
    };
    let map = MapTask {
        split: split.into(),
        partitions: 1,
        cuts: Vec::new(),
        compress: false,
        output: missing.clone(),
        memory_file: None,
        scratch: missing.clone(),
        checkpoint: missing,
        restore: None,
        durable: false,
    };
    TaskDescription {
        attempt: ATTEMPT,
        definition: String::from("count"),
        parameters: Vec::new(),
        memory: 1 << 20,
        work: Work::Map(map),
        promote_to: None,
        stored_checkpoints: None,
        sync_part: false,
    }
}

#[tokio::test]
async fn suspend_is_reported_after_confirmed_stop() {
    let (machine, task) = ScriptedMachine::new();
    let mut attempt = RunningAttempt::start(machine, task).await;
    attempt.order(Order::Suspend { attempt: ATTEMPT });
    assert_eq!(
        attempt.task.receive().await,
        ToTask::Suspend {
            epoch: 1,
            page_out: false
        }
    );
    attempt.task.send(&FromTask::Ready {
        epoch: 1,
        saves: true,
    });
    assert_eq!(attempt.request().await, Request::Suspend);
    assert!(
        attempt.news.try_recv().is_err(),
        "the stop is not confirmed"
    );
    attempt
        .task
        .changes
        .send(ChildEvent::Stopped)
        .expect("the worker waits");
    assert_eq!(attempt.account().await, Preempted::Suspended);
    assert_eq!(attempt.report().await, Report::Suspended);
    attempt.order(Order::Resume { attempt: ATTEMPT });
    assert_eq!(attempt.request().await, Request::Resume);
    assert!(matches!(
        attempt.task.receive().await,
        ToTask::Resume { epoch: 1, .. }
    ));
    attempt.task.send(&FromTask::Resumed { epoch: 1 });
    assert_eq!(attempt.account().await, Preempted::Resumed);
    assert_eq!(attempt.report().await, Report::Resumed);
}

#[tokio::test]
async fn attempt_with_a_running_descendant_continues_and_refuses_the_suspend() {
    let (machine, task) = ScriptedMachine::new();
    let mut attempt = RunningAttempt::start(machine, task).await;
    attempt.order(Order::Suspend { attempt: ATTEMPT });
    assert_eq!(
        attempt.task.receive().await,
        ToTask::Suspend {
            epoch: 1,
            page_out: false
        }
    );
    attempt.task.send(&FromTask::Ready {
        epoch: 1,
        saves: true,
    });
    assert_eq!(attempt.request().await, Request::Suspend);
    let reason = "process 7 (sleep) in state D did not stop within 2s".to_owned();
    let incomplete = ChildEvent::StillRuns {
        descendant: reason.clone(),
    };
    attempt
        .task
        .changes
        .send(incomplete)
        .expect("the worker waits");
    assert_eq!(attempt.request().await, Request::Resume);
    assert!(matches!(
        attempt.task.receive().await,
        ToTask::Resume { epoch: 1, .. }
    ));
    assert!(attempt.news.try_recv().is_err(), "it does not run yet");
    attempt.task.send(&FromTask::Resumed { epoch: 1 });
    assert_eq!(attempt.report().await, Report::SuspendRefused { reason });
    attempt.order(Order::Suspend { attempt: ATTEMPT });
    assert_eq!(
        attempt.task.receive().await,
        ToTask::Suspend {
            epoch: 2,
            page_out: false
        }
    );
}

#[tokio::test]
async fn suspended_attempt_with_a_running_descendant_is_stopped_again() {
    let (machine, task) = ScriptedMachine::new();
    let mut attempt = RunningAttempt::start(machine, task).await;
    attempt.order(Order::Suspend { attempt: ATTEMPT });
    attempt.task.receive().await;
    attempt.task.send(&FromTask::Ready {
        epoch: 1,
        saves: true,
    });
    assert_eq!(attempt.request().await, Request::Suspend);
    attempt
        .task
        .changes
        .send(ChildEvent::Stopped)
        .expect("the worker waits");
    assert_eq!(attempt.account().await, Preempted::Suspended);
    assert_eq!(attempt.report().await, Report::Suspended);
    attempt.task.stands_still.store(false, Ordering::Relaxed);
    assert_eq!(attempt.request().await, Request::Suspend);
    attempt.task.stands_still.store(true, Ordering::Relaxed);
    // The first one reaches the abandoned wait for a continuation.
    for _ in 0..2 {
        attempt
            .task
            .changes
            .send(ChildEvent::Stopped)
            .expect("the worker waits");
    }
    attempt.order(Order::Resume { attempt: ATTEMPT });
    assert_eq!(attempt.request().await, Request::Resume);
}

#[tokio::test]
async fn suspend_beyond_memory_is_refused_without_signal() {
    let (mut machine, task) = ScriptedMachine::new();
    machine.memory.resident = 600 << 20;
    machine.spare = SpareMemory {
        available: 500 << 20,
        swap_free: 0,
    };
    let mut attempt = RunningAttempt::start(machine, task).await;
    attempt.order(Order::Suspend { attempt: ATTEMPT });
    let reason = "suspended attempts would hold 600 MiB (limit 500 MiB)".to_owned();
    assert_eq!(attempt.report().await, Report::SuspendRefused { reason });
    attempt.order(Order::Kill { attempt: ATTEMPT });
    assert_eq!(attempt.request().await, Request::Kill, "the first signal");
}

#[tokio::test]
async fn killed_attempt_is_reaped_and_swept_before_its_end() {
    let (machine, task) = ScriptedMachine::new();
    let mut attempt = RunningAttempt::start(machine, task).await;
    attempt.order(Order::Kill { attempt: ATTEMPT });
    assert_eq!(attempt.account().await, Preempted::Killed);
    let event = attempt.event().await;
    assert!(
        matches!(
            event,
            AttemptEvent::Ended {
                end: AttemptEnd::Killed,
                ..
            }
        ),
        "{event:?}"
    );
    let requests = [(); 3].map(|()| attempt.task.requests.try_recv().expect("before the end"));
    assert_eq!(requests, [Request::Kill, Request::Reap, Request::Sweep]);
}

#[tokio::test]
async fn attempt_without_process_fails_with_start_error() {
    let (machine, _task) = ScriptedMachine::new();
    drop(
        machine
            .start(Launch::default())
            .await
            .expect("the only process"),
    );
    let (_orders, inbox) = unbounded_channel();
    let (reports, _news) = unbounded_channel();
    let (sender, mut events) = unbounded_channel();
    let supervision = supervision(machine, inbox, reports, sender);
    supervision.run().await;
    match events.recv().await {
        Some((
            _,
            AttemptEvent::Ended {
                end: AttemptEnd::Failed(error),
                ..
            },
        )) => {
            assert_eq!(
                error.message,
                "cannot start a task process: no process in the script"
            );
        }
        event => panic!("{event:?}"),
    }
}
