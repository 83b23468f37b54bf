//! Workers that come, go, repeat themselves and fall silent.
//!
//! Owns who a connection belongs to and what is delivered. The engine's part is tested with it.

use std::time::{Duration, Instant};

use napreduce_core::{Order, Report, TaskKind, WorkerId};
use napreduce_protocol::{FromWorker, ToCoordinator, ToWorker, WorkerPhase, WorkerReport};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use super::{DEADLINE, Input, LastHeard, Scene, Worker, attempt};

#[tokio::test]
async fn a_report_that_is_repeated_counts_once() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 2, 1)).await;
    let first = worker.launched().await;
    worker.do_map(first);
    for number in 1..=2 {
        let report = WorkerReport::Happened { attempt: first, report: Report::Started };
        worker.say(FromWorker::Reported { number, report });
    }
    let second = worker.launched().await;
    assert_eq!(second, attempt(1, TaskKind::Map, 1, 1));
    worker.say(FromWorker::Heartbeat { progress: Vec::new() });
    loop {
        // Acknowledged up to the last fresh one, however often the earlier ones come.
        if let ToWorker::Received { through } = worker.next().await {
            assert_eq!(through, 2);
            break;
        }
    }
    coordinator.stop().await;
}

#[tokio::test]
async fn a_gap_ends_the_connection_and_the_worker_goes_on_from_what_is_kept() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 1)).await;
    let map = worker.launched().await;
    let done = WorkerReport::Happened { attempt: map, report: Report::Started };
    worker.say(FromWorker::Reported { number: 7, report: done });
    while worker.messages.recv().await.is_some() {}
    let id = worker.id;
    let mut worker = worker.reconnect(&coordinator).await;
    assert_eq!(worker.id, id, "it is the same worker");
    worker.do_map(map);
    assert_eq!(worker.launched().await, attempt(1, TaskKind::Reduce, 0, 1));
    coordinator.stop().await;
}

#[tokio::test]
async fn orders_that_were_on_their_way_come_again_with_their_numbers() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    coordinator.submit(scene.submission(1, 2, 0)).await;
    let (number, order) = worker.numbered().await;
    assert!(number == 1 && matches!(order, ToWorker::Define { .. }));
    let (_, lost) = worker.numbered().await;
    // It received the description only.
    worker.hello.received = 1;
    let mut worker = worker.reconnect(&coordinator).await;
    let (number, again) = worker.numbered().await;
    assert_eq!((number, again), (2, lost));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_later_start_takes_the_place_of_the_earlier_one() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut first = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = first.launched().await;
    first.started(map);
    let (mut hello, earlier) = (first.hello.clone(), first.id);
    (hello.incarnation, hello.before, hello.received) = (2, None, 0);
    // As when its process has died.
    first.disconnect();
    let mut second = Worker::connect(&coordinator, hello, 0).await;
    assert_ne!(second.id, earlier);
    assert_eq!(second.launched().await, attempt(1, TaskKind::Map, 0, 2));
    coordinator.stop().await;
}

#[tokio::test]
async fn a_second_worker_of_a_name_is_refused_while_the_first_is_alive() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let first = Worker::join(&coordinator, "w", 1).await;
    for (incarnation, directory) in [(2, "/nowhere"), (3, "/elsewhere")] {
        let mut hello = first.hello.clone();
        (hello.incarnation, hello.before, hello.received) = (incarnation, None, 0);
        hello.directory = directory.into();
        let (messages, mut answers) = unbounded_channel();
        let (connection, hello, heard) = (90 + incarnation, Box::new(hello), LastHeard::now());
        let connected = Input::Connected { connection, hello, messages, heard };
        coordinator.inputs.send(connected).expect("the coordinator runs");
        match timeout(DEADLINE, answers.recv()).await.expect("an answer in time") {
            Some(ToWorker::Refused { reason, name_taken: true }) => {
                assert!(reason.contains("worker_0001") && reason.contains("--name"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
    let list = coordinator.workers().await.expect("a list");
    assert_eq!(list.len(), 1, "no number was given away");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_silent_worker_is_lost_and_superseded_when_it_comes_back() {
    let mut scene = Scene::new();
    scene.configuration.liveness = Duration::from_millis(300);
    let coordinator = scene.start();
    let mut silent = Worker::join(&coordinator, "silent", 1).await;
    coordinator.submit(scene.submission(1, 1, 0)).await;
    let map = silent.launched().await;
    silent.started(map);
    // Its connection is dropped when it is lost.
    while silent.messages.recv().await.is_some() {}
    let back = silent.reconnect(&coordinator).await;
    assert_eq!(back.id, WorkerId(2), "under a new number");
    let mut back = back;
    assert_eq!(back.launched().await, attempt(1, TaskKind::Map, 0, 2));
    coordinator.stop().await;
}

/// What counts is when its bytes came, not when the loop gets to them.
#[tokio::test]
async fn a_worker_whose_messages_arrive_is_not_lost_though_the_loop_has_not_come_to_them() {
    let mut scene = Scene::new();
    scene.configuration.liveness = Duration::from_millis(300);
    let coordinator = scene.start();
    let heard = Worker::join(&coordinator, "heard", 1).await;
    heard.heard.move_on(DEADLINE);
    let waits = Worker::join(&coordinator, "waits", 1).await;
    let _waiting = waits.heard.free_room();
    waits.heard.move_back(DEADLINE);
    let mut silent = Worker::join(&coordinator, "silent", 1).await;
    silent.heard.move_back(DEADLINE);
    // Its connection is dropped when it is lost.
    while silent.messages.recv().await.is_some() {}
    let phases: Vec<_> =
        coordinator.workers().await.expect("a list").into_iter().map(|it| (it.name, it.state)).collect();
    let expected = [("heard", WorkerPhase::Up), ("waits", WorkerPhase::Up), ("silent", WorkerPhase::Lost)];
    assert_eq!(phases, expected.map(|(name, phase)| (name.to_owned(), phase)));
    coordinator.stop().await;
}

/// Reading the journal took longer than a worker may be silent.
#[tokio::test]
async fn nobody_is_lost_because_a_restart_took_long() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.kill().await;
    let coordinator = scene.start_changed(|coordinator| {
        let links = coordinator.state.links.values();
        links.for_each(|link| link.heard.move_back(2 * scene.configuration.liveness));
    });
    let id = worker.id;
    assert_eq!(worker.reconnect(&coordinator).await.id, id, "it is the same worker");
    coordinator.stop().await;
}

#[tokio::test]
async fn a_drained_worker_gets_nothing_new_and_leaves() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 1).await;
    coordinator.submit(scene.submission(1, 2, 0)).await;
    let map = worker.launched().await;
    worker.started(map);
    let (id, hand_back) = (worker.id, true);
    coordinator
        .done(ToCoordinator::Drain { worker: id, hand_back, reason: "a new disk".to_owned() })
        .await
        .expect("drained");
    assert_eq!(worker.order().await, Order::Kill { attempt: map });
    worker.happened(map, Report::Killed);
    assert!(matches!(worker.numbered().await.1, ToWorker::Leave { .. }));
    worker.disconnect();
    // Requests may overtake what workers say.
    let began = Instant::now();
    loop {
        let workers = coordinator.workers().await.expect("a list");
        if workers[0].state == WorkerPhase::Left {
            let why = "nothing of it was needed any more (drained: a new disk)";
            assert_eq!(workers[0].reason.as_deref(), Some(why));
            break;
        }
        assert!(began.elapsed() < DEADLINE, "the worker does not leave: {workers:?}");
        tokio::task::yield_now().await;
    }
    let gone = coordinator.done(ToCoordinator::Drain { worker: id, hand_back, reason: String::new() }).await;
    assert_eq!(gone.expect_err("gone").reason, "there is no worker_0001; see: nap worker list");
    coordinator.stop().await;
}

#[tokio::test]
async fn workers_that_are_gone_are_listed_with_when_and_why_over_restarts() {
    for journal_bytes_max in [1, 1 << 20] {
        let mut scene = Scene::new();
        scene.configuration.journal_bytes_max = journal_bytes_max;
        let coordinator = scene.start();
        let first = Worker::join(&coordinator, "w", 1).await;
        let mut hello = first.hello.clone();
        (hello.incarnation, hello.before, hello.received) = (2, None, 0);
        first.say(FromWorker::Received { through: 5 });
        let second = Worker::connect(&coordinator, hello, 0).await;
        let mut coordinator = coordinator;
        for restart in 0..2 {
            let listed = coordinator.workers().await.expect("a list");
            let [gone, there] = listed.as_slice() else { panic!("{restart}: {listed:?}") };
            assert_eq!((gone.worker, gone.state, gone.host.as_str()), (first.id, WorkerPhase::Lost, "host"));
            assert!(gone.gone_millis.is_some_and(|at| at > 1_600_000_000_000), "{gone:?}");
            assert!(gone.reason.as_deref().is_some_and(|why| !why.is_empty()), "{gone:?}");
            assert_eq!((there.worker, there.gone_millis, &there.reason), (second.id, None, &None));
            coordinator.kill().await;
            coordinator = scene.start();
        }
        coordinator.stop().await;
    }
}
