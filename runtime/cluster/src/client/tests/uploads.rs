//! Uploads over links that break, freeze or are cut: what has arrived is not sent again.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::world::World;
use napreduce_protocol::{FromCoordinator, ToCoordinator};

use super::scene::{Coordinator, Scene, patience, plan};
use crate::client::{ClusterClient, Patience, SubmitOptions};
use crate::coordinator::LoopRequest;

const PROGRAM_BYTES: usize = 900 << 10;
/// Bytes from the client after which the link fails: a few pieces of a blob.
const LINK_BYTES: u64 = 300 << 10;

/// How a link fails.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Each connection is closed.
    Cut,
    /// The first connection transfers nothing any more, and stays open.
    Freeze,
}

/// A relay between clients and a coordinator.
struct FaultyLink {
    address: SocketAddr,
    /// Bytes that clients have sent.
    sent: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
}

impl FaultyLink {
    /// Starts a relay, whose threads end with the test process.
    fn start(coordinator: SocketAddr, fault: Fault) -> FaultyLink {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let link = FaultyLink {
            address: listener.local_addr().expect("an address"),
            sent: Arc::default(),
            connections: Arc::default(),
        };
        let sent = Arc::clone(&link.sent);
        let connections = Arc::clone(&link.connections);
        std::thread::spawn(move || {
            // Frozen connections stay open until the end.
            let mut held = Vec::new();
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(coordinator) else {
                    return;
                };
                let is_first = connections.fetch_add(1, Ordering::Relaxed) == 0;
                let limit = if is_first || matches!(fault, Fault::Cut) {
                    LINK_BYTES
                } else {
                    u64::MAX
                };
                if matches!(fault, Fault::Freeze) {
                    held.push((clone(&client), clone(&server)));
                }
                let mut answers = clone(&server);
                let mut to_client = clone(&client);
                std::thread::spawn(move || {
                    // The coordinator closes a connection on which nothing arrives. Without its close, which may
                    // discard its last message, the client would wait for an answer.
                    let _ = std::io::copy(&mut answers, &mut to_client);
                    let _ = to_client.shutdown(Shutdown::Both);
                });
                let sent = Arc::clone(&sent);
                std::thread::spawn(move || {
                    relay(&client, &server, limit, &sent);
                    if matches!(fault, Fault::Cut) {
                        // Either may be closed already.
                        let _ = client.shutdown(Shutdown::Both);
                        let _ = server.shutdown(Shutdown::Both);
                    }
                });
            }
        });
        link
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a descriptor")
}

/// Forwards at most `limit` bytes.
fn relay(mut client: &TcpStream, mut server: &TcpStream, limit: u64, sent: &AtomicU64) {
    let mut left = limit;
    let mut bytes = [0; 16 << 10];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let Ok(count @ 1..) = client.read(&mut bytes[..wanted]) else {
            return;
        };
        if server.write_all(&bytes[..count]).is_err() {
            return;
        }
        sent.fetch_add(count as u64, Ordering::Relaxed);
        left -= count as u64;
    }
}

fn accepting_coordinator(scene: &Scene) -> Coordinator {
    scene.coordinator(|request| {
        if let LoopRequest::Message(ToCoordinator::Submission(_), reply) = request {
            reply.send(Ok(FromCoordinator::Submitted(JobId(1))));
        }
    })
}

/// Submits a program over a faulty link; returns the number of connections and of bytes sent.
fn submit_over(fault: Fault, patience: Patience) -> (u64, u64) {
    let mut scene = Scene::new();
    scene.limits.stalled = Duration::from_millis(200);
    let coordinator = accepting_coordinator(&scene);
    let link = FaultyLink::start(coordinator.address, fault);
    scene
        .directory()
        .publish_coordinator(link.address, &World::real())
        .expect("a published address");
    let content: Vec<u8> = (0..PROGRAM_BYTES).map(|at| (at % 251) as u8).collect();
    let program = scene.program(&content);
    let options = SubmitOptions {
        program: Some(program.clone()),
        ..SubmitOptions::default()
    };
    let mut client = ClusterClient::connect(scene.place(), patience).expect("a connection");
    client.submit(plan(), &options).expect("it is taken");
    let mut blobs = std::fs::read_dir(scene.blobs()).expect("a directory");
    let blob = blobs.next().expect("a blob").expect("an entry").path();
    assert!(std::fs::read(blob).expect("a blob") == std::fs::read(program).expect("a program"));
    assert!(blobs.next().is_none(), "no unfinished file is left");
    (
        link.connections.load(Ordering::Relaxed),
        link.sent.load(Ordering::Relaxed),
    )
}

#[test]
fn upload_over_link_that_is_cut_again_and_again_completes() {
    // The limit for an outage is shorter than the upload; progress resets it.
    let (connections, sent) = submit_over(Fault::Cut, patience());
    assert!(connections >= 3, "{connections} connections");
    assert!(
        sent < 2 * PROGRAM_BYTES as u64,
        "{sent} bytes were sent for a program of {PROGRAM_BYTES}"
    );
}

#[test]
fn upload_over_frozen_connection_continues_on_another() {
    let patience = Patience {
        silence: Duration::from_millis(300),
        ..patience()
    };
    let (connections, sent) = submit_over(Fault::Freeze, patience);
    assert_eq!(connections, 2);
    assert!(
        sent < PROGRAM_BYTES as u64 + LINK_BYTES,
        "{sent} bytes were sent"
    );
}
