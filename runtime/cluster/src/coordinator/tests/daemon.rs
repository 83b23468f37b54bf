//! The daemon around the loop: starts that fail, and errors of its end.

use std::net::TcpListener;
use std::time::Duration;

use napreduce_history::open_history;
use napreduce_local::process::Interrupts;
use napreduce_local::world::disk::FaultRates;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{sleep, timeout};

use super::power::scene_on_simulated_disk;
use super::{DEADLINE, Scene};
use crate::coordinator::{CoordinatorError, coordinator_daemon};

const SIGTERM: i32 = 15;

#[tokio::test]
async fn daemon_that_cannot_listen_releases_the_journal() {
    let mut scene = Scene::new();
    let occupied = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = occupied.local_addr().expect("an address");
    scene.configuration.bind = address.to_string();
    for start in ["first", "second"] {
        let (_signals, arriving) = unbounded_channel();
        let interrupts = Interrupts::of_channel(arriving);
        let ended = coordinator_daemon(scene.configuration.clone(), open_history, interrupts);
        let error = ended.await.expect_err("the address is in use").to_string();
        assert!(error.contains(&address.to_string()), "{start}: {error}");
    }
}

#[tokio::test]
async fn daemon_reports_the_journal_error_although_the_disk_keeps_failing() {
    let (scene, disk) = scene_on_simulated_disk(0);
    let directory = scene.configuration.directory.clone();
    let (signals, arriving) = unbounded_channel();
    let interrupts = Interrupts::of_channel(arriving);
    let daemon = tokio::spawn(coordinator_daemon(
        scene.configuration.clone(),
        open_history,
        interrupts,
    ));
    let listening = async {
        while directory.coordinator_address().is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, listening)
        .await
        .expect("a daemon that listens");
    disk.set_rates(FaultRates {
        errors: 1.0,
        ..FaultRates::default()
    });
    signals.send(SIGTERM).expect("a daemon");
    let ended = timeout(DEADLINE, daemon).await.expect("an end in time");
    let error = ended.expect("no panic").expect_err("the disk fails");
    assert!(matches!(error, CoordinatorError::Journal(_)), "{error}");
}
