//! Random store faults together with random cluster events (`events`): the output appears exactly once.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::cluster::{start, submit};
use super::events;
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;
use super::server::{Server, on_each_server};

/// The number of requests with an injected fault.
const TRICKS: usize = 120;

fn trick(random: &mut Pcg64Mcg) -> Trick {
    match random.random_range(0..20) {
        0 => Trick::Status(503),
        1 => Trick::Status(429),
        2 => Trick::Status(500),
        3 => Trick::Lose,
        4 => Trick::Cut(0),
        _ => Trick::Pass,
    }
}

fn random_faults_do_not_change_output(server: Server) {
    let Some(scene) = Scene::new(server, "chaos") else {
        return;
    };
    let mut random = events::random();
    let tricks: Vec<Trick> = (0..TRICKS).map(|_| trick(&mut random)).collect();
    let proxy = Proxy::on(Kind::Any, &scene.bucket.address, &tricks);
    let cluster = start(&scene, &proxy.address);
    let job = submit(&scene, &cluster);
    events::endure(&cluster, job, random);
    scene.assert_written();
}

on_each_server! {
    random_faults_do_not_change_output,
}
