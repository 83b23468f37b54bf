//! Clients that violate the protocol or fall silent are disconnected, with one log line each.

use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::world::World;
use napreduce_protocol::requests::{ListWorkers, OfferBlob};
use napreduce_protocol::{Blob, Digest, FromCoordinator, Outgoing, Payload, ToCoordinator};

use super::scene::{Coordinator, DEADLINE, Job, Scene};
use crate::coordinator::LoopRequest;
use crate::transport::{Connection, Role, connect};

fn on_runtime<T>(act: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(act)
}

async fn visit(scene: &Scene, coordinator: &Coordinator) -> Connection {
    let secret = scene.directory().secret().expect("a secret");
    let address = coordinator.address.to_string();
    connect(&World::real(), &address, Role::Client, &secret, DEADLINE)
        .await
        .expect("a connection")
}

/// Waits until the connection is closed, ignoring answers.
async fn is_closed(connection: &mut Connection) {
    let closed = async { while let Ok(Some(_)) = connection.receive::<FromCoordinator>().await {} };
    tokio::time::timeout(DEADLINE, closed)
        .await
        .expect("it is closed");
}

#[track_caller]
fn check_disconnected<M: Outgoing>(messages: &[M], says: &str) {
    let scene = Scene::new();
    let coordinator = scene.coordinator(drop);
    on_runtime(async {
        let mut connection = visit(&scene, &coordinator).await;
        for message in messages {
            connection.send(message).await.expect("it is still there");
        }
        is_closed(&mut connection).await;
    });
    let line = coordinator
        .warnings
        .recv_timeout(DEADLINE)
        .expect("a line about it");
    assert!(
        line.starts_with("disconnected client 127.0.0.1:") && line.contains(says),
        "{line}"
    );
    scene.client();
}

fn offer(bytes: u64) -> ToCoordinator {
    OfferBlob {
        blob: Blob {
            digest: Digest([1; 32]),
            bytes,
        },
    }
    .into()
}

fn chunk(length: usize) -> ToCoordinator {
    ToCoordinator::Chunk(Payload(vec![0; length]))
}

#[test]
fn undecodable_message_disconnects_client() {
    check_disconnected(&[u64::MAX], "cannot decode a frame");
}

#[test]
fn chunk_without_offer_disconnects_client() {
    check_disconnected(
        &[chunk(1)],
        "protocol error: expected a request, got a piece of a blob",
    );
}

#[test]
fn request_during_upload_disconnects_client() {
    let messages = [offer(10), chunk(5), ListWorkers.into()];
    check_disconnected(
        &messages,
        "protocol error: expected a piece of a blob, got a request",
    );
}

#[test]
fn chunk_of_wrong_length_disconnects_client() {
    check_disconnected(&[offer(10), chunk(11)], "invalid blob piece of 11 bytes");
    check_disconnected(&[offer(10), chunk(0)], "invalid blob piece of 0 bytes");
    check_disconnected(
        &[offer(1 << 20), chunk((1 << 20) + 1)],
        "invalid blob piece of 1048577 bytes",
    );
}

#[test]
fn stalled_upload_is_disconnected_and_kept_for_next() {
    let mut scene = Scene::new();
    scene.limits.stalled = Duration::from_millis(50);
    let coordinator = scene.coordinator(drop);
    on_runtime(async {
        let mut connection = visit(&scene, &coordinator).await;
        connection.send(&offer(10)).await.expect("it is there");
        connection.send(&chunk(5)).await.expect("it is there");
        is_closed(&mut connection).await;
    });
    let line = coordinator
        .warnings
        .recv_timeout(DEADLINE)
        .expect("a line about it");
    assert!(
        line.ends_with("the client sent nothing for 50ms during an upload"),
        "{line}"
    );
    drop(coordinator);
    let mut blobs = std::fs::read_dir(scene.blobs()).expect("a directory");
    let unfinished = blobs.next().expect("a file").expect("an entry");
    assert_eq!(unfinished.metadata().expect("a file").len(), 5);
    assert!(unfinished.path().to_string_lossy().ends_with(".unfinished"));
    assert!(blobs.next().is_none());
}

#[test]
fn idle_client_is_disconnected_without_warning() {
    let mut scene = Scene::new();
    scene.limits.idle = Duration::from_millis(50);
    let coordinator = scene.coordinator(drop);
    on_runtime(async { is_closed(&mut visit(&scene, &coordinator).await).await });
    assert!(coordinator.warnings.try_recv().is_err());
}

#[test]
fn following_client_receives_heartbeats_and_may_not_send() {
    let mut scene = Scene::new();
    scene.limits.sign_of_life = Duration::from_millis(50);
    let job = Job::new();
    let coordinator = scene.coordinator(move |request| {
        if let LoopRequest::Follow { reply, .. } = request {
            reply.send(Ok(job.following()));
        }
    });
    on_runtime(async {
        let mut connection = visit(&scene, &coordinator).await;
        connection
            .send(&ToCoordinator::Follow { job: JobId(1) })
            .await
            .expect("it is there");
        for _ in 0..3 {
            let received = tokio::time::timeout(DEADLINE, connection.receive())
                .await
                .expect("in time");
            assert!(
                matches!(received, Ok(Some(FromCoordinator::Progress(_)))),
                "{received:?}"
            );
        }
        connection
            .send(&ToCoordinator::from(ListWorkers))
            .await
            .expect("it is there");
        is_closed(&mut connection).await;
    });
    let line = coordinator
        .warnings
        .recv_timeout(DEADLINE)
        .expect("a line about it");
    assert!(
        line.ends_with("protocol error: expected nothing while following a job, got a request"),
        "{line}"
    );
}
