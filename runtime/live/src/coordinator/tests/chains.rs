//! Chains of jobs: until when what passes between them stays, over programs that vanish and coordinators that
//! are killed.
//!
//! Owns the roots of chains that the tests make. Does not own the removal itself, which is tested
//! where it is (`chain`).

use std::path::Path;

use tokio::time::{Instant, sleep};

use super::*;

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// What a program makes: a root with its marker and an intermediate output.
fn make_root(scene: &Scene, chain: u128) -> PathBuf {
    let root = scene.path(&format!(".out.intermediate-{chain:032x}"));
    fs::create_dir_all(root.join("counts")).expect("made");
    let marker = format!("{{\"version\":1,\"token\":\"{chain:032x}\",\"owner\":\"cluster\"}}");
    fs::write(root.join(".napreduce-intermediate"), marker).expect("written");
    fs::write(root.join("counts/part-r-00000"), "a\t1\n").expect("written");
    root
}

async fn gone(root: &Path) {
    let by = Instant::now() + DEADLINE;
    while root.exists() {
        assert!(Instant::now() < by, "{} is still there", root.display());
        sleep(Duration::from_millis(5)).await;
    }
}

impl Running {
    async fn hold(&self, chain: u128, root: &Path) -> Result<(), Refusal> {
        let root = root.to_owned();
        self.done(ToCoordinator::HoldChain { chain, root }).await
    }

    fn release(&self, chain: u128) {
        self.requests.send(Request::ReleaseChain { chain }).expect("the coordinator runs");
    }

    async fn end_chain(&self, chain: u128) {
        self.done(ToCoordinator::EndChain { chain }).await.expect("it is always done");
    }

    async fn submit_of(&self, scene: &Scene, chain: u128) -> JobId {
        let mut submission = scene.submission(chain, 1, 1);
        submission.plan.chain = Some(chain);
        self.submit(submission).await
    }

    async fn end_by_hand(&self, job: JobId) {
        let reason = "it is enough".to_owned();
        self.kill_job(job, reason).await.expect("it runs");
        self.end_of(job).await;
    }
}

#[tokio::test]
async fn what_passes_between_jobs_stays_until_the_program_is_done() {
    let mut scene = Scene::new();
    scene.configuration.chain_grace = Duration::ZERO;
    let (coordinator, root) = (scene.start(), make_root(&scene, 7));
    coordinator.hold(7, &root).await.expect("it is a root");
    let job = coordinator.submit_of(&scene, 7).await;
    coordinator.end_by_hand(job).await;
    // Others come and go meanwhile.
    let other = make_root(&scene, 8);
    coordinator.hold(8, &other).await.expect("it is a root");
    coordinator.release(8);
    gone(&other).await;
    assert!(root.join("counts/part-r-00000").exists());
    coordinator.end_chain(7).await;
    assert!(!root.exists(), "it is gone when the program has its answer");
    coordinator.end_chain(7).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn the_input_of_a_job_that_goes_on_without_its_program_stays_until_the_job_has_ended() {
    let mut scene = Scene::new();
    scene.configuration.chain_grace = Duration::ZERO;
    let coordinator = scene.start();
    let (root, other) = (make_root(&scene, 7), make_root(&scene, 8));
    for (chain, root) in [(7, &root), (8, &other)] {
        coordinator.hold(chain, root).await.expect("it is a root");
    }
    let job = coordinator.submit_of(&scene, 7).await;
    // The program is killed, and so is another one of which no job runs.
    coordinator.release(7);
    coordinator.release(8);
    gone(&other).await;
    assert!(root.join("counts/part-r-00000").exists());
    // Said by a program that leaves its job to itself, it changes nothing.
    coordinator.end_chain(7).await;
    coordinator.kill().await;
    let coordinator = scene.start();
    let third = make_root(&scene, 9);
    coordinator.hold(9, &third).await.expect("it is a root");
    coordinator.end_chain(9).await;
    assert!(!third.exists() && root.join("counts/part-r-00000").exists());
    coordinator.end_by_hand(job).await;
    gone(&root).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn a_chain_outlives_its_coordinator_and_its_program_may_come_back() {
    let mut scene = Scene::new();
    scene.configuration.chain_grace = FOR_EVER;
    let root = make_root(&scene, 7);
    let coordinator = scene.start();
    coordinator.hold(7, &root).await.expect("it is a root");
    coordinator.kill().await;
    let coordinator = scene.start();
    coordinator.hold(7, &root).await.expect("it is known");
    // Twice, when the first connection is not known to be gone.
    coordinator.hold(7, &root).await.expect("it is known");
    coordinator.release(7);
    // A snapshot keeps it, too.
    coordinator.stop().await;
    assert!(root.exists());
    scene.configuration.chain_grace = Duration::ZERO;
    let coordinator = scene.start();
    gone(&root).await;
    coordinator.stop().await;
}

#[tokio::test]
async fn nothing_but_the_root_of_a_chain_is_ever_removed() {
    let scene = Scene::new();
    let coordinator = scene.start();
    let place = scene.path("place");
    fs::create_dir(&place).expect("made");
    let refused = coordinator.hold(7, &place).await.expect_err("it is something else");
    assert!(refused.reason.contains("is not what a chain's directory is called"), "{refused:?}");
    let root = make_root(&scene, 7);
    fs::remove_file(root.join(".napreduce-intermediate")).expect("removed");
    coordinator.hold(7, &root).await.expect("it is called so");
    let refused = coordinator.hold(7, &scene.path("x").join(root.file_name().expect("a name"))).await;
    assert!(refused.expect_err("another place").reason.contains("this chain's directory is"));
    coordinator.end_chain(7).await;
    assert!(root.join("counts/part-r-00000").exists() && place.exists(), "there is no marker in it");
    coordinator.stop().await;
}
