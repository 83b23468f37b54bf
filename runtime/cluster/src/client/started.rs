//! Jobs of a cluster as values, each with a thread and a connection of its own: any number of them at once, also
//! inside an async runtime. No signal handlers are installed and nothing is printed.

use std::thread::scope;

use napreduce_engine::JobId;
use napreduce_local::{JobLink, StartedJob};
use napreduce_protocol::requests::KillJob;
use napreduce_protocol::{JobError, JobPlan, JobProgress, JobReport};

use super::run::until_end;
use super::session::Session;
use super::{ClientError, ClusterClient, ClusterPlace, Patience, SubmitOptions};

/// Submits a job and returns when the coordinator has accepted it. Blocking.
///
/// Dropping the result lets the job run on, and [`attach_job`] finds it again; [`StartedJob::cancel`] kills it.
///
/// # Errors
/// Fails if the plan is invalid, no coordinator answers within `patience`, or the coordinator refuses the job.
pub fn start_job(
    place: &ClusterPlace,
    patience: Patience,
    plan: JobPlan,
    submit: &SubmitOptions,
) -> Result<StartedJob, JobError> {
    let patience = Patience {
        tell: false,
        ..patience
    };
    let submitting = || {
        let mut client = ClusterClient::connect(place.clone(), patience)?;
        let job = client.submit(plan, submit)?;
        Ok::<_, ClientError>((client, job))
    };
    // The client has a runtime of its own, which cannot block a thread of another one.
    let submitted = scope(|threads| threads.spawn(submitting).join());
    let (client, job) =
        submitted.map_err(|_| JobError::Internal("the submission panicked".to_owned()))??;
    follow(job, move || Ok(client))
}

/// Returns a job that was submitted before. An unknown job is an error of the result.
///
/// # Errors
/// Fails if no thread can be started.
pub fn attach_job(
    place: &ClusterPlace,
    patience: Patience,
    job: JobId,
) -> Result<StartedJob, JobError> {
    let place = place.clone();
    let patience = Patience {
        tell: false,
        ..patience
    };
    follow(job, move || ClusterClient::connect(place, patience))
}

fn follow(
    job: JobId,
    connect: impl FnOnce() -> Result<ClusterClient, ClientError> + Send + 'static,
) -> Result<StartedJob, JobError> {
    let started = StartedJob::start(job, move |link| connect()?.follow_linked(job, link));
    Ok(started?.detach_on_drop())
}

/// Sends the progress of a job to its link until its end, and kills it when it is cancelled. Ends early if the
/// job is detached.
pub(super) async fn follow_linked(
    session: &mut Session,
    job: JobId,
    mut link: JobLink,
) -> Result<JobReport, JobError> {
    let progress = link.progress;
    let show = |now: &JobProgress| {
        progress.send_replace(*now);
    };
    loop {
        let cancelled = tokio::select! {
            ended = until_end(session, job, show) => return ended?.into_result(),
            cancelled = link.cancels.recv() => cancelled,
        };
        let Some(reason) = cancelled else {
            return Err(JobError::Internal(format!(
                "{job} was detached, and its end is unknown"
            )));
        };
        // A conversation that was interrupted halfway cannot continue.
        session.disconnect();
        match session.ask(KillJob { job, reason }).await {
            // Refused: the job has already ended, and its end will follow.
            Ok(()) | Err(ClientError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
