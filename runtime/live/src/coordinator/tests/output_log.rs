//! Map outputs on their way to reduces.
//!
//! Owns that a worker is told of each once, whatever number of reduces reads it. Does not own how they are
//! fetched (`shuffle`).

use napreduce_core::{AttemptId, FaultPlace, MapOutput, Order, Report, TaskKind};
use napreduce_protocol::{OutputEntry, ToWorker};

use super::{Scene, Worker, attempt};

/// What a worker was told that concerns map outputs.
#[derive(Debug, PartialEq)]
enum Told {
    Outputs(Vec<OutputEntry>),
    Launch(AttemptId),
    Named(Vec<AttemptId>, Vec<u32>),
}

async fn told(worker: &mut Worker, count: usize) -> Vec<Told> {
    let mut told = Vec::new();
    while told.len() < count {
        told.push(match worker.numbered().await.1 {
            ToWorker::Outputs { entries, .. } => Told::Outputs(entries),
            ToWorker::Ordered { order: Order::Launch { attempt, inputs, .. }, .. } => {
                assert_eq!(inputs, [], "they are in the log");
                Told::Launch(attempt)
            }
            ToWorker::Named { attempts, maps, .. } => Told::Named(attempts, maps),
            ToWorker::Define { .. } => continue,
            other => panic!("{other:?}"),
        });
    }
    told
}

fn map(index: u32, number: u32) -> AttemptId {
    attempt(1, TaskKind::Map, index, number)
}

fn reduce(index: u32) -> AttemptId {
    attempt(1, TaskKind::Reduce, index, 1)
}

fn ready(worker: &Worker, map: AttemptId) -> Told {
    Told::Outputs(vec![OutputEntry::Ready(MapOutput { attempt: map, worker: worker.id })])
}

#[tokio::test]
async fn reduces_of_one_worker_share_what_it_was_told() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 3).await;
    coordinator.submit(scene.submission(1, 2, 3)).await;
    assert_eq!(told(&mut worker, 2).await, [Told::Launch(map(0, 1)), Told::Launch(map(1, 1))]);
    worker.do_map(map(1, 1));
    worker.do_map(map(0, 1));
    let both = [0, 1].map(|index| MapOutput { attempt: map(index, 1), worker: worker.id });
    let mut expected = vec![Told::Outputs(both.map(OutputEntry::Ready).to_vec())];
    expected.extend((0..3).map(|index| Told::Launch(reduce(index))));
    assert_eq!(told(&mut worker, 4).await, expected);
    coordinator.stop().await;
}

#[tokio::test]
async fn reduces_that_wait_are_named_one_more_output_together_also_after_a_restart() {
    let mut scene = Scene::new();
    let coordinator = scene.start();
    let mut worker = Worker::join(&coordinator, "w", 2).await;
    let mut submission = scene.submission(1, 3, 2);
    submission.plan.slowstart_permille = 100;
    coordinator.submit(submission).await;
    assert_eq!(told(&mut worker, 2).await, [Told::Launch(map(0, 1)), Told::Launch(map(1, 1))]);
    worker.do_map(map(0, 1));
    let first = [
        Told::Launch(map(2, 1)),
        ready(&worker, map(0, 1)),
        Told::Launch(reduce(0)),
        Told::Launch(reduce(1)),
    ];
    assert_eq!(told(&mut worker, 4).await, first);
    worker.do_map(map(1, 1));
    let waiting = || vec![reduce(0), reduce(1)];
    assert_eq!(told(&mut worker, 2).await, [ready(&worker, map(1, 1)), Told::Named(waiting(), vec![1])]);
    coordinator.kill().await;
    // From the journal once, and once from a snapshot.
    for bytes_max in [scene.configuration.journal_bytes_max, 1] {
        scene.configuration.journal_bytes_max = bytes_max;
        let coordinator = scene.start();
        coordinator.stop().await;
    }
    let coordinator = scene.start();
    let mut worker = worker.reconnect(&coordinator).await;
    worker.do_map(map(2, 1));
    assert_eq!(told(&mut worker, 2).await, [ready(&worker, map(2, 1)), Told::Named(waiting(), vec![2])]);
    // One of them cannot read an output, which the worker that holds it has lost.
    worker.started(reduce(0));
    let (lost, reason) = (vec![map(1, 1)], "gone".to_owned());
    let place = FaultPlace::Peer;
    worker.happened(reduce(0), Report::InputsLost { outputs: lost, place, reason });
    let again = told(&mut worker, 1).await;
    assert_eq!(again, [Told::Launch(map(1, 2))]);
    worker.do_map(map(1, 2));
    assert_eq!(told(&mut worker, 2).await, [ready(&worker, map(1, 2)), Told::Named(waiting(), vec![1])]);
    coordinator.stop().await;
}
