//! Random connection losses together with random cluster events: the output appears exactly once.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::cluster::{start, submit};
use super::events;
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

/// The number of requests with an injected fault.
const TRICKS: usize = 120;

fn trick(random: &mut Pcg64Mcg) -> Trick {
    match random.random_range(0..20) {
        0 | 1 => Trick::Refuse,
        2 | 3 => Trick::Lose,
        _ => Trick::Pass,
    }
}

#[test]
fn random_faults_do_not_change_output() {
    let Some(scene) = Scene::new("chaos") else {
        return;
    };
    let mut random = events::random();
    let tricks: Vec<Trick> = (0..TRICKS).map(|_| trick(&mut random)).collect();
    let proxy = Proxy::on(Kind::ANY, &scene.files.address, &tricks);
    let cluster = start(&scene.files, &scene.folder, &proxy.address);
    let job = submit(&scene, &cluster);
    events::endure(&cluster, job, random);
    scene.assert_written();
}
