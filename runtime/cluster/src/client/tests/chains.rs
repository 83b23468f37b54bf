//! Tests of the messages of a program that runs a chain of jobs.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use napreduce_local::chain::ChainKeeper;
use napreduce_protocol::requests::{EndChain, HoldChain};
use napreduce_protocol::{FromCoordinator, ToCoordinator};

use super::scene::{Coordinator, DEADLINE, Scene};
use crate::client::ClientError;
use crate::coordinator::{LoopRequest, Refusal};

/// A coordinator that accepts every chain, and the requests that it receives.
fn accepting_coordinator(scene: &Scene) -> (Coordinator, Receiver<String>) {
    let (sender, received) = channel();
    let coordinator = scene.coordinator(move |request| {
        let line = match request {
            LoopRequest::Message(ToCoordinator::HoldChain(HoldChain { chain, root }), reply) => {
                reply.send(Ok(FromCoordinator::Done));
                format!("hold {chain} {}", root.display())
            }
            LoopRequest::Message(ToCoordinator::EndChain(EndChain { chain }), reply) => {
                reply.send(Ok(FromCoordinator::Done));
                format!("end {chain}")
            }
            LoopRequest::ReleaseChain { chain } => format!("release {chain}"),
            other => panic!("{other:?}"),
        };
        // Fails if the test has ended.
        let _ = sender.send(line);
    });
    (coordinator, received)
}

fn start(scene: &Scene) -> Result<Box<dyn ChainKeeper>, ClientError> {
    scene.place().keep_chain(7, PathBuf::from("/data/.root"))
}

fn assert_received(received: &Receiver<String>, expected: &[&str]) {
    for expected in expected {
        assert_eq!(received.recv_timeout(DEADLINE).as_deref(), Ok(*expected));
    }
}

#[test]
fn chain_survives_coordinator_restarts_until_ended() {
    let scene = Scene::new();
    let (first, received) = accepting_coordinator(&scene);
    let keeper = start(&scene).expect("it is taken");
    assert_received(&received, &["hold 7 /data/.root"]);
    drop(first);
    let (_second, received) = accepting_coordinator(&scene);
    assert_received(&received, &["hold 7 /data/.root"]);
    keeper.end().expect("the coordinator is there");
    assert_received(&received, &["end 7", "release 7"]);
}

#[test]
fn dropped_chain_closes_its_connection() {
    let scene = Scene::new();
    let (_coordinator, received) = accepting_coordinator(&scene);
    drop(start(&scene).expect("it is taken"));
    assert_received(&received, &["hold 7 /data/.root", "release 7"]);
}

#[test]
fn refused_chain_fails_at_start() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(|request| {
        let LoopRequest::Message(ToCoordinator::HoldChain(_), reply) = request else {
            panic!("{request:?}")
        };
        reply.send(Err(Refusal::wrong("not there")));
    });
    let refused = start(&scene).expect_err("it is refused");
    assert!(
        matches!(&refused, ClientError::Refused { status: 2, reason } if reason == "not there"),
        "{refused}"
    );
}
