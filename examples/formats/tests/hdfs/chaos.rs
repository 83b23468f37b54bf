//! Connections to the NameNode that end at random, together with what happens to the cluster meanwhile.
//!
//! Owns that the output is the same, once, whatever comes together. Does not own faults one by one
//! (`outputs`, `cluster`, `coordinator`).

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use super::cluster::{start, submit};
use super::events;
use super::proxy::{Kind, Proxy, Trick};
use super::scene::Scene;

/// Requests on which tricks are played.
const TRICKS: usize = 120;

fn trick(random: &mut Pcg64Mcg) -> Trick {
    match random.random_range(0..20) {
        0 | 1 => Trick::Refuse,
        2 | 3 => Trick::Lose,
        _ => Trick::Pass,
    }
}

#[test]
fn whatever_comes_together_the_output_is_the_same() {
    let Some(scene) = Scene::new("chaos") else { return };
    let mut random = events::random();
    let tricks: Vec<Trick> = (0..TRICKS).map(|_| trick(&mut random)).collect();
    let proxy = Proxy::on(Kind::ANY, &scene.files.address, &tricks);
    let cluster = start(&scene.files, &scene.folder, &proxy.address);
    let job = submit(&scene, &cluster);
    events::endure(&cluster, job, random);
    scene.assert_written();
}
