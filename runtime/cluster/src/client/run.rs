//! Runs a job on a cluster as if it were local: submits it, follows it, and on Ctrl-C kills or detaches it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::process::Interrupts;
use napreduce_local::world::World;
use napreduce_local::{ProgressDisplay, ProgressMode};
use napreduce_protocol::requests::KillJob;
use napreduce_protocol::{
    FromCoordinator, JobEnd, JobError, JobPlan, JobProgress, JobReport, ToCoordinator,
};
use napreduce_task::signal_name;
use tokio::time::timeout;

use super::session::{Session, TryError, receive};
use super::submission::{Parcel, random_token};
use super::{ClientError, SubmitOptions};

/// Maximum silence of the coordinator, which sends progress of a followed job every few seconds.
const FOLLOW_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Maximum wait after Ctrl-C for the result of a pending submission.
const LAST_WORD: Duration = Duration::from_secs(10);

/// The effect of Ctrl-C on a followed job. A second one always ends this program at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnInterrupt {
    /// Kills the job and waits for its end.
    #[default]
    Kill,
    /// Leaves the job running.
    Detach,
}

/// Options for following a job.
#[derive(Debug, Clone, Default)]
pub struct FollowOptions {
    /// When progress is shown.
    pub progress: ProgressMode,
    /// Prints only errors on standard error; overrides `progress`.
    pub quiet: bool,
    /// The effect of Ctrl-C.
    pub on_interrupt: OnInterrupt,
    /// Time since the submission of a job that is followed later.
    pub elapsed: Duration,
}

/// Submits a job and follows it to its end.
pub(super) async fn run(
    session: &mut Session,
    plan: JobPlan,
    submit: &SubmitOptions,
    options: &FollowOptions,
) -> Result<JobReport, JobError> {
    let mut interrupts = install()?;
    let parcel = pack(&session.world(), plan, submit, &mut interrupts).await?;
    let handed_in = Cell::new(false);
    let (submitted, signal) = {
        let mut sending = std::pin::pin!(parcel.send(session, &handed_in));
        tokio::select! {
            submitted = &mut sending => (submitted?, None),
            signal = interrupts.arrival() => {
                let signal = signal.map_err(|error| JobError::io("wait for signals", error))?;
                if !handed_in.get() {
                    return Err(not_submitted(signal));
                }
                let unknown = || JobError::Interrupted {
                    signal,
                    left: "the job may have been submitted; check with: nap job list".to_owned(),
                };
                let submitted = timeout(LAST_WORD, sending).await.map_err(|_| unknown())?;
                (submitted?, Some(signal))
            }
        }
    };
    match signal {
        Some(signal) => {
            let mut display =
                ProgressDisplay::new(options.progress, options.quiet, options.elapsed);
            interrupted(session, submitted, signal, options, &mut display).await
        }
        None => follow_to_end(session, submitted, options, &mut interrupts).await,
    }
}

/// Reads a job's program and files on a thread of its own, so that Ctrl-C need not wait for it.
async fn pack(
    world: &World,
    plan: JobPlan,
    options: &SubmitOptions,
    interrupts: &mut Interrupts,
) -> Result<Parcel, JobError> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let options = options.clone();
    let seen = Arc::clone(&cancelled);
    let token = random_token(world)?;
    let packing = world
        .tasks
        .blocking(move || Parcel::pack(plan, &options, token, &seen));
    tokio::select! {
        packed = packing => Ok(packed.map_err(|error| JobError::Internal(error.to_string()))??),
        signal = interrupts.arrival() => {
            cancelled.store(true, Ordering::Relaxed);
            Err(not_submitted(signal.map_err(|error| JobError::io("wait for signals", error))?))
        }
    }
}

fn not_submitted(signal: i32) -> JobError {
    JobError::Interrupted {
        signal,
        left: "the job was not submitted".to_owned(),
    }
}

/// Follows a job that was submitted before.
pub(super) async fn follow(
    session: &mut Session,
    job: JobId,
    options: &FollowOptions,
) -> Result<JobReport, JobError> {
    let mut interrupts = install()?;
    follow_to_end(session, job, options, &mut interrupts).await
}

fn install() -> Result<Interrupts, JobError> {
    Interrupts::install().map_err(|error| JobError::io("handle signals", error))
}

async fn follow_to_end(
    session: &mut Session,
    job: JobId,
    options: &FollowOptions,
    interrupts: &mut Interrupts,
) -> Result<JobReport, JobError> {
    let mut display = ProgressDisplay::new(options.progress, options.quiet, options.elapsed);
    let ended = tokio::select! {
        ended = until_end(session, job, |progress| display.show(progress)) => ended?.into_result(),
        signal = interrupts.arrival() => {
            let signal = signal.map_err(|error| JobError::io("wait for signals", error))?;
            interrupted(session, job, signal, options, &mut display).await
        }
    };
    display.end();
    match (interrupts.arrived(), ended) {
        // The signal came too late for this job, but a driver with more jobs must see it.
        (Some(signal), Ok(report)) => Err(complete(signal, &report)),
        (_, ended) => ended,
    }
}

/// Applies the effect of a signal.
async fn interrupted(
    session: &mut Session,
    job: JobId,
    signal: i32,
    options: &FollowOptions,
    display: &mut ProgressDisplay,
) -> Result<JobReport, JobError> {
    if options.on_interrupt == OnInterrupt::Detach {
        let left = format!("{job} continues; wait for it with: nap job wait {job}");
        return Err(JobError::Interrupted { signal, left });
    }
    let reason = format!(
        "interrupted by {}",
        signal_name(signal).unwrap_or("a signal")
    );
    // A conversation that was interrupted halfway cannot continue.
    session.disconnect();
    match session.ask(KillJob { job, reason }).await {
        // Refused: the job has already ended, and its end will follow.
        Ok(()) | Err(ClientError::Refused { .. }) => {}
        Err(error) => {
            let left = format!("{job} may still be running: {error}");
            return Err(JobError::Interrupted { signal, left });
        }
    }
    Err(
        match until_end(session, job, |progress| display.show(progress))
            .await?
            .into_result()
        {
            Ok(report) => complete(signal, &report),
            Err(JobError::Killed { .. } | JobError::Failed { .. }) => JobError::Interrupted {
                signal,
                left: format!("{job} was killed, and its output was removed"),
            },
            Err(other) => JobError::Interrupted {
                signal,
                left: other.to_string(),
            },
        },
    )
}

fn complete(signal: i32, report: &JobReport) -> JobError {
    let left = format!(
        "the job was complete by then, its output is in {}",
        report.output.display()
    );
    JobError::Interrupted { signal, left }
}

/// Shows progress until the job has ended, across coordinator restarts.
pub(super) async fn until_end(
    session: &mut Session,
    job: JobId,
    mut show: impl FnMut(&JobProgress),
) -> Result<JobEnd, ClientError> {
    let request = ToCoordinator::Follow { job };
    let following = session.retry(async |connection| {
        connection.send(&request).await.map_err(TryError::new)?;
        loop {
            match receive(connection, FOLLOW_SILENCE_MAX).await? {
                FromCoordinator::Progress(progress) => show(&progress),
                FromCoordinator::Ended(end) => return Ok(*end),
                other => return Err(ClientError::unexpected(&other).into()),
            }
        }
    });
    following.await
}
