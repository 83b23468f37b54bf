//! Tests of the messages of a program with a chain of jobs.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use napreduce_local::chain::ChainKeeper;
use napreduce_protocol::requests::{EndChain, HoldChain};
use napreduce_protocol::{FromCoordinator, ToCoordinator};

use super::scene::{Coordinator, DEADLINE, Scene};
use crate::client::ClientError;
use crate::coordinator::{Refusal, Request};

/// A coordinator that takes every chain, and what it hears.
fn willing(scene: &Scene) -> (Coordinator, Receiver<String>) {
    let (tell, told) = channel();
    let coordinator = scene.coordinator(move |request| {
        let heard = match request {
            Request::Asked(ToCoordinator::HoldChain(HoldChain { chain, root }), reply) => {
                let _ = reply.send(Ok(FromCoordinator::Done));
                format!("hold {chain} {}", root.display())
            }
            Request::Asked(ToCoordinator::EndChain(EndChain { chain }), reply) => {
                let _ = reply.send(Ok(FromCoordinator::Done));
                format!("end {chain}")
            }
            Request::ReleaseChain { chain } => format!("release {chain}"),
            other => panic!("{other:?}"),
        };
        // A test that has ended does not want to know.
        let _ = tell.send(heard);
    });
    (coordinator, told)
}

fn start(scene: &Scene) -> Result<Box<dyn ChainKeeper>, ClientError> {
    scene.place().keep_chain(7, PathBuf::from("/data/.root"))
}

fn assert_heard(told: &Receiver<String>, expected: &[&str]) {
    for expected in expected {
        assert_eq!(told.recv_timeout(DEADLINE).as_deref(), Ok(*expected));
    }
}

#[test]
fn chain_survives_coordinator_restarts_until_ended() {
    let scene = Scene::new();
    let (first, told) = willing(&scene);
    let keeper = start(&scene).expect("it is taken");
    assert_heard(&told, &["hold 7 /data/.root"]);
    drop(first);
    let (_second, told) = willing(&scene);
    assert_heard(&told, &["hold 7 /data/.root"]);
    keeper.end().expect("the coordinator hears of it");
    assert_heard(&told, &["end 7", "release 7"]);
}

#[test]
fn dropped_chain_closes_its_connection() {
    let scene = Scene::new();
    let (_coordinator, told) = willing(&scene);
    drop(start(&scene).expect("it is taken"));
    assert_heard(&told, &["hold 7 /data/.root", "release 7"]);
}

#[test]
fn refused_chain_fails_at_start() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(|request| {
        let Request::Asked(ToCoordinator::HoldChain(_), reply) = request else { panic!("{request:?}") };
        let _ = reply.send(Err(Refusal::wrong("not there")));
    });
    let refused = start(&scene).expect_err("it is refused");
    assert!(
        matches!(&refused, ClientError::Refused { status: 2, reason } if reason == "not there"),
        "{refused}"
    );
}
