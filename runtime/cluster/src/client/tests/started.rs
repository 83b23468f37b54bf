//! Jobs as values: several at once from one process, inside an async runtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::channel;

use napreduce_engine::JobId;
use napreduce_local::StartedJob;
use napreduce_protocol::{
    FromCoordinator, JobEnd, JobError, JobProgress, JobReport, PhaseProgress, ToCoordinator,
};

use super::scene::{DEADLINE, Job, Scene, patience, plan, report};
use crate::client::{attach_job, start_job};
use crate::coordinator::{LoopRequest, Refusal};

fn killed(job: JobId, reason: &str) -> JobEnd {
    JobEnd::Killed {
        job,
        reason: reason.to_owned(),
    }
}

fn of_job(job: JobId) -> JobReport {
    JobReport { job, ..report() }
}

/// Accepts jobs, numbers them from 1, and ends them when they are killed or have an even number.
fn scripted() -> impl FnMut(LoopRequest) + Send + 'static {
    let mut jobs: BTreeMap<JobId, Arc<Job>> = BTreeMap::new();
    move |request| match request {
        LoopRequest::Message(ToCoordinator::Submission(_), reply) => {
            let job = JobId(u32::try_from(jobs.len()).expect("few jobs") + 1);
            jobs.insert(job, Job::new());
            reply.send(Ok(FromCoordinator::Submitted(job)));
        }
        LoopRequest::Follow { job, reply } => match jobs.get(&job) {
            Some(known) => {
                let map = PhaseProgress {
                    tasks: 2,
                    done: 1,
                    ..PhaseProgress::default()
                };
                known.progress.send_replace(JobProgress {
                    map,
                    ..JobProgress::default()
                });
                if job.0 % 2 == 0 {
                    known.end.send_replace(Some(JobEnd::Succeeded(of_job(job))));
                }
                reply.send(Ok(known.following()));
            }
            None => {
                reply.send(Err(Refusal::wrong(format!("there is no {job}"))));
            }
        },
        LoopRequest::Message(ToCoordinator::KillJob(kill), reply) => {
            jobs[&kill.job]
                .end
                .send_replace(Some(killed(kill.job, &kill.reason)));
            reply.send(Ok(FromCoordinator::Done));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn jobs_of_one_process_are_followed_and_killed_apart() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(scripted());
    let start =
        || start_job(&scene.place(), patience(), plan(), &scene.options()).expect("it is taken");
    let jobs: Vec<StartedJob> = (0..20).map(|_| start()).collect();
    for started in jobs {
        let job = started.job();
        if job.0 % 2 == 0 {
            assert_eq!(started.await.expect("it succeeds"), of_job(job));
            continue;
        }
        let progress = started.watch().next().await.expect("it runs");
        assert_eq!((progress.map.tasks, progress.map.done), (2, 1));
        started.cancel("no longer wanted");
        let ended = started.await;
        assert!(
            matches!(&ended, Err(JobError::Killed { job: killed, reason })
                if *killed == job && reason == "no longer wanted"),
            "{ended:?}"
        );
    }
}

#[tokio::test]
async fn dropped_job_runs_on_and_can_be_attached() {
    let scene = Scene::new();
    let (sender, kills) = channel();
    let mut script = scripted();
    let _coordinator = scene.coordinator(move |request| {
        if let LoopRequest::Message(ToCoordinator::KillJob(kill), _) = &request {
            sender.send(kill.reason.clone()).expect("the test waits");
        }
        script(request);
    });
    let started =
        start_job(&scene.place(), patience(), plan(), &scene.options()).expect("it is taken");
    let job = started.job();
    let mut watch = started.watch();
    watch.next().await.expect("it is followed");
    drop(started);
    while watch.next().await.is_some() {}
    let attached = attach_job(&scene.place(), patience(), job).expect("a thread");
    attached.cancel("found again");
    let ended = tokio::task::spawn_blocking(|| attached.wait())
        .await
        .expect("no panic");
    assert!(matches!(ended, Err(JobError::Killed { .. })), "{ended:?}");
    assert_eq!(
        kills.recv_timeout(DEADLINE).as_deref(),
        Ok("found again"),
        "the first drop killed nothing"
    );
}

#[tokio::test]
async fn refusals_are_errors_of_the_caller_or_of_the_job() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(scripted());
    let mut relative = plan();
    relative.output = "out".into();
    let refused =
        start_job(&scene.place(), patience(), relative, &scene.options()).expect_err("refused");
    assert_eq!(refused.exit_status(), 2);
    let unknown = attach_job(&scene.place(), patience(), JobId(9))
        .expect("a thread")
        .await;
    assert_eq!(
        unknown.expect_err("it is not known").to_string(),
        "there is no job_0009"
    );
}
