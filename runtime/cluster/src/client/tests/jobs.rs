//! Submitting and following jobs, and other requests, across restarts and refusals.

use std::fmt::Debug;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use napreduce_engine::{
    AttemptId, JobChange, JobId, Reason, ReasonCode, TaskId, TaskKind, WorkerId,
};
use napreduce_local::ProgressMode;
use napreduce_local::world::World;
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, Explain, GetJob, GetOutcomes, GetWindow,
    KillJob, ListJobs, ListQueues, ListTasks, ListWorkers, UndrainWorker,
};
use napreduce_protocol::{
    CommandOutcome, FromCoordinator, JobCommand, JobEnd, JobError, QueueListing, Secret,
    SlotsWanted, TaskCommand, ToCoordinator,
};

use super::scene::{DEADLINE, Job, Scene, alone, patience, plan, report};
use crate::client::{ClientError, ClusterClient, ClusterPlace, FollowOptions, Patience};
use crate::coordinator::{LoopRequest, Refusal};

fn quietly() -> FollowOptions {
    FollowOptions {
        progress: ProgressMode::Never,
        quiet: true,
        ..FollowOptions::default()
    }
}

const AT_ONCE: Patience = Patience {
    first: Duration::ZERO,
    later: Duration::ZERO,
    absent: Duration::ZERO,
    answer: Duration::from_secs(60),
    silence: Duration::from_secs(20),
    tell: false,
};

#[test]
fn submission_carries_plan_and_user() {
    let scene = Scene::new();
    let (sender, received) = channel();
    let _coordinator = scene.coordinator(move |request| {
        let LoopRequest::Message(ToCoordinator::Submission(submission), reply) = request else {
            panic!("{request:?}")
        };
        sender.send(submission).expect("the test waits");
        reply.send(Ok(FromCoordinator::Submitted(JobId(7))));
    });
    let mut options = scene.options();
    options.user = "ada".to_owned();
    assert_eq!(
        scene
            .client()
            .submit(plan(), &options)
            .expect("it is taken"),
        JobId(7)
    );
    let submission = received.recv_timeout(DEADLINE).expect("it was submitted");
    assert_eq!((submission.plan, submission.user.as_str()), (plan(), "ada"));
    assert_eq!(submission.architecture, std::env::consts::ARCH);
}

#[test]
fn unanswered_submission_is_repeated_with_same_token() {
    let scene = Scene::new();
    let (arrived, first_token) = channel();
    let first = scene.coordinator(move |request| {
        if let LoopRequest::Message(ToCoordinator::Submission(submission), reply) = request {
            arrived.send(submission.token).expect("the test waits");
            // The coordinator does not answer, as if it was killed before it journaled the job.
            std::mem::forget(reply);
        }
    });
    let mut client = scene.client();
    let options = scene.options();
    let submitted = std::thread::spawn(move || client.submit(plan(), &options));
    let token = first_token
        .recv_timeout(DEADLINE)
        .expect("it was submitted");
    drop(first);
    let (arrived, second_token) = channel();
    let _second = scene.coordinator(move |request| {
        if let LoopRequest::Message(ToCoordinator::Submission(submission), reply) = request {
            arrived.send(submission.token).expect("the test waits");
            reply.send(Ok(FromCoordinator::Submitted(JobId(3))));
        }
    });
    assert_eq!(second_token.recv_timeout(DEADLINE), Ok(token));
    assert_eq!(
        submitted.join().expect("no panic").expect("it is taken"),
        JobId(3)
    );
}

#[test]
fn refused_submission_has_exit_status_2() {
    let _alone = alone();
    let scene = Scene::new();
    let _coordinator = scene.coordinator(|request| {
        if let LoopRequest::Message(ToCoordinator::Submission(_), reply) = request {
            let reason =
                "output directory /nowhere/out/ exists; pass --overwrite or choose another"
                    .to_owned();
            reply.send(Err(Refusal::wrong(reason)));
        }
    });
    let error = scene
        .client()
        .run(plan(), &scene.options(), &quietly())
        .expect_err("it is refused");
    assert_eq!(error.exit_status(), 2);
    assert!(
        error
            .to_string()
            .starts_with("output directory /nowhere/out/ exists; pass"),
        "{error}"
    );
}

#[test]
fn refused_request_is_not_repeated() {
    let scene = Scene::new();
    let (sender, received) = channel();
    let _coordinator = scene.coordinator(move |request| {
        let LoopRequest::Message(ToCoordinator::GetJob(_), reply) = request else {
            panic!("{request:?}")
        };
        sender.send(()).expect("the test waits");
        reply.send(Err(Refusal::wrong("there is no job_0009")));
    });
    scene
        .client()
        .ask(GetJob { job: JobId(9) })
        .expect_err("it is refused");
    assert_eq!(received.try_iter().count(), 1, "asked once");
}

#[test]
fn invalid_plan_is_refused_before_the_loop() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(|request| panic!("{request:?}"));
    let mut client = scene.client();
    let mut relative = plan();
    relative.output = "out".into();
    let mut contradictory = plan();
    contradictory.cuts = vec![vec![1], vec![2]];
    for (plan, says) in [
        (relative, "output directory out is not an absolute path"),
        (
            contradictory,
            "2 cut keys make 3 partitions, but the job has 1 reduces",
        ),
    ] {
        let error = client
            .submit(plan, &scene.options())
            .expect_err("it is refused");
        assert_eq!((error.exit_status(), error.to_string().as_str()), (2, says));
    }
}

#[test]
fn follow_continues_after_coordinator_restart() {
    let _alone = alone();
    let scene = Scene::new();
    let job = Job::new();
    let (followed, first_follow) = channel();
    let following = Arc::clone(&job);
    let first = scene.coordinator(move |request| {
        if let LoopRequest::Follow {
            job: JobId(7),
            reply,
        } = request
        {
            reply.send(Ok(following.following()));
            followed.send(()).expect("the test waits");
        }
    });
    let mut client = scene.client();
    let ended = std::thread::spawn(move || client.follow(JobId(7), &quietly()));
    first_follow.recv_timeout(DEADLINE).expect("it is followed");
    drop(first);
    job.end.send_replace(Some(JobEnd::Succeeded(report())));
    let _second = scene.coordinator(move |request| {
        if let LoopRequest::Follow {
            job: JobId(7),
            reply,
        } = request
        {
            reply.send(Ok(job.following()));
        }
    });
    assert_eq!(
        ended.join().expect("no panic").expect("it succeeded"),
        report()
    );
}

#[test]
fn failed_and_killed_jobs_are_errors() {
    let _alone = alone();
    let scene = Scene::new();
    let ends = Mutex::new(vec![
        JobEnd::Killed {
            job: JobId(7),
            reason: "requested by ada".to_owned(),
        },
        JobEnd::Failed {
            job: JobId(7),
            reason: "job_0007_m_0000 failed 4 times".to_owned(),
            failure: None,
        },
    ]);
    let _coordinator = scene.coordinator(move |request| {
        if let LoopRequest::Follow { reply, .. } = request {
            let job = Job::new();
            job.end.send_replace(ends.lock().expect("one thread").pop());
            reply.send(Ok(job.following()));
        }
    });
    let mut client = scene.client();
    let failed = client.follow(JobId(7), &quietly()).expect_err("it failed");
    assert_eq!(
        (failed.exit_status(), failed.to_string().as_str()),
        (1, "job_0007_m_0000 failed 4 times")
    );
    let killed = client
        .follow(JobId(7), &quietly())
        .expect_err("it was killed");
    assert!(matches!(killed, JobError::Killed { .. }));
    assert_eq!(
        (killed.exit_status(), killed.to_string().as_str()),
        (1, "job_0007 was killed: requested by ada")
    );
}

/// Returns whether a client repeats the request when the connection breaks before the answer.
fn is_repeated<R>(request: R, answer: FromCoordinator) -> bool
where
    R: napreduce_protocol::Request<Answer: Debug + Send> + Send + 'static,
{
    let scene = Scene::new();
    let (asked, arrived) = channel();
    let first = scene.coordinator(move |request| {
        let LoopRequest::Message(_, reply) = request else {
            panic!("{request:?}")
        };
        asked.send(()).expect("the test waits");
        std::mem::forget(reply);
    });
    let mut client = scene.client();
    let asking = std::thread::spawn(move || client.ask(request));
    arrived.recv_timeout(DEADLINE).expect("it is asked for");
    drop(first);
    let _second = scene.coordinator(move |request| {
        let LoopRequest::Message(_, reply) = request else {
            panic!("{request:?}")
        };
        reply.send(Ok(answer.clone()));
    });
    match asking.join().expect("no panic") {
        Ok(_) => true,
        Err(error @ ClientError::Unanswered { .. }) => {
            assert!(
                error.to_string().contains("check with `nap task list`"),
                "{error}"
            );
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn unrepeatable_requests_are_sent_once() {
    let job = JobId(7);
    let task = TaskId {
        job: JobId(7),
        kind: TaskKind::Map,
        index: 0,
    };
    let reason = || "it is slow".to_owned();
    let kill = CommandTask {
        task,
        attempt: None,
        command: TaskCommand::Kill,
        reason: reason(),
    };
    assert!(!is_repeated(kill, FromCoordinator::Commanded(Vec::new())));
    let suspend = CommandJob {
        job,
        command: JobCommand::Suspend,
        reason: reason(),
    };
    assert!(!is_repeated(suspend, FromCoordinator::Done));
    let change = ChangeJob {
        job,
        change: JobChange::default(),
        reason: reason(),
    };
    assert!(!is_repeated(change, FromCoordinator::Done));
    assert!(!is_repeated(
        UndrainWorker {
            worker: WorkerId(1),
            reason: reason()
        },
        FromCoordinator::Done
    ));
}

#[test]
fn repeatable_requests_are_repeated_after_restart() {
    let job = JobId(7);
    let reason = || "it is slow".to_owned();
    assert!(is_repeated(
        KillJob {
            job,
            reason: reason()
        },
        FromCoordinator::Done
    ));
    let drain = DrainWorker {
        worker: WorkerId(1),
        hand_back: true,
        reason: reason(),
    };
    assert!(is_repeated(drain, FromCoordinator::Done));
    assert!(is_repeated(
        ListJobs { limit: 5 },
        FromCoordinator::Jobs(Vec::new())
    ));
    assert!(is_repeated(
        ListTasks { job: None },
        FromCoordinator::Tasks(Vec::new())
    ));
    let outcomes = GetOutcomes {
        job,
        attempts: Vec::new(),
        command: TaskCommand::Kill,
    };
    assert!(is_repeated(outcomes, FromCoordinator::Outcomes(Vec::new())));
    assert!(is_repeated(
        Explain { job, task: None },
        FromCoordinator::Explained(Vec::new())
    ));
    assert!(is_repeated(
        ListWorkers,
        FromCoordinator::Workers(Vec::new())
    ));
    let window = GetWindow {
        from_millis: 0,
        until_millis: 1,
    };
    assert!(is_repeated(window, FromCoordinator::Window(Box::default())));
    let queues = QueueListing {
        scheduler: "fifo".to_owned(),
        queues: None,
        wanted: SlotsWanted::default(),
    };
    assert!(is_repeated(ListQueues, FromCoordinator::Queues(queues)));
}

#[test]
fn requests_receive_answer_or_refusal() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(move |request| {
        let LoopRequest::Message(asked, reply) = request else {
            panic!("{request:?}")
        };
        let answer = match asked {
            ToCoordinator::ListJobs(ListJobs { limit: 5 }) => Ok(FromCoordinator::Jobs(Vec::new())),
            ToCoordinator::GetJob(_) => Err(Refusal::failed("there is no job_0009")),
            ToCoordinator::KillJob(_) => Ok(FromCoordinator::Done),
            ToCoordinator::ListTasks(ListTasks { job: None }) => {
                Ok(FromCoordinator::Tasks(Vec::new()))
            }
            ToCoordinator::CommandTask(CommandTask {
                task,
                attempt: Some(number),
                ..
            }) => Ok(FromCoordinator::Commanded(vec![AttemptId { task, number }])),
            ToCoordinator::CommandJob(CommandJob {
                command: JobCommand::Suspend,
                ..
            }) => Ok(FromCoordinator::Done),
            ToCoordinator::GetOutcomes(GetOutcomes {
                attempts,
                command: TaskCommand::Suspend,
                ..
            }) => {
                let refused = CommandOutcome::Refused("memory is short".to_owned());
                Ok(FromCoordinator::Outcomes(
                    attempts
                        .into_iter()
                        .map(|id| (id, refused.clone()))
                        .collect(),
                ))
            }
            ToCoordinator::Explain(_) => Ok(FromCoordinator::Explained(vec![Reason::new(
                ReasonCode::AllSlotsTaken,
                "no slot is free",
            )])),
            ToCoordinator::ListWorkers(_) => Ok(FromCoordinator::Workers(Vec::new())),
            ToCoordinator::DrainWorker(DrainWorker {
                hand_back: true,
                reason,
                ..
            }) if reason == "a new disk" => Ok(FromCoordinator::Done),
            other => panic!("{other:?}"),
        };
        reply.send(answer);
    });
    let mut client = scene.client();
    assert_eq!(client.ask(ListJobs { limit: 5 }).expect("an answer"), []);
    let error = client
        .ask(GetJob { job: JobId(9) })
        .expect_err("it is refused");
    assert_eq!(
        (error.exit_status(), error.to_string().as_str()),
        (1, "there is no job_0009")
    );
    let job = JobId(7);
    let reason = "no longer wanted".to_owned();
    client
        .ask(KillJob {
            job,
            reason: reason.clone(),
        })
        .expect("an answer");
    assert_eq!(client.ask(ListTasks { job: None }).expect("an answer"), []);
    let task = TaskId {
        job,
        kind: TaskKind::Reduce,
        index: 1,
    };
    let second = AttemptId { task, number: 2 };
    let kill = CommandTask {
        task,
        attempt: Some(2),
        command: TaskCommand::Kill,
        reason: reason.clone(),
    };
    assert_eq!(client.ask(kill).expect("an answer"), [second]);
    client
        .ask(CommandJob {
            job,
            command: JobCommand::Suspend,
            reason,
        })
        .expect("an answer");
    let refused = CommandOutcome::Refused("memory is short".to_owned());
    let outcomes = GetOutcomes {
        job,
        attempts: vec![second],
        command: TaskCommand::Suspend,
    };
    assert_eq!(
        client.ask(outcomes).expect("an answer"),
        [(second, refused)]
    );
    let reasons = client
        .ask(Explain {
            job,
            task: Some(task),
        })
        .expect("an answer");
    assert_eq!(
        reasons,
        [Reason::new(ReasonCode::AllSlotsTaken, "no slot is free")]
    );
    assert_eq!(client.ask(ListWorkers).expect("an answer"), []);
    let reason = "a new disk".to_owned();
    client
        .ask(DrainWorker {
            worker: WorkerId(1),
            hand_back: true,
            reason,
        })
        .expect("an answer");
}

#[test]
fn answer_to_another_request_is_internal_error() {
    let scene = Scene::new();
    let _coordinator = scene.coordinator(|request| {
        let LoopRequest::Message(_, reply) = request else {
            panic!("{request:?}")
        };
        reply.send(Ok(FromCoordinator::Done));
    });
    let error = scene
        .client()
        .ask(ListWorkers)
        .expect_err("workers were asked for");
    assert!(
        matches!(error, ClientError::UnexpectedAnswer { .. }),
        "{error}"
    );
}

#[test]
fn absent_coordinator_error_names_start_command() {
    let scene = Scene::new();
    let error = ClusterClient::connect(scene.place(), AT_ONCE).expect_err("no coordinator");
    let directory = scene.directory().path().display().to_string();
    let expected = format!(
        "no coordinator is running for {directory}; start one with: nap up --dir {directory}"
    );
    assert_eq!(
        (error.exit_status(), error.to_string()),
        (69, expected),
        "printed once"
    );
    drop(scene.coordinator(drop));
    let error = ClusterClient::connect(scene.place(), AT_ONCE).expect_err("it is gone");
    assert_eq!(error.exit_status(), 69);
    let error = error.to_string();
    assert!(
        error.starts_with(&format!("no coordinator answers for {directory} after ")),
        "{error}"
    );
    assert!(error.contains("cannot connect to 127.0.0.1:"), "{error}");
    assert!(
        error.ends_with(&format!("start a cluster with: nap up --dir {directory}")),
        "{error}"
    );
}

#[test]
fn absent_cluster_fails_at_once_unreachable_one_is_retried() {
    let Patience {
        first,
        later,
        absent,
        tell,
        ..
    } = Patience::default();
    assert_eq!(
        (first, later),
        (Duration::from_secs(60), Duration::from_secs(60))
    );
    assert!(absent <= Duration::from_secs(1) && tell);
    let scene = Scene::new();
    let patience = Patience {
        absent: Duration::ZERO,
        ..patience()
    };
    ClusterClient::connect(scene.place(), patience).expect_err("nothing was ever there");
    // A recovering coordinator has not published its address yet; a killed one has left its address.
    let lock = scene
        .directory()
        .lock_coordinator(&World::real().process)
        .expect("an unlocked directory");
    let place = scene.place();
    let connecting = std::thread::spawn(move || ClusterClient::connect(place, patience).map(drop));
    let coordinator = scene.coordinator(drop);
    connecting.join().expect("no panic").expect("a connection");
    drop((coordinator, lock));
    let place = scene.place();
    let connecting = std::thread::spawn(move || ClusterClient::connect(place, patience).map(drop));
    let _coordinator = scene.coordinator(drop);
    connecting.join().expect("no panic").expect("a connection");
}

#[test]
fn client_waits_for_starting_coordinator() {
    let scene = Scene::new();
    let place = scene.place();
    let connecting =
        std::thread::spawn(move || ClusterClient::connect(place, patience()).map(drop));
    let _coordinator = scene.coordinator(drop);
    connecting.join().expect("no panic").expect("a connection");
}

#[test]
fn wrong_secret_fails_at_once() {
    let scene = Scene::new();
    let coordinator = scene.coordinator(drop);
    let secret = Secret::generate().expect("randomness");
    let place = ClusterPlace::Address {
        address: coordinator.address.to_string(),
        secret,
    };
    let error = ClusterClient::connect(place, patience()).expect_err("it is refused");
    assert!(matches!(error, ClientError::Incompatible { .. }), "{error}");
    assert_eq!(error.exit_status(), 69);
    assert!(
        error
            .to_string()
            .contains("use a copy of the cluster's secret file"),
        "{error}"
    );
}
